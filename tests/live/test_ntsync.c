// SPDX-License-Identifier: GPL-2.0-only
/* Waits for the objects of Windows that the kernel keeps for Wine (/dev/ntsync, Linux 6.14). */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json.h"
#include "live.h"
#include "syscalls.h"

#define WAITS 12

static bool expires(const struct live *l, size_t i)
{
	char kind[16];

	live__word(l, "wait", i, 0, kind, sizeof(kind));
	return !strcmp(kind, "timeout");
}

/* who ended the wait: 0 for nobody, or a timer */
static u32 woken_by(const struct live *l, u32 tid, u64 begin, u64 end)
{
	const struct live_event *e;
	u32 waker = 0;

	live__each(l, at, e, EV_WAKING)
	{
		const struct ev_waking *w = (const void *)e->hdr;

		if (e->hdr->tid == tid && e->hdr->ts >= begin && e->hdr->ts <= end)
			waker = w->flags & WAKE_HARDIRQ ? 0 : w->waker;
	}
	return waker;
}

static void same_wait(const struct live *l, size_t i, const struct ev_syscall *s)
{
	u64 begin = (u64)live__num(l, "wait", i, 4), end = (u64)live__num(l, "wait", i, 5), start = s->hdr.ts - s->dur;
	u32 waker = expires(l, i) ? 0 : live__tid(l, live__num(l, "signaller", 0, 0));

	assert_int_equal(live__num(l, "wait", i, 2), expires(l, i) ? ETIMEDOUT : 0);
	assert_int_equal(s->ret, expires(l, i) ? -ETIMEDOUT : 0);
	assert_int_equal(s->arg0, live__num(l, "device", 0, 0));
	assert_int_equal(s->arg1, live__num(l, "wait", i, 1));
	assert_true(S_ISCHR(s->fd_mode));
	if (start < begin || s->hdr.ts > end)
		fail_msg("wait %zu began %lld ns after and ended %lld ns before what the target measured", i,
			(long long)(start - begin), (long long)(end - s->hdr.ts));
	assert_int_equal(woken_by(l, s->hdr.tid, start, s->hdr.ts), waker);
}

/* its record, the only one; NULL where there is none */
static const struct ev_syscall *record_of(const struct live *l, size_t i)
{
	u64 begin = (u64)live__num(l, "wait", i, 4), end = (u64)live__num(l, "wait", i, 5);
	u32 tid = live__tid(l, live__num(l, "main", 0, 0));
	const struct ev_syscall *found = NULL;
	const struct live_event *e;

	live__each(l, at, e, EV_SYSCALL)
	{
		const struct ev_syscall *s = (const void *)e->hdr;

		if (s->sys != SYS_ID_ioctl || e->hdr->tid != tid || e->hdr->ts < begin || e->hdr->ts > end)
			continue;
		assert_null(found);
		found = s;
	}
	return found;
}

static void every_wait_once(const struct live *l, bool seen[WAITS], size_t may_miss)
{
	size_t missing = 0;

	for (size_t i = 0; i < WAITS; i++) {
		const struct ev_syscall *s = record_of(l, i);

		seen[i] = s;
		missing += !s;
		if (s)
			same_wait(l, i, s);
	}
	if (missing > may_miss)
		fail_msg("%zu of %d waits are not recorded", missing, WAITS);
}

static const struct json *row_of(const struct json *rows, const char *cause)
{
	json__each(rows, r) if (!strcmp(json__text(r, "cause"), cause)) return r;
	return NULL;
}

/* how long the thread that was waited for ran, or would have: in an emulator the machine has much of it */
static double busy_ms(const struct json *row)
{
	static const char *const busy[] = {"code", "kernel", "cpu_wait", "interrupt"};
	double ms = 0;

	for (size_t i = 0; i < ARRAY_SIZE(busy); i++)
		ms += json__number(row_of(json__get(row, "because"), busy[i]), "ms");
	return ms;
}

/* the wait for the thread, by its name, and that it computed meanwhile */
static void blames_the_signaller(const struct json *frame, const char *kind)
{
	const struct json *row = row_of(json__get(frame, "causes"), "thread_wait");

	if (strcmp(json__text(json__get(row, "who"), "name"), "Signaller") || json__number(row, "ms") < 90 ||
		busy_ms(row) < 50)
		fail_msg("%s: %.1f ms busy; the verdict is \"%s\"", kind, busy_ms(row), json__text(frame, "verdict"));
}

static void every_slow_frame_says_whom_it_waited_for(struct live *l, const bool seen[WAITS])
{
	char *argv[] = {(char *)live__program(), "explain", "--json", l->recording, NULL}, *text, kind[16];
	struct json *root;
	size_t told = 0;
	int status;

	text = live__output(l, &status, argv);
	assert_int_equal(status, 0);
	root = json__parse(text);
	assert_non_null(root);
	json__each(json__get(root, "slow_frames"), frame)
	{
		for (size_t i = 0; i < WAITS; i++) {
			if ((long long)json__number(frame, "frame") != live__num(l, "wait", i, 3))
				continue;
			live__word(l, "wait", i, 0, kind, sizeof(kind));
			told++;
			if (seen[i] && !expires(l, i))
				blames_the_signaller(frame, kind);
		}
	}
	assert_int_equal(told, WAITS);
	json__free(root);
	free(text);
}

static void test_every_ntsync_wait_is_recorded_and_told_as_a_wait_for_who_ended_it(void **state)
{
	bool seen[WAITS];
	struct live l;

	if (access("/dev/ntsync", F_OK))
		live__skip_kernel("this kernel has no /dev/ntsync");
	live__init(&l);
	live__start(&l, "ntsync", NULL);
	live__record(&l, NULL);
	live__go(&l);
	live__end_target(&l);
	live__end_redframe(&l);
	assert_int_equal(l.status, 0);
	assert_int_equal(l.target_status, 0);
	live__load(&l);
	live__no_loss(&l);
	every_wait_once(&l, seen, live__passed_over(&l) ? WAITS / 3 : 0);
	every_slow_frame_says_whom_it_waited_for(&l, seen);
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_every_ntsync_wait_is_recorded_and_told_as_a_wait_for_who_ended_it),
};
LIVE_MAIN(tests)
