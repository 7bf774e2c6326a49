// SPDX-License-Identifier: GPL-2.0-only
/* Waits on locks: each one with its word, owner, waker, result and time. */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>

#include "live.h"

struct expected {
	char kind[16];
	u64 word, begin, end;
	u32 owner, waker;
	s32 result;
};

static struct expected expect(const struct live *l, size_t i)
{
	struct expected x = {
		.word = (u64)live__num(l, "wait", i, 1),
		.owner = (u32)live__num(l, "wait", i, 2),
		.waker = (u32)live__num(l, "wait", i, 3),
		.result = (s32)live__num(l, "wait", i, 4),
		.begin = (u64)live__num(l, "wait", i, 5),
		.end = (u64)live__num(l, "wait", i, 6),
	};

	live__word(l, "wait", i, 0, x.kind, sizeof(x.kind));
	x.waker = x.waker ? live__tid(l, x.waker) : 0;
	return x;
}

/* the word lies in the object, where libc's layout does not promise more */
static bool within_object(const struct live *l, const char *kind, u64 addr)
{
	char name[16];

	for (size_t i = 0; i < live__rows(l, "object"); i++) {
		u64 at = (u64)live__num(l, "object", i, 1);

		live__word(l, "object", i, 0, name, sizeof(name));
		if (!strcmp(name, kind))
			return addr >= at && addr < at + (u64)live__num(l, "object", i, 2);
	}
	return false;
}

static u32 owner_of(const char *kind, const struct ev_lock_wait *w)
{
	if (!strcmp(kind, "pi"))
		return w->word & FUTEX_TID_MASK;
	return !strncmp(kind, "rwlock-", 7) ? w->owner16 : w->owner;
}

static void right_op(const char *kind, const struct ev_lock_wait *w)
{
	u32 op = w->op & FUTEX_CMD_MASK;

	if (!strcmp(kind, "mutex"))
		assert_true(w->op == (FUTEX_WAIT | FUTEX_PRIVATE_FLAG) && w->val == 2);
	else if (!strcmp(kind, "pi"))
		assert_true(op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2);
	else if (!strcmp(kind, "waitv"))
		assert_true(w->op == FUTEX_OP_WAITV && w->words == 2);
	else if (!strcmp(kind, "semaphore"))
		assert_true(op == FUTEX_WAIT_BITSET && w->val == 0 && w->owner16 >= 1);
	else if (!strcmp(kind, "condvar"))
		assert_true(op == FUTEX_WAIT_BITSET && w->val == 0 && (w->addr & 4 || w->owner16 == 0));
	else if (!strcmp(kind, "join"))
		assert_true(op == FUTEX_WAIT_BITSET && w->val == w->word && !(w->op & FUTEX_PRIVATE_FLAG));
	if (strcmp(kind, "waitv"))
		assert_int_equal(w->words, 1);
}

static void same_wait(const struct live *l, size_t i, const struct ev_lock_wait *w)
{
	struct expected x = expect(l, i);

	if (x.word ? w->addr != x.word : !within_object(l, x.kind, w->addr))
		fail_msg("wait %zu (%s) for %#llx was recorded at %#llx", i, x.kind, (unsigned long long)x.word,
			(unsigned long long)w->addr);
	if (w->ret != x.result)
		fail_msg("wait %zu (%s) ended with %d, recorded as %d", i, x.kind, x.result, w->ret);
	if (x.owner && owner_of(x.kind, w) != x.owner)
		fail_msg("wait %zu (%s): owner %u was recorded as %u", i, x.kind, x.owner, owner_of(x.kind, w));
	if (w->waker != x.waker && strcmp(x.kind, "eintr"))
		fail_msg("wait %zu (%s): waker %u was recorded as %u", i, x.kind, x.waker, w->waker);
	if (w->hdr.ts > x.end || w->hdr.ts - w->dur < x.begin || !w->dur)
		fail_msg("wait %zu (%s) is not within what the target measured: it began %lld ns after, took %llu ns "
			 "and ended "
			 "%lld ns before",
			i, x.kind, (long long)(w->hdr.ts - w->dur - x.begin), (unsigned long long)w->dur,
			(long long)(x.end - w->hdr.ts));
	right_op(x.kind, w);
}

/* It came back at once: the value had changed, or the kernel has no such call. */
static bool no_wait(const struct live *l, size_t i)
{
	char kind[16];

	live__word(l, "wait", i, 0, kind, sizeof(kind));
	return !strcmp(kind, "eagain") || !strcmp(kind, "none");
}

static void record(struct live *l)
{
	live__init(l);
	live__start(l, "lock", NULL);
	live__record(l, "--frame", "none", NULL);
	live__run(l);
}

static void test_every_lock_wait_is_recorded_once_with_word_owner_waker_and_result(void **state)
{
	const struct live_event *e;
	size_t i = 0, n, none = 0;
	struct live l;
	u32 tid;

	record(&l);
	tid = live__tid(&l, live__num(&l, "thread", 0, 0));
	n = live__rows(&l, "wait");
	assert_true(n == 200 + 10 + 7 + 5);
	live__each(&l, at, e, EV_LOCK_WAIT)
	{
		const struct ev_lock_wait *w = (const void *)e->hdr;

		if (w->hdr.tid != tid)
			continue;
		for (; i < n && no_wait(&l, i); i++)
			none++;
		if (i >= n)
			fail_msg("more waits than the target made");
		same_wait(&l, i++, w);
	}
	for (; i < n && no_wait(&l, i); i++)
		none++;
	assert_int_equal(i, n);
	assert_in_range(none, 1, 2);
	live__free(&l);
}

/* The target's own time around each call has the call's way in and out besides: of the whole, the waits are the larger
 * part on any machine. */
static void test_wait_times_are_nearly_all_of_what_the_target_measured(void **state)
{
	const struct live_event *e;
	u64 recorded = 0, measured = 0;
	struct live l;
	u32 tid;

	record(&l);
	tid = live__tid(&l, live__num(&l, "thread", 0, 0));
	live__each(&l, at, e, EV_LOCK_WAIT) if (e->hdr->tid == tid) recorded += ev__dur(e->hdr);
	for (size_t i = 0; i < live__rows(&l, "wait"); i++)
		measured += (u64)(live__num(&l, "wait", i, 6) - live__num(&l, "wait", i, 5));
	assert_true(recorded <= measured);
	assert_true(recorded >= measured / 2);
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_every_lock_wait_is_recorded_once_with_word_owner_waker_and_result),
	cmocka_unit_test(test_wait_times_are_nearly_all_of_what_the_target_measured),
};
LIVE_MAIN(tests)
