/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "baseline.h"
#include "histogram.h"

#define MS 1000000ULL

/* A tree of one level, by hand. */
struct small {
	struct tree tree;
	struct node nodes[16];
};

static void small__begin(struct small *s)
{
	memset(s, 0, sizeof(*s));
	s->tree.nodes = s->nodes;
	s->tree.n = 1;
}

/* what: a thing; group: another thread */
static struct node *small__add(struct small *s, enum cause cause, u64 ns, u64 group)
{
	u32 i = s->tree.n++;
	struct node *n = &s->nodes[i];

	*n = (struct node){.cause = cause, .ns = ns, .group = group, .depth = 1, .key = 1 + cause + 100 * group};
	if (s->nodes[0].last_child)
		s->nodes[s->nodes[0].last_child].next = i;
	else
		s->nodes[0].child = i;
	s->nodes[0].last_child = i;
	s->nodes[0].ns += ns;
	return n;
}

static void push(struct baseline *b, u64 code_ns, u64 sleep_ns, bool normal)
{
	struct small s;

	small__begin(&s);
	small__add(&s, CAUSE_CODE, code_ns, 0);
	small__add(&s, CAUSE_SLEEP, sleep_ns, 0);
	assert_int_equal(baseline__push(b, &s.tree, normal), 0);
}

static void test_auto_budget_is_one_and_a_half_medians_and_2_ms_over(void **state)
{
	struct baseline *b = baseline__new();

	for (int i = 0; i < 4; i++)
		push(b, 10 * MS, 0, true);
	assert_int_equal(baseline__auto_budget(b), 0); /* too few */
	push(b, 10 * MS, 0, true);
	assert_int_equal(baseline__auto_budget(b), 15 * MS);
	for (int i = 0; i < 120; i++)
		push(b, 2 * MS, 0, true);
	assert_int_equal(baseline__auto_budget(b), 4 * MS);
	baseline__free(b);
}

static void test_median_rolls_over_the_last_120_frames(void **state)
{
	struct baseline *b = baseline__new();

	for (int i = 0; i < 1000; i++)
		push(b, 50 * MS, 0, true);
	for (int i = 0; i < 60; i++)
		push(b, 10 * MS, 0, true);
	assert_int_equal(baseline__auto_budget(b), 15 * MS); /* the lower of the two in the middle */
	baseline__free(b);
}

static void test_slow_frames_are_not_typical(void **state)
{
	struct baseline *b = baseline__new();

	for (int i = 0; i < 100; i++)
		push(b, i % 3 ? 90 * MS : 10 * MS, 0, !(i % 3));
	assert_int_equal(baseline__typical(b), 10 * MS);
	baseline__free(b);
}

static void test_where_hardly_a_frame_is_normal_all_count(void **state)
{
	struct baseline *b = baseline__new();

	for (int i = 0; i < 100; i++)
		push(b, i == 50 ? 10 * MS : 33 * MS, 0, i == 50);
	assert_int_equal(baseline__typical(b), 33 * MS);
	baseline__free(b);
}

static void test_excess_is_time_minus_median_of_the_cause(void **state)
{
	struct baseline *b = baseline__new();
	struct small s;
	struct node *code, *sleep, *read;

	for (int i = 0; i < 40; i++)
		push(b, 4 * MS, 10 * MS, true);
	small__begin(&s);
	code = small__add(&s, CAUSE_CODE, 5 * MS, 0);
	sleep = small__add(&s, CAUSE_SLEEP, 3 * MS, 0);
	read = small__add(&s, CAUSE_FILE_READ, 30 * MS, 0);
	baseline__excess(b, &s.tree, 0);
	assert_int_equal(code->excess, 1 * MS);
	assert_int_equal(sleep->excess, -(s64)(7 * MS));
	assert_int_equal(read->excess, 30 * MS);
	baseline__free(b);
}

static void test_the_usual_thread_is_no_culprit(void **state)
{
	struct baseline *b = baseline__new();
	struct small s;
	struct node *usual, *unusual;

	for (int i = 0; i < 40; i++) {
		small__begin(&s);
		small__add(&s, CAUSE_THREAD_WAIT, 12 * MS, 7);
		assert_int_equal(baseline__push(b, &s.tree, true), 0);
	}
	small__begin(&s);
	usual = small__add(&s, CAUSE_THREAD_WAIT, 12 * MS, 7);
	unusual = small__add(&s, CAUSE_THREAD_WAIT, 8 * MS, 9);
	baseline__excess(b, &s.tree, 0);
	assert_int_equal(usual->excess, 0);
	assert_int_equal(unusual->excess, 8 * MS);
	baseline__free(b);
}

static void test_of_several_things_the_small_ones_are_the_usual(void **state)
{
	struct baseline *b = baseline__new();
	struct small s;
	struct node *small, *large;

	for (int i = 0; i < 40; i++) {
		small__begin(&s);
		small__add(&s, CAUSE_FILE_READ, 2 * MS, 0);
		assert_int_equal(baseline__push(b, &s.tree, true), 0);
	}
	small__begin(&s);
	large = small__add(&s, CAUSE_FILE_READ, 40 * MS, 0);
	small = small__add(&s, CAUSE_FILE_READ, 2 * MS, 0);
	baseline__excess(b, &s.tree, 0);
	assert_int_equal(large->excess, 40 * MS);
	assert_int_equal(small->excess, 0);
	baseline__free(b);
}

static void test_first_frames_are_compared_with_the_budget(void **state)
{
	struct baseline *b = baseline__new();
	struct small s;
	struct node *code, *sleep, *read;

	push(b, 4 * MS, 10 * MS, true);
	assert_false(baseline__warm(b));
	assert_int_equal(baseline__typical(b), 0);
	small__begin(&s);
	code = small__add(&s, CAUSE_CODE, 8 * MS, 0);
	sleep = small__add(&s, CAUSE_SLEEP, 6 * MS, 0);
	read = small__add(&s, CAUSE_FILE_READ, 30 * MS, 0);
	baseline__excess(b, &s.tree, 16 * MS);
	assert_int_equal(sleep->excess, 0);
	assert_int_equal(code->excess, 0);
	assert_int_equal(read->excess, 28 * MS); /* 44 ms - 16 ms */
	baseline__free(b);
}

static void test_more_threads_than_are_remembered_do_no_harm(void **state)
{
	struct baseline *b = baseline__new();
	struct small s;

	for (u64 i = 0; i < 5000; i++) {
		small__begin(&s);
		small__add(&s, CAUSE_THREAD_WAIT, 5 * MS, i + 1);
		small__add(&s, CAUSE_SLEEP, 5 * MS, 0);
		assert_int_equal(baseline__push(b, &s.tree, true), 0);
	}
	baseline__excess(b, &s.tree, 0);
	assert_int_equal(s.nodes[1].excess, 0); /* the cause has its median, whoever it was */
	assert_int_equal(s.nodes[2].excess, 0);
	baseline__free(b);
}

/* ---- percentiles ---- */

static void test_percentiles_are_nearest_rank_and_exact(void **state)
{
	struct histogram h = {};

	assert_int_equal(histogram__rank(&h, 500), 0);
	for (u64 i = 100; i >= 1; i--)
		assert_int_equal(histogram__add(&h, i * MS + 1), 0);
	assert_int_equal(histogram__rank(&h, 500), 50 * MS + 1);
	assert_int_equal(histogram__rank(&h, 950), 95 * MS + 1);
	assert_int_equal(histogram__rank(&h, 999), 100 * MS + 1);
	assert_int_equal(histogram__rank(&h, 1), 1 * MS + 1);
	assert_true(histogram__mean_of_worst(&h, 100) == 100.0 * MS + 1);
	assert_true(histogram__mean_of_worst(&h, 10) == 95.5 * MS + 1);
	histogram__free(&h);
}

static void test_percentiles_of_very_many_frames_are_within_a_thousandth(void **state)
{
	struct histogram h = {};
	u64 n = HISTOGRAM_EXACT + 100000;

	for (u64 i = 1; i <= n; i++)
		assert_int_equal(histogram__add(&h, i * 1000), 0);
	assert_false(histogram__exact(&h));
	for (u32 permille = 1; permille <= 1000; permille += 37) {
		double want = (double)((n * permille + 999) / 1000 * 1000), got = histogram__rank(&h, permille);

		assert_true(got >= want && got <= want * 1.001);
	}
	assert_int_equal(histogram__rank(&h, 1000), n * 1000);
	histogram__free(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_auto_budget_is_one_and_a_half_medians_and_2_ms_over),
		cmocka_unit_test(test_median_rolls_over_the_last_120_frames),
		cmocka_unit_test(test_slow_frames_are_not_typical),
		cmocka_unit_test(test_where_hardly_a_frame_is_normal_all_count),
		cmocka_unit_test(test_excess_is_time_minus_median_of_the_cause),
		cmocka_unit_test(test_the_usual_thread_is_no_culprit),
		cmocka_unit_test(test_of_several_things_the_small_ones_are_the_usual),
		cmocka_unit_test(test_first_frames_are_compared_with_the_budget),
		cmocka_unit_test(test_more_threads_than_are_remembered_do_no_harm),
		cmocka_unit_test(test_percentiles_are_nearest_rank_and_exact),
		cmocka_unit_test(test_percentiles_of_very_many_frames_are_within_a_thousandth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
