// SPDX-License-Identifier: GPL-2.0-only
/* The shift between pairs and its interval, against figures of textbooks and against many drawn samples. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>

#include "paired.h"

static void near(double got, double want)
{
	if (fabs(got - want) > 1e-9)
		fail_msg("%g, not %g", got, want);
}

static void test_the_median_of_odd_and_even_numbers_of_values(void **state)
{
	near(paired__median((double[]){3, 1, 2}, 3), 2);
	near(paired__median((double[]){4, 1, 2, 3}, 4), 2.5);
	near(paired__median(NULL, 0), 0);
}

/* Wilcoxon's critical value for n = 10 at 5 %, two-sided, is 8 */
static void test_the_interval_of_ten_pairs_is_the_one_of_the_tables(void **state)
{
	double d[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}, walsh[55];
	struct shift s = paired__shift(d, 10);
	int m = 0;

	for (int i = 0; i < 10; i++)
		for (int j = i; j < 10; j++)
			walsh[m++] = (d[i] + d[j]) / 2;
	near(s.estimate, paired__median(walsh, 55)); /* sorts them */
	near(s.low, walsh[9 - 1]);
	near(s.high, walsh[55 - 9]);
	near(s.confidence, 1 - 2 * 25.0 / 1024); /* P(W <= 8) = 25/1024 */
}

static void test_with_six_pairs_of_one_sign_a_shift_is_just_measurable(void **state)
{
	struct shift s = paired__shift((double[]){1, 2, 3, 4, 5, 6}, 6);

	assert_true(s.measurable);
	near(s.low, 1);
	near(s.high, 6);
	near(s.confidence, 1 - 2.0 / 64);
}

static void test_with_five_pairs_nothing_is_measurable(void **state)
{
	struct shift s = paired__shift((double[]){1, 1, 1, 1, 1}, 5);

	assert_false(s.measurable);
	near(s.confidence, 0);
	near(s.estimate, 1);
}

static void test_pairs_that_do_not_differ_are_not_measurable(void **state)
{
	struct shift s = paired__shift((double[10]){0}, 10);

	assert_false(s.measurable);
	near(s.estimate, 0);
}

static double draw(void)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += rand() / (double)RAND_MAX - 0.5;
	return sum;
}

/* of 2000 samples of 12 pairs the interval holds the true shift in 95 % at least, and is not much wider than needed */
static void test_the_interval_holds_the_true_shift_as_often_as_it_says(void **state)
{
	int held = 0, wrong = 0;

	srand(7);
	for (int i = 0; i < 2000; i++) {
		double d[12];
		struct shift s;

		for (int k = 0; k < 12; k++)
			d[k] = 0.3 + draw();
		s = paired__shift(d, 12);
		held += s.low <= 0.3 && 0.3 <= s.high;
		for (int k = 0; k < 12; k++)
			d[k] -= 0.3;
		wrong += paired__shift(d, 12).measurable;
	}
	assert_in_range(held, 1880, 1940); /* 95.8 %: the exact interval's */
	assert_in_range(wrong, 60, 120);
}

static void test_one_outlier_does_not_move_the_estimate_far(void **state)
{
	double d[] = {1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 1.02, 0.98, 1.0, 1000};
	struct shift s = paired__shift(d, 10);

	assert_true(s.measurable);
	assert_true(s.estimate > 0.9 && s.estimate < 1.1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_median_of_odd_and_even_numbers_of_values),
		cmocka_unit_test(test_the_interval_of_ten_pairs_is_the_one_of_the_tables),
		cmocka_unit_test(test_with_six_pairs_of_one_sign_a_shift_is_just_measurable),
		cmocka_unit_test(test_with_five_pairs_nothing_is_measurable),
		cmocka_unit_test(test_pairs_that_do_not_differ_are_not_measurable),
		cmocka_unit_test(test_the_interval_holds_the_true_shift_as_often_as_it_says),
		cmocka_unit_test(test_one_outlier_does_not_move_the_estimate_far),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
