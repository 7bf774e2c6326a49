// SPDX-License-Identifier: GPL-2.0-only
/* What is left out, when, and when it comes back: series of estimates in, decisions out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "effect.h"
#include "governor.h"
#include "stepped.h"

#define ALL (SHED_BIT(SHED_STEPS) - 1)

struct series {
	struct governor g;
	u64 ts;
};

static struct series begin(double max_percent, u32 may)
{
	struct series s = {.ts = 1000 * NSEC_PER_SEC};

	governor__init(&s.g, max_percent, may);
	return s;
}

/* For so many ms each step costs so many percent of a CPU, unless it is left out. What is out in the end. */
static u32 go_on(struct series *s, int ms, double alloc, double sample, double stack, double file, double fixed)
{
	const double cost[SHED_STEPS] = {
		[SHED_ALLOC] = alloc, [SHED_SAMPLE] = sample, [SHED_STACK] = stack, [SHED_FILE] = file};
	u32 out = s->g.out;

	for (int t = 0; t < ms; t += (int)(GOVERNOR_TICK_NS / NSEC_PER_MSEC)) {
		struct governor_look l = {.ts = s->ts += GOVERNOR_TICK_NS, .wall_ns = GOVERNOR_TICK_NS};

		l.fixed_ns = (u64)(fixed / 100 * GOVERNOR_TICK_NS);
		for (int i = 0; i < SHED_STEPS; i++)
			if (!(s->g.out & SHED_BIT(i)))
				l.ns[i] = (u64)(cost[i] / 100 * GOVERNOR_TICK_NS);
		out = governor__look(&s->g, &l);
	}
	return out;
}

static void test_below_the_bound_nothing_is_left_out(void **state)
{
	struct series s = begin(3, ALL);

	assert_int_equal(go_on(&s, 60000, 1, 0.5, 0.5, 0.5, 0.4), 0);
}

static void test_a_flood_of_allocations_is_left_out_within_100_ms(void **state)
{
	struct series s = begin(3, ALL);

	go_on(&s, 1000, 0.1, 0.2, 0.1, 0.1, 0.3);
	assert_int_equal(go_on(&s, 100, 80, 0.2, 0.1, 0.1, 0.3), SHED_BIT(SHED_ALLOC));
}

static void test_a_burst_of_one_slow_frame_changes_nothing(void **state)
{
	struct series s = begin(3, ALL);

	for (int i = 0; i < 20; i++) {
		assert_int_equal(go_on(&s, 80, 80, 0, 0, 0, 0), 0);
		assert_int_equal(go_on(&s, 50, 1, 0, 0, 0, 0), 0);
		assert_int_equal(go_on(&s, 80, 0, 0, 0, 0, 80), 0);
		assert_int_equal(go_on(&s, 50, 1, 0, 0, 0, 0), 0);
	}
}

static void test_a_little_above_the_bound_something_goes_after_half_a_second(void **state)
{
	struct series s = begin(3, ALL);

	assert_int_equal(go_on(&s, 500, 4, 0, 0, 0, 0), 0);
	assert_int_equal(go_on(&s, 100, 4, 0, 0, 0, 0), SHED_BIT(SHED_ALLOC));
}

static void test_a_peak_shorter_than_half_a_second_changes_nothing(void **state)
{
	struct series s = begin(3, ALL);

	for (int i = 0; i < 20; i++) {
		assert_int_equal(go_on(&s, 400, 5, 0, 0, 0, 0), 0);
		assert_int_equal(go_on(&s, 400, 1, 0, 0, 0, 0), 0);
	}
}

static void test_what_is_left_out_goes_in_the_documented_order(void **state)
{
	const u32 order[] = {SHED_BIT(SHED_ALLOC), SHED_BIT(SHED_SAMPLE), SHED_BIT(SHED_STACK), SHED_BIT(SHED_FILE)};
	double fixed[] = {1, 3, 5, 7};
	u32 want = 0;

	for (int i = 0; i < 4; i++) {
		struct series s = begin(9, ALL);

		want |= order[i];
		/* each costs 2 %: with so much that stays, i + 1 of them must go */
		assert_int_equal(go_on(&s, 600, 2, 2, 2, 2, 1 + fixed[i]), want);
	}
}

static void test_what_other_processes_pay_goes_before_anything_of_the_game(void **state)
{
	struct series s = begin(3, ALL);
	struct governor_look l = {.wall_ns = GOVERNOR_TICK_NS};

	for (int i = 0; i < SHED_STEPS; i++)
		l.ns[i] = GOVERNOR_TICK_NS / 200;
	l.ns[SHED_KERNEL_FAULT] = GOVERNOR_TICK_NS / 10;
	for (l.ts = s.ts; l.ts < s.ts + 600 * NSEC_PER_MSEC; l.ts += GOVERNOR_TICK_NS)
		if (governor__look(&s.g, &l) & SHED_BIT(SHED_KERNEL_FAULT))
			l.ns[SHED_KERNEL_FAULT] = 0;
	assert_int_equal(s.g.out, SHED_BIT(SHED_KERNEL_FAULT));
}

static void test_system_calls_go_after_all_else(void **state)
{
	const u32 rest = SHED_BIT(SHED_ALLOC) | SHED_BIT(SHED_SAMPLE) | SHED_BIT(SHED_STACK) | SHED_BIT(SHED_FILE);

	for (int more = 0; more < 2; more++) {
		struct series s = begin(9, ALL);
		struct governor_look l = {.wall_ns = GOVERNOR_TICK_NS};

		for (l.ts = s.ts; l.ts < s.ts + 600 * NSEC_PER_MSEC; l.ts += GOVERNOR_TICK_NS) {
			for (int i = SHED_ALLOC; i < SHED_STEPS; i++)
				l.ns[i] = s.g.out & SHED_BIT(i) ? 0 : GOVERNOR_TICK_NS / 50;
			l.fixed_ns = GOVERNOR_TICK_NS / 100 * (6 + 2 * more);
			governor__look(&s.g, &l);
		}
		assert_int_equal(s.g.out, more ? rest | SHED_BIT(SHED_CALL) : rest);
	}
}

static void test_what_saves_next_to_nothing_stays(void **state)
{
	struct series s = begin(3, ALL);

	assert_int_equal(go_on(&s, 600, 0.1, 0.1, 0.1, 5, 0.1), SHED_BIT(SHED_FILE));
}

static void test_what_may_not_be_left_out_stays_whatever_it_costs(void **state)
{
	struct series s = begin(3, ALL & ~SHED_BIT(SHED_ALLOC));

	assert_int_equal(go_on(&s, 5000, 90, 0, 0, 0, 0), 0);
	assert_int_equal(go_on(&s, 5000, 0, 0, 0, 0, 90), 0);
}

static void test_without_a_bound_nothing_is_left_out(void **state)
{
	struct series s = begin(0, ALL);

	assert_int_equal(go_on(&s, 5000, 90, 90, 90, 90, 90), 0);
}

static void test_when_calm_the_last_that_went_comes_back_first(void **state)
{
	struct series s = begin(3, ALL);

	assert_int_equal(go_on(&s, 600, 5, 5, 0, 0, 0), SHED_BIT(SHED_ALLOC) | SHED_BIT(SHED_SAMPLE));
	assert_int_equal(go_on(&s, 9900, 1, 1, 0, 0, 0), SHED_BIT(SHED_ALLOC) | SHED_BIT(SHED_SAMPLE));
	assert_int_equal(go_on(&s, 100, 1, 1, 0, 0, 0), SHED_BIT(SHED_ALLOC));
	assert_int_equal(go_on(&s, 1800, 1, 1, 0, 0, 0), SHED_BIT(SHED_ALLOC));
	assert_int_equal(go_on(&s, 100, 1, 1, 0, 0, 0), 0);
}

static void test_near_the_bound_nothing_comes_back(void **state)
{
	struct series s = begin(3, ALL);

	go_on(&s, 100, 40, 0, 0, 0, 0);
	assert_int_equal(go_on(&s, 60000, 1, 0, 0, 0, 2.5), SHED_BIT(SHED_ALLOC));
	assert_int_equal(go_on(&s, 100, 1, 0, 0, 0, 1.5), 0);
}

/* how many of 600 s a flood that never ends is tried again */
static void test_a_flood_that_stays_is_tried_ever_more_rarely(void **state)
{
	struct series s = begin(3, ALL);
	int tries = 0;
	u32 before;

	go_on(&s, 100, 80, 0, 0, 0, 0);
	for (int i = 0; i < 6000; i++) {
		before = s.g.out;
		go_on(&s, 100, 80, 0, 0, 0, 0);
		tries += before && !s.g.out;
	}
	assert_in_range(tries, 4, 6); /* after 10, 20, 40, 80, 160 and 320 s */
}

static void test_after_calm_time_the_pause_is_short_again(void **state)
{
	struct series s = begin(3, ALL);

	for (int i = 0; i < 300; i++)
		go_on(&s, 100, 80, 0, 0, 0, 0);
	assert_true(s.g.pause_ns > GOVERNOR_PAUSE_NS);
	go_on(&s, 400000, 1, 0, 0, 0, 0);
	assert_int_equal(s.g.pause_ns, GOVERNOR_PAUSE_NS);
	assert_int_equal(s.g.out, 0);
}

static void test_a_clock_that_does_not_advance_decides_nothing(void **state)
{
	struct series s = begin(3, ALL);
	struct governor_look l = {.ts = 5, .ns = {1000, 1000, 1000, 1000}};

	assert_int_equal(governor__look(&s.g, &l), 0);
}

static void test_the_estimate_is_hits_times_price_and_stepped_hits_are_dear(void **state)
{
	struct prices p = effect__prices(1000, 20000, 3000);
	struct hits h = {.stepped = 10, .stacks = 2, .kernel_stacks = 3};
	struct effect e;

	h.class[CLASS_ALLOC] = 110;
	h.class[CLASS_SCHED] = 5;
	h.class[CLASS_FAULT] = 7;
	h.class[CLASS_SAMPLE] = 5;
	e = effect__of(&p, &h);
	assert_true(p.calibrated);
	assert_int_equal(e.class[CLASS_ALLOC], 100 * 1000 + 10 * 20000 + 110 * p.class[CLASS_ALLOC]);
	assert_int_equal(e.class[CLASS_FAULT], 7 * p.class[CLASS_FAULT]);
	assert_int_equal(e.class[CLASS_SAMPLE], 5 * (3000 + p.class[CLASS_SAMPLE]));
	assert_int_equal(e.class[CLASS_SCHED], 5 * p.class[CLASS_SCHED] + 3 * p.kernel_stack);
	assert_int_equal(e.stacks, 2 * p.stack);
	assert_int_equal(e.class[CLASS_LOCK], 0);
}

static void test_calls_that_make_no_record_cost_the_game_too(void **state)
{
	struct prices p = effect__prices(1000, 20000, 0);
	struct hits h = {.calls = 100, .mem_calls = 2, .other_calls = 40};
	struct effect e;

	h.class[CLASS_LOCK] = 3;
	h.class[CLASS_FILE] = 4;
	h.class[CLASS_SYSCALL] = 1;
	e = effect__of(&p, &h);
	assert_int_equal(e.class[CLASS_SYSCALL], p.class[CLASS_SYSCALL] + 2 * p.mem_call + 90 * p.call);
	assert_int_equal(e.other_calls, 40 * p.other_call);
	h.class[CLASS_FILE] = 400; /* io_uring's requests are no calls */
	assert_int_equal(effect__of(&p, &h).class[CLASS_SYSCALL], p.class[CLASS_SYSCALL] + 2 * p.mem_call);
}

static void test_stepped_hits_of_the_frame_source_are_dear_too(void **state)
{
	struct prices p = effect__prices(1000, 20000, 0);
	struct hits h = {.stepped_marks = 4};

	h.class[CLASS_FRAME] = 10;
	assert_int_equal(effect__of(&p, &h).class[CLASS_FRAME], 6 * 1000 + 4 * 20000 + 10 * p.class[CLASS_FRAME]);
	h.stepped_marks = 12; /* calls that were no frames */
	assert_int_equal(effect__of(&p, &h).class[CLASS_FRAME], 12 * 20000 + 10 * p.class[CLASS_FRAME]);
}

/* looks 50 ms apart; the ms after which it was too much, -1: never */
static int hot_after_ms(struct stepped_rate *r, u64 from_ms, u64 for_ms, u64 calls_per_sec, u64 *calls)
{
	for (u64 ms = 50; ms <= for_ms; ms += 50) {
		*calls += calls_per_sec / 20;
		if (stepped_rate__look(r, (from_ms + ms) * NSEC_PER_MSEC, *calls))
			return (int)ms;
	}
	return -1;
}

static void test_a_stepped_source_is_hot_after_two_seconds_above_its_limit(void **state)
{
	struct stepped_rate r = {};
	u64 calls = 0;

	assert_int_equal(hot_after_ms(&r, 1000, 10000, 1000, &calls), -1);
	assert_in_range(hot_after_ms(&r, 11000, 10000, 1100, &calls), 2000, 2500);
	assert_in_range(r.calls_per_sec, 1090, 1110);
}

static void test_a_stepped_source_may_be_called_often_for_less_than_two_seconds(void **state)
{
	struct stepped_rate r = {};
	u64 calls = 0;

	for (u64 ms = 1000; ms < 20000; ms += 2500) {
		assert_int_equal(hot_after_ms(&r, ms, 1500, 20000, &calls), -1);
		assert_int_equal(hot_after_ms(&r, ms + 1500, 1000, 0, &calls), -1);
	}
}

static void test_prices_that_could_not_be_measured_say_so(void **state)
{
	struct prices p = effect__prices(0, 0, 0);

	assert_false(p.calibrated);
	assert_true(p.uprobe > 0 && p.stepped > p.uprobe);
}

static void test_where_a_tick_is_dear_there_are_fewer_samples(void **state)
{
	assert_int_equal(effect__sample_hz(0, 3), 1000); /* not measured */
	assert_int_equal(effect__sample_hz(5000, 3), 1000);
	assert_int_equal(effect__sample_hz(5001, 3), 500);
	assert_int_equal(effect__sample_hz(14000, 3), 250);
	assert_int_equal(effect__sample_hz(1000000, 3), 250);
	assert_int_equal(effect__sample_hz(14000, 6), 500);
	assert_int_equal(effect__sample_hz(1000000, 0), 1000); /* no bound */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_below_the_bound_nothing_is_left_out),
		cmocka_unit_test(test_where_a_tick_is_dear_there_are_fewer_samples),
		cmocka_unit_test(test_a_flood_of_allocations_is_left_out_within_100_ms),
		cmocka_unit_test(test_a_burst_of_one_slow_frame_changes_nothing),
		cmocka_unit_test(test_a_little_above_the_bound_something_goes_after_half_a_second),
		cmocka_unit_test(test_a_peak_shorter_than_half_a_second_changes_nothing),
		cmocka_unit_test(test_what_is_left_out_goes_in_the_documented_order),
		cmocka_unit_test(test_system_calls_go_after_all_else),
		cmocka_unit_test(test_what_saves_next_to_nothing_stays),
		cmocka_unit_test(test_what_other_processes_pay_goes_before_anything_of_the_game),
		cmocka_unit_test(test_what_may_not_be_left_out_stays_whatever_it_costs),
		cmocka_unit_test(test_without_a_bound_nothing_is_left_out),
		cmocka_unit_test(test_when_calm_the_last_that_went_comes_back_first),
		cmocka_unit_test(test_near_the_bound_nothing_comes_back),
		cmocka_unit_test(test_a_flood_that_stays_is_tried_ever_more_rarely),
		cmocka_unit_test(test_after_calm_time_the_pause_is_short_again),
		cmocka_unit_test(test_a_clock_that_does_not_advance_decides_nothing),
		cmocka_unit_test(test_the_estimate_is_hits_times_price_and_stepped_hits_are_dear),
		cmocka_unit_test(test_calls_that_make_no_record_cost_the_game_too),
		cmocka_unit_test(test_stepped_hits_of_the_frame_source_are_dear_too),
		cmocka_unit_test(test_a_stepped_source_is_hot_after_two_seconds_above_its_limit),
		cmocka_unit_test(test_a_stepped_source_may_be_called_often_for_less_than_two_seconds),
		cmocka_unit_test(test_prices_that_could_not_be_measured_say_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
