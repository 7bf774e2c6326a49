// SPDX-License-Identifier: GPL-2.0-only
/* Games that have much of something: every count is right, and to begin to record takes no longer than it may. */
#include <stdlib.h>
#include <unistd.h>

#include "live.h"
#include "syscalls.h"

#define ATTACH_MS     3000 /* a small game takes some 20, one of 100,000 mappings 300; others may have the CPU */
#define MAX_MAP_COUNT "/proc/sys/vm/max_map_count"

static void record_started(struct live *l)
{
	live__record(l, NULL);
	live__run(l);
	assert_int_equal(
		model__stats(l->model)->frames, live__rows(l, "frames") ? live__num(l, "frames", 0, 0) - 1 : 1);
	printf("  attached in %s ms\n", model__info(l->model, "session.attach_ms"));
	assert_true(strtod(model__info(l->model, "session.attach_ms"), NULL) < ATTACH_MS);
}

static void record(struct live *l, const char *what, const char *n, const char *ms)
{
	live__init(l);
	live__start(l, "scale", what, n, ms, NULL);
	record_started(l);
}

/* calls of a thread (0: of all) that read 8 bytes */
static size_t reads_of(const struct live *l, u32 tid)
{
	const struct live_event *e;
	size_t n = 0;

	live__each(l, at, e, EV_FILE_READ)
	{
		const struct ev_file_read *r = (const void *)e->hdr;

		n += (!tid || r->hdr.tid == tid) && r->ret == 8 && r->sys == SYS_ID_pread64;
	}
	return n;
}

static void test_500_threads_are_each_known_and_recorded(void **state)
{
	struct live l;

	record(&l, "threads", "500", NULL);
	assert_int_equal(live__rows(&l, "tid"), 500);
	for (size_t i = 0; i < 500; i++) {
		u32 tid = live__tid(&l, live__num(&l, "tid", i, 0));
		const struct thread *t = model__find_thread(l.model, tid);

		assert_true(t && t->game);
		assert_int_equal(reads_of(&l, tid), live__num(&l, "threads", 0, 1));
	}
	live__free(&l);
}

static void test_10000_open_files_are_each_named_when_they_are_read(void **state)
{
	const struct live_event *e;
	struct live l;
	size_t named = 0;

	record(&l, "files", "10000", NULL);
	live__each(&l, at, e, EV_FILE_READ)
	{
		const struct ev_file_read *r = (const void *)e->hdr;

		named += r->ret == 8 && e->path && strstr(e->path, "redframe-scale-");
	}
	assert_int_equal(reads_of(&l, 0), 10000);
	assert_int_equal(named, 10000);
	live__free(&l);
}

static bool set_max_maps(const char *n)
{
	FILE *f = fopen(MAX_MAP_COUNT, "we");
	bool good = f && fputs(n, f) >= 0;

	return f && !fclose(f) && good;
}

static void test_100000_mappings_are_known_and_faults_in_them_counted(void **state)
{
	const struct live_event *e;
	size_t faults = 0, known = 0;
	char before[32] = "";
	u64 from, to;
	struct live l;
	FILE *f = fopen(MAX_MAP_COUNT, "re");

	if (!f || !fgets(before, sizeof(before), f) || fclose(f) || !set_max_maps("150000"))
		live__skip(MAX_MAP_COUNT " cannot be raised here");
	live__init(&l);
	live__start(&l, "scale", "mappings", "100000", NULL);
	set_max_maps(before); /* it has them */
	record_started(&l);
	from = (u64)live__num(&l, "area", 0, 0);
	to = (u64)live__num(&l, "area", 0, 1);
	live__each(&l, at, e, EV_FAULT)
	{
		const struct ev_fault *k = (const void *)e->hdr;

		faults += k->addr >= from && k->addr < to;
	}
	assert_int_equal(faults, live__num(&l, "mappings", 0, 1));
	for (u64 addr = from; addr < to; addr += 4096) {
		const struct mapping *m = model__mapping(l.model, addr);

		known += m && m->start == addr && m->end == addr + 4096;
	}
	assert_int_equal(known, live__num(&l, "mappings", 0, 0));
	live__free(&l);
}

static void test_frames_at_1_and_at_10000_a_second_are_all_there(void **state)
{
	struct live l;

	record(&l, "fps", "1", "2100");
	live__free(&l);
	record(&l, "fps", "10000", "1000");
	assert_true(model__stats(l.model)->frames > 5000); /* others may have the CPU at times */
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_500_threads_are_each_known_and_recorded),
	cmocka_unit_test(test_10000_open_files_are_each_named_when_they_are_read),
	cmocka_unit_test(test_100000_mappings_are_known_and_faults_in_them_counted),
	cmocka_unit_test(test_frames_at_1_and_at_10000_a_second_are_all_there),
};
LIVE_MAIN(tests)
