/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "names.h"
#include "patterns.h"
#include "sentence.h"

#define MS 1000000ULL

static void check(const struct verdict *v, const char *want)
{
	struct str s = {};

	sentence__write(&s, v);
	assert_string_equal(s.s, want);
	str__free(&s);
}

static const struct part cold_read = {.cause = CAUSE_FILE_READ,
	.ns = 91200000,
	.excess_ns = 91200000,
	.count = 3,
	.what = "/data/navmesh.bin",
	.bytes = 50 << 20,
	.cold_bytes = 50 << 20,
	.kind = EV_FILE_READ};

static void test_cold_read_says_file_reads_and_bytes(void **state)
{
	struct verdict v = {.parts = &cold_read, .n_parts = 1};

	check(&v, "91.2 ms reading /data/navmesh.bin from disk (3 reads, 50.0 MiB cold)");
}

static void test_chain_ends_at_what_the_other_thread_did(void **state)
{
	struct part wait = {.cause = CAUSE_THREAD_WAIT,
		.ns = 92 * MS,
		.excess_ns = 92 * MS,
		.count = 1,
		.who = "GameThread",
		.who_tid = 7,
		.what = "condition variable at 0x10",
		.kind = EV_LOCK_WAIT,
		.lock = LOCK_CONDVAR,
		.because = &cold_read,
		.n_because = 1};
	struct verdict v = {.parts = &wait, .n_parts = 1};

	check(&v, "92.0 ms waiting for GameThread, which read /data/navmesh.bin from disk (3 reads, 50.0 MiB cold)");
}

static void test_reason_that_explains_little_is_not_told(void **state)
{
	struct part small = {.cause = CAUSE_FILE_READ, .ns = 5 * MS, .excess_ns = 5 * MS, .count = 1, .what = "/a"};
	struct part wait = {.cause = CAUSE_THREAD_WAIT,
		.ns = 92 * MS,
		.excess_ns = 92 * MS,
		.who = "GameThread",
		.who_tid = 7,
		.because = &small,
		.n_because = 1};
	struct verdict v = {.parts = &wait, .n_parts = 1};

	check(&v, "92.0 ms waiting for GameThread");
}

static void test_at_most_two_causes_and_a_rest(void **state)
{
	struct part p[] = {cold_read, {.cause = CAUSE_CODE, .ns = 60 * MS, .excess_ns = 50 * MS},
		{.cause = CAUSE_SLEEP, .ns = 30 * MS, .excess_ns = 30 * MS},
		{.cause = CAUSE_KERNEL, .ns = 20 * MS, .excess_ns = 20 * MS}};
	struct verdict v = {.parts = p, .n_parts = 4};

	check(&v, "91.2 ms reading /data/navmesh.bin from disk (3 reads, 50.0 MiB cold); 50.0 ms more than usual "
		  "running code; "
		  "the rest, 50.0 ms, in 2 other ways");
}

static void test_second_cause_below_a_tenth_is_left_out(void **state)
{
	struct part p[] = {cold_read, {.cause = CAUSE_CODE, .ns = 9 * MS, .excess_ns = 5 * MS}};
	struct verdict v = {.parts = p, .n_parts = 2};

	check(&v, "91.2 ms reading /data/navmesh.bin from disk (3 reads, 50.0 MiB cold)");
}

static void test_lost_records_come_first(void **state)
{
	struct verdict v = {.parts = &cold_read, .n_parts = 1, .unsure = true};

	v.frame.lost = 120;
	v.frame.lost_class[CLASS_SCHED] = 100;
	v.frame.lost_class[CLASS_FILE] = 20;
	check(&v, "unsure, 120 records were lost (sched 100, file 20): 91.2 ms reading /data/navmesh.bin from disk (3 "
		  "reads, "
		  "50.0 MiB cold)");
}

static void test_slow_but_usual_says_so(void **state)
{
	struct part p = {.cause = CAUSE_CODE, .ns = 33 * MS, .excess_ns = 0};
	struct verdict v = {.parts = &p, .n_parts = 1};

	check(&v, "no more than usual: 33.0 ms running code");
}

static void test_many_allocations_are_told_with_the_code(void **state)
{
	struct part p = {.cause = CAUSE_CODE, .ns = 33 * MS, .excess_ns = 33 * MS};
	struct verdict v = {.parts = &p, .n_parts = 1, .allocs = 20000, .alloc_bytes = 64 << 20, .typical_allocs = 100};

	check(&v, "33.0 ms running code, with 20000 allocations of 64.0 MiB");
	v.typical_allocs = 19000;
	check(&v, "33.0 ms running code");
}

static void test_every_cause_has_words(void **state)
{
	for (int c = 0; c < CAUSE_COUNT; c++) {
		struct part p = {.cause = c, .ns = 10 * MS, .excess_ns = 10 * MS};
		struct part wait = {.cause = CAUSE_THREAD_WAIT,
			.ns = 10 * MS,
			.excess_ns = 10 * MS,
			.who = "W",
			.who_tid = 1,
			.because = &p,
			.n_because = 1};
		struct verdict v = {.parts = &wait, .n_parts = 1};
		struct str s = {};

		sentence__write(&s, &v);
		assert_true(s.len > strlen("10.0 ms waiting for W, which ") + 3);
		assert_null(strstr(s.s, "(null)"));
		str__free(&s);
	}
}

static void test_fingerprint_leaves_out_figures_and_addresses(void **state)
{
	struct part a = cold_read, b = cold_read, other = cold_read;
	struct part l1 = {.cause = CAUSE_LOCK_WAIT, .what = "mutex at 0x7f0000001000", .who = "A", .who_tid = 1};
	struct part l2 = {.cause = CAUSE_LOCK_WAIT, .what = "mutex at 0x7f0000002000", .who = "A", .who_tid = 2};

	b.ns = 5;
	b.count = 77;
	b.bytes = 1;
	other.what = "/data/other.bin";
	assert_true(sentence__fingerprint(&a) == sentence__fingerprint(&b));
	assert_true(sentence__fingerprint(&a) != sentence__fingerprint(&other));
	assert_true(sentence__fingerprint(&l1) == sentence__fingerprint(&l2));
	l2.who = "B";
	assert_true(sentence__fingerprint(&l1) != sentence__fingerprint(&l2));
}

/* ---- patterns ---- */

static void hitch(struct patterns *p, u64 at_ms, const char *scene)
{
	struct verdict v = {.parts = &cold_read, .n_parts = 1, .slow = true};

	v.frame.start = at_ms * MS;
	v.frame.end = (at_ms + 100) * MS;
	v.frame.number = at_ms;
	strcpy(v.frame.scene, scene);
	patterns__scene(p, &v.frame);
	assert_int_equal(patterns__add(p, &v), 0);
}

static void test_regular_hitches_have_a_period(void **state)
{
	struct patterns p = {};
	const struct pattern *list;
	u32 n;

	for (u64 i = 0; i < 6; i++)
		hitch(&p, 5000 * i + (i & 1) * 20, "");
	list = patterns__list(&p, &n);
	assert_int_equal(n, 1);
	assert_int_equal(list->count, 6);
	assert_in_range(list->period_ns, 4950 * MS, 5050 * MS);
	assert_string_equal(list->text, "reading /data/navmesh.bin");
	patterns__free(&p);
}

static void test_irregular_hitches_have_none(void **state)
{
	static const u64 at[] = {0, 1000, 9000, 9500, 30000};
	struct patterns p = {};
	u32 n;

	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		hitch(&p, at[i], "");
	assert_int_equal(patterns__list(&p, &n)->period_ns, 0);
	patterns__free(&p);
}

static void test_hitches_of_first_visits_are_told_from_those_that_come_back(void **state)
{
	struct patterns p = {};
	const struct pattern *list;
	u32 n;

	hitch(&p, 1000, "forest");
	hitch(&p, 20000, "cave");
	list = patterns__list(&p, &n);
	assert_int_equal(list->first_visits, list->count);
	hitch(&p, 50000, "forest");
	list = patterns__list(&p, &n);
	assert_int_equal(list->count, 3);
	assert_int_equal(list->first_visits, 2);
	patterns__free(&p);
}

static void test_more_patterns_than_fit_are_counted(void **state)
{
	struct patterns p = {};
	char what[32];
	u32 n;

	for (u32 i = 0; i < PATTERNS_MAX + 10; i++) {
		struct part part = cold_read;
		struct verdict v = {.parts = &part, .n_parts = 1};

		snprintf(what, sizeof(what), "/data/%u", i);
		part.what = what;
		assert_int_equal(patterns__add(&p, &v), 0);
	}
	patterns__list(&p, &n);
	assert_int_equal(n, PATTERNS_MAX);
	assert_int_equal(p.others, 10);
	patterns__free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cold_read_says_file_reads_and_bytes),
		cmocka_unit_test(test_chain_ends_at_what_the_other_thread_did),
		cmocka_unit_test(test_reason_that_explains_little_is_not_told),
		cmocka_unit_test(test_at_most_two_causes_and_a_rest),
		cmocka_unit_test(test_second_cause_below_a_tenth_is_left_out),
		cmocka_unit_test(test_lost_records_come_first),
		cmocka_unit_test(test_slow_but_usual_says_so),
		cmocka_unit_test(test_many_allocations_are_told_with_the_code),
		cmocka_unit_test(test_every_cause_has_words),
		cmocka_unit_test(test_fingerprint_leaves_out_figures_and_addresses),
		cmocka_unit_test(test_regular_hitches_have_a_period),
		cmocka_unit_test(test_irregular_hitches_have_none),
		cmocka_unit_test(test_hitches_of_first_visits_are_told_from_those_that_come_back),
		cmocka_unit_test(test_more_patterns_than_fit_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
