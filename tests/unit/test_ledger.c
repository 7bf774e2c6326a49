/* SPDX-License-Identifier: GPL-2.0-only
 *
 * From verdicts to rows: by recordings that are imported, and by frames made up here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "explain.h"
#include "ledger.h"
#include "recfile.h"
#include "run_query.h"

#define RUN "00000000-0000-4000-8000-000000000001"
#define MS  NSEC_PER_MSEC

static struct store *open_store(void)
{
	struct store *s;

	assert_int_equal(store__open(":memory:", &s), 0);
	return s;
}

/* a frame each 16 ms for so many seconds; one every second takes 100 ms */
static void play(struct ledger *l, const char *scene, u64 *at, u64 seconds)
{
	struct frame_stream stream = {0};
	struct verdict v = {.frame.stream = &stream};

	for (u64 end = *at + seconds * NSEC_PER_SEC, next = *at + NSEC_PER_SEC; *at < end; *at = v.frame.end) {
		v.slow = *at >= next;
		next += v.slow ? NSEC_PER_SEC : 0;
		v.frame.start = *at;
		v.frame.end = *at + (v.slow ? 100 * MS : 16 * MS);
		v.budget_ns = 20 * MS;
		v.cause_ns[CAUSE_CODE] = v.frame.end - v.frame.start;
		v.sentence = v.slow ? "slow" : NULL;
		v.allocs = 3;
		assert_int_equal(ledger__verdict(l, &v, NULL, scene, v.slow ? "kept.redframe" : NULL), 0);
	}
}

static void test_each_visit_to_a_scene_warms_up_and_the_rest_is_summed(void **state)
{
	const struct ledger_options o = {.start_ns = 500 * NSEC_PER_SEC, .warm_ns = LEDGER_WARM_NS};
	struct store *s = open_store();
	struct run_facts f;
	u64 at = o.start_ns, frames;
	struct ledger *l =
		ledger__new(s, RUN, &(struct store_run){.kind = "soak", .game = "g", .started_ms = 1000}, &o);

	assert_non_null(l);
	play(l, "town", &at, 4);
	assert_true(ledger__is_warm_up(l));
	play(l, "town", &at, 31);
	assert_false(ledger__is_warm_up(l));
	play(l, "forest", &at, 15);
	play(l, "town", &at, 4);
	assert_true(ledger__is_warm_up(l));
	play(l, "town", &at, 11);
	frames = ledger__frames(l);
	assert_in_range(ledger__measured(l), frames * 49 / 65, frames * 51 / 65);
	assert_int_equal(ledger__end(l, at, EXIT_OK, NULL), 0);
	ledger__free(l);
	assert_int_equal(run_facts__load(s, RUN, &f), 0);
	assert_int_equal(f.frames, frames);
	assert_int_equal(f.n_scenes, 2);
	assert_string_equal(f.scenes[1].name, "town");
	/* 30 + 10 s of town, less what a frame reaches over */
	assert_in_range(f.scenes[1].dur_ns / MS, 39500, 40500);
	assert_in_range(f.scenes[0].dur_ns / MS, 9500, 10500);
	assert_int_equal(f.scenes[1].allocs, 3 * f.scenes[1].frames);
	assert_string_equal(f.hitches[0].trace, "kept.redframe");
	assert_string_equal(run_facts__result(&f), "passed");
	assert_int_equal(f.ended_ms, 1000 + (s64)((at - o.start_ns) / MS)); /* whatever the wall clock did */
	run_facts__free(&f);
	store__close(s);
}

static void test_a_hitch_that_is_told_late_counts_where_its_frame_was(void **state)
{
	const struct ledger_options o = {.start_ns = 500 * NSEC_PER_SEC, .hitches_told = true};
	struct ledger_hitch h = {.fingerprint = 7, .cause = CAUSE_CODE, .text = "running code", .sentence = "slow"};
	struct store *s = open_store();
	struct run_facts f;
	u64 at = o.start_ns, town, forest;
	struct ledger *l = ledger__new(s, RUN, &(struct store_run){.kind = "soak", .game = "g"}, &o);

	play(l, "town", &at, 8);
	town = at - 4 * NSEC_PER_SEC;
	play(l, "forest", &at, 8);
	forest = at - 4 * NSEC_PER_SEC;
	for (int i = 0; i < 3; i++) {
		h.start = i == 1 ? forest : town;
		h.end = h.start + (i == 2 ? 200 : 100) * MS;
		assert_int_equal(ledger__hitch(l, &h), 0);
	}
	play(l, "beach", &at, 45);
	h.fingerprint = 8;
	h.start = town; /* long ago: that block is in the store */
	h.end = h.start + 90 * MS;
	assert_int_equal(ledger__hitch(l, &h), 0);
	assert_int_equal(ledger__end(l, at, EXIT_OK, NULL), 0);
	ledger__free(l);
	assert_int_equal(run_facts__load(s, RUN, &f), 0);
	assert_int_equal(f.n_hitches, 2);
	for (int i = 0; i < f.n_hitches; i++) {
		bool late = !strcmp(f.hitches[i].key, "0000000000000008");

		assert_string_equal(f.hitches[i].scene, late ? "beach" : "town");
		assert_int_equal(f.hitches[i].hitches, late ? 1 : 3);
	}
	run_facts__free(&f);
	store__close(s);
}

static int take_number(const char *const *cells, int n, void *arg)
{
	*(u64 *)arg = strtoull(cells[0], NULL, 10);
	return 0;
}

/* what a killed soak leaves */
static void test_closed_blocks_are_in_the_store_before_the_end(void **state)
{
	const struct ledger_options o = {.start_ns = 500 * NSEC_PER_SEC};
	struct store *s = open_store();
	u64 at = o.start_ns, n = 0;
	struct ledger *l = ledger__new(s, RUN, &(struct store_run){.kind = "soak", .game = "g"}, &o);

	play(l, NULL, &at, 25);
	assert_int_equal(store__query(s, "SELECT count(*) FROM blocks", NULL, 0, take_number, &n), 0);
	assert_int_equal(n, 2);
	ledger__tend(l, at + LEDGER_BLOCK_NS);
	assert_int_equal(store__query(s, "SELECT sum(frames) FROM blocks", NULL, 0, take_number, &n), 0);
	assert_int_equal(n, ledger__frames(l));
	ledger__free(l);
	store__close(s);
}

static void test_a_blocks_hitches_are_in_the_store_as_soon_as_all_are_told(void **state)
{
	const struct ledger_options o = {.start_ns = 500 * NSEC_PER_SEC, .hitches_told = true};
	struct ledger_hitch h = {.fingerprint = 7, .cause = CAUSE_CODE, .text = "running code", .sentence = "slow"};
	struct store *s = open_store();
	u64 at = o.start_ns, slow = 0, n;
	struct ledger *l = ledger__new(s, RUN, &(struct store_run){.kind = "soak", .game = "g"}, &o);

	play(l, NULL, &at, 11);
	assert_int_equal(store__query(s, "SELECT sum(slow) FROM blocks", NULL, 0, take_number, &slow), 0);
	assert_in_range(slow, 5, 11);
	h.start = o.start_ns + NSEC_PER_SEC;
	h.end = h.start + 100 * MS;
	for (u64 told = 1; told <= slow; told++) {
		assert_int_equal(ledger__hitch(l, &h), 0);
		assert_int_equal(ledger__tend(l, at), 0);
		n = 0;
		store__query(s, "SELECT hitches FROM hitches", NULL, 0, take_number, &n);
		assert_int_equal(n, told == slow ? slow : 0);
	}
	ledger__free(l);
	store__close(s);
}

/* a recording of a test as a file */
static void recording_of(const char *golden, char *path, size_t size)
{
	snprintf(path, size, "/tmp/test_ledger.XXXXXX");
	assert_int_equal(close(mkstemp(path)), 0);
	assert_int_equal(recfile__compile(golden, path), 0);
}

static void test_a_recording_is_the_same_run_however_often_it_is_imported(void **state)
{
	struct store *s = open_store();
	char path[64], run[RUN_ID_SIZE], again[RUN_ID_SIZE];
	struct run_facts f;
	u64 frames;

	recording_of("tests/golden/explain_cold_read.txt", path, sizeof(path));
	assert_int_equal(ledger__import(s, path, run), EXIT_OK);
	assert_int_equal(run_facts__load(s, run, &f), 0);
	frames = f.frames;
	assert_true(frames > 0);
	assert_true(f.n_hitches > 0);
	assert_non_null(strstr(f.hitches[0].sentence, "reading"));
	assert_string_equal(f.hitches[0].trace, path);
	run_facts__free(&f);
	assert_int_equal(ledger__import(s, path, again), EXIT_OK);
	assert_string_equal(run, again);
	assert_int_equal(run_facts__load(s, run, &f), 0);
	assert_int_equal(f.frames, frames);
	run_facts__free(&f);
	unlink(path);
	store__close(s);
}

static int take_text(const char *const *cells, int n, void *arg)
{
	snprintf(arg, 64, "%s", cells[0]);
	return 0;
}

static void test_options_that_must_be_equal_are_found_by_their_whole_name(void **state)
{
	static const char line[] = "0 0 0 info text=\"session.options=events=sched alloc=large alloc_sample=524288 "
				   "sample=99 buffer=1\"\n";
	char text[] = "/tmp/test_ledger.XXXXXX", command[160], path[64], run[RUN_ID_SIZE], value[64] = "";
	struct store *s = open_store();
	FILE *f = fdopen(mkstemp(text), "w");

	assert_non_null(f);
	fputs(line, f);
	fclose(f);
	snprintf(command, sizeof(command), "cat tests/golden/explain_cold_read.txt >> %s", text);
	assert_int_equal(system(command), 0);
	recording_of(text, path, sizeof(path));
	assert_int_equal(ledger__import(s, path, run), EXIT_OK);
	assert_int_equal(
		store__query(s, "SELECT value FROM run_meta WHERE name = 'option.sample'", NULL, 0, take_text, value),
		0);
	assert_string_equal(value, "99");
	unlink(path);
	unlink(text);
	store__close(s);
}

static void test_a_recording_without_frames_is_a_run_that_was_not_measured(void **state)
{
	struct store *s = open_store();
	char path[64], run[RUN_ID_SIZE];
	struct run_facts f;

	recording_of("tests/golden/explain_no_frames.txt", path, sizeof(path));
	assert_int_equal(ledger__import(s, path, run), EXIT_OK);
	assert_int_equal(run_facts__load(s, run, &f), 0);
	assert_string_equal(run_facts__result(&f), "not measured");
	assert_string_equal(f.reason, "no frames in the recording");
	run_facts__free(&f);
	unlink(path);
	store__close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_visit_to_a_scene_warms_up_and_the_rest_is_summed),
		cmocka_unit_test(test_a_hitch_that_is_told_late_counts_where_its_frame_was),
		cmocka_unit_test(test_closed_blocks_are_in_the_store_before_the_end),
		cmocka_unit_test(test_a_blocks_hitches_are_in_the_store_as_soon_as_all_are_told),
		cmocka_unit_test(test_a_recording_is_the_same_run_however_often_it_is_imported),
		cmocka_unit_test(test_options_that_must_be_equal_are_found_by_their_whole_name),
		cmocka_unit_test(test_a_recording_without_frames_is_a_run_that_was_not_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
