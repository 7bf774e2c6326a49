// SPDX-License-Identifier: GPL-2.0-only
/* Calls on files: each one, in order, with its call, offset, result and path. */
#include <stdlib.h>

#include "live.h"
#include "syscalls.h"

struct seen {
	const struct live_event *e;
	u64 offset, ino, cold, dur;
	s64 ret;
	u32 sys;
	s32 fd;
};

static struct seen view(const struct live_event *e)
{
	struct seen s = {.e = e, .offset = FILE_NO_OFFSET, .dur = ev__dur(e->hdr)};

	if (e->hdr->kind == EV_FILE_READ || e->hdr->kind == EV_FILE_WRITE) { /* one layout for both */
		const struct ev_file_read *f = (const void *)e->hdr;

		s.offset = f->offset, s.ret = f->ret, s.sys = f->sys, s.fd = f->fd, s.ino = f->ino, s.cold = f->cold;
	} else if (e->hdr->kind == EV_FILE_META) {
		const struct ev_file_meta *f = (const void *)e->hdr;

		s.ret = f->ret, s.sys = f->sys, s.fd = f->fd, s.ino = f->ino, s.cold = f->cold;
	} else {
		const struct ev_file_sync *f = (const void *)e->hdr;

		s.ret = f->ret, s.sys = f->sys, s.fd = f->fd, s.ino = f->ino;
	}
	return s;
}

/* The next call of the target; none after its first write to its stdout. */
static bool next_call(const struct live *l, size_t *at, struct seen *s)
{
	u32 tid = live__tid(l, model__game(l->model));

	while (*at < l->n) {
		const struct live_event *e = &l->ev[(*at)++];

		if (e->hdr->tid != tid || e->hdr->kind < EV_FILE_READ || e->hdr->kind > EV_FILE_SYNC)
			continue;
		*s = view(e);
		return s->sys != SYS_ID_write || s->fd != 1;
	}
	return false;
}

static void same_call(const struct live *l, size_t i, const struct seen *s)
{
	char sys[32], path[64], arg[32], buf[32];
	const char *base = s->e->path && strrchr(s->e->path, '/') ? strrchr(s->e->path, '/') + 1 : "-";
	const char *whole;

	live__word(l, "call", i, 0, sys, sizeof(sys));
	live__word(l, "call", i, 3, path, sizeof(path));
	live__word(l, "call", i, 4, arg, sizeof(arg));
	if (strcmp(syscall__name(s->sys, buf, sizeof(buf)), sys) || (s64)s->offset != live__num(l, "call", i, 1) ||
		s->ret != live__num(l, "call", i, 2) || strcmp(base, path))
		fail_msg("call %zu: %s(%s) offset %lld ret %lld was recorded as %s(%s) offset %lld ret %lld", i, sys,
			path, live__num(l, "call", i, 1), live__num(l, "call", i, 2),
			syscall__name(s->sys, buf, sizeof(buf)), s->e->path ?: "no path", (long long)s->offset,
			(long long)s->ret);
	if (strcmp(path, "-") && strncmp(s->e->path, l->dir, strlen(l->dir)))
		fail_msg("call %zu: path %s is not below %s", i, s->e->path, l->dir);
	if (!strcmp(arg, "-"))
		return;
	whole = strstr(l->truth, "\narg ");
	for (size_t k = 0; k < i; k++)
		whole = strchr(whole + 1, '\n');
	if (!s->e->arg || strncmp(whole + 5, s->e->arg, strlen(s->e->arg)) || whole[5 + strlen(s->e->arg)] != '\n')
		fail_msg("call %zu %s: argument recorded as '%s'", i, sys, s->e->arg ?: "nothing");
}

/* fdatasync, fadvise64, then the cold and the warm read of 1 MiB */
static void cold_then_warm(const struct live *l, size_t *at)
{
	struct seen s;
	u64 cold[2];
	int reads = 0;

	while (next_call(l, at, &s)) {
		if (s.sys != SYS_ID_pread64)
			continue;
		assert_true(reads < 2);
		assert_int_equal(s.ret, 1 << 20);
		assert_int_equal(s.offset, 1 << 20);
		cold[reads++] = s.cold;
	}
	assert_int_equal(reads, 2);
	assert_int_equal(cold[1], 0);
	if (live__num(l, "resident", 0, 0) == 0)
		assert_true(cold[0] >= 1 << 20);
	else
		fprintf(stderr, "*** NOT TESTED: the page cache kept the file; cold bytes of a cold read\n");
}

static void test_every_file_call_is_recorded_once_in_order_with_offset_result_and_path(void **state)
{
	struct live l;
	struct seen s;
	size_t at = 0, n;

	live__init(&l);
	live__start(&l, "file", l.dir, NULL);
	live__record(&l, "--frame", "none", NULL);
	live__run(&l);
	n = live__rows(&l, "call");
	assert_true(n > 1030);
	assert_true(next_call(&l, &at, &s)); /* the read of the byte that lets it go, which began before us */
	if (s.fd == 0)
		assert_true(next_call(&l, &at, &s));
	for (size_t i = 0; i < n; i++) {
		same_call(&l, i, &s);
		assert_true(s.dur > 0);
		if (!next_call(&l, &at, &s))
			fail_msg("only %zu of %zu calls were recorded", i + 1, n);
	}
	cold_then_warm(&l, &at);
	live__free(&l);
}

static void test_info_counts_each_read_once(void **state)
{
	char *argv[] = {(char *)live__program(), "info", NULL, "--json", NULL}, *json;
	struct live l;
	size_t at = 0;
	unsigned long long files = 0, told;
	int status;

	live__init(&l);
	live__start(&l, "file", l.dir, NULL);
	live__record(&l, "--frame", "none", "--events", "file", NULL);
	live__run(&l);
	for (; at < l.n; at++)
		files += l.ev[at].hdr->kind >= EV_FILE_READ && l.ev[at].hdr->kind <= EV_FILE_SYNC;
	argv[2] = l.recording;
	json = live__output(&l, &status, argv);
	assert_int_equal(status, 0);
	assert_non_null(strstr(json, "\"counts\""));
	assert_int_equal(sscanf(strstr(strstr(json, "\"counts\""), "\"file\""), "\"file\": %llu", &told), 1);
	assert_int_equal(told, files);
	free(json);
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_every_file_call_is_recorded_once_in_order_with_offset_result_and_path),
	cmocka_unit_test(test_info_counts_each_read_once),
};
LIVE_MAIN(tests)
