// SPDX-License-Identifier: GPL-2.0-only
/* redframe overhead: what it measures of a game of which the answer is known. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"

/* the figure of a class; fails the test where it is not there */
static double figure(const char *text, const char *class, const char *key)
{
	char at[64], *c, *k;

	snprintf(at, sizeof(at), "\"%s\": {", class);
	c = strstr(text, at);
	snprintf(at, sizeof(at), "\"%s\": ", key);
	k = c ? strstr(c, at) : NULL;
	if (!k)
		fail_msg("no %s.%s in: %s", class, key, text);
	return strtod(k + strlen(at), NULL);
}

static bool measurable(const char *text, const char *class)
{
	char want[96];

	snprintf(want, sizeof(want), "\"%s\": {\"measured\": true, \"measurable\": true", class);
	return strstr(text, want) != NULL;
}

/* 25,000 calls in a frame of 5 ms, of 0.3 µs each at least: no machine hides that */
static void test_probes_on_a_busy_allocator_are_measured_as_dear(void **state)
{
	char pid[16], *text;
	struct live l;
	pid_t overhead;

	live__init(&l);
	live__start(&l, "storm", "12", NULL);
	snprintf(pid, sizeof(pid), "%d", l.target);
	overhead = live__spawn(&l, "overhead",
		(char *const[]){(char *)live__program(), "overhead", "-p", pid, "--events", "alloc", "--pairs", "6",
			"--block", "0.2", "--json", NULL});
	live__go(&l);
	assert_int_equal(live__wait(overhead), 0);
	live__end_target(&l);
	text = live__read(&l, "overhead");
	assert_true(measurable(text, "alloc"));
	assert_true(figure(text, "alloc", "low_ms") > 0);
	assert_true(figure(text, "alloc", "change_ms") > 25000 * 0.0001);
	assert_true(figure(text, "alloc", "confidence") >= 0.95);
	printf("  %+.2f ms in a frame of %.2f ms, of 25,000 calls: %.0f ns a call\n",
		figure(text, "alloc", "change_ms"), figure(text, "alloc", "median_ms"),
		figure(text, "alloc", "change_ms") * 1e6 / 25000);
	free(text);
	live__free(&l);
}

static void test_a_game_with_time_left_is_measured_for_each_class_asked_for(void **state)
{
	char *const game[] = {LIVE_BUILD "/examples/hitches", "--hitch", "none", "--fps", "200", "--frames", "20000",
		"--quiet", NULL};
	char pid[16], *text;
	struct live l;
	int status;

	live__init(&l);
	live__start_program(&l, game);
	usleep(500000);
	snprintf(pid, sizeof(pid), "%d", l.target);
	text = live__output(&l, &status,
		(char *const[]){(char *)live__program(), "overhead", "-p", pid, "--events", "sched,fault", "--pairs",
			"6", "--block", "0.1", "--json", NULL});
	assert_int_equal(status, 0);
	/* its limiter sleeps out the 5 ms whatever happens */
	assert_true(figure(text, "sched", "median_ms") > 4.5 && figure(text, "fault", "median_ms") > 4.5);
	assert_true(figure(text, "sched", "low_ms") <= figure(text, "sched", "change_ms"));
	assert_true(figure(text, "sched", "high_ms") >= figure(text, "sched", "change_ms"));
	kill(l.target, SIGKILL);
	waitpid(l.target, NULL, 0);
	l.target = 0;
	free(text);
	live__free(&l);
}

static void test_without_frames_nothing_is_measured_and_the_status_says_so(void **state)
{
	struct live l;
	char pid[16], *text;
	int status;

	live__init(&l);
	live__start(&l, "file", l.dir, NULL);
	snprintf(pid, sizeof(pid), "%d", l.target);
	text = live__output(
		&l, &status, (char *const[]){(char *)live__program(), "overhead", "-p", pid, "--json", NULL});
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 5);
	free(text);
	kill(l.target, SIGKILL);
	waitpid(l.target, NULL, 0);
	l.target = 0;
	live__free(&l);
}

/* the same busy allocator, with 25,000 calls a frame */
static void verify_storm(struct live *l, const char *seconds, const char *alloc, const char *bound)
{
	live__init(l);
	live__start(l, "storm", "50", NULL);
	live__record(l, "-d", seconds, "--alloc", alloc, "--max-overhead", bound, "--verify", NULL);
	assert_int_equal(write(l->go, "g", 1), 1);
	live__end_redframe(l); /* however long it takes where others have the CPUs */
	kill(l->target, SIGKILL);
	waitpid(l->target, NULL, 0);
	l->target = 0;
	live__load(l);
}

/* false: not measurable */
static bool change_of(const struct live *l, double *change)
{
	const char *measured = model__info(l->model, "cost.measured");
	double low, high;
	int is;

	assert_non_null(measured);
	if (sscanf(measured, "measurable=%d change_ms=%lf low_ms=%lf high_ms=%lf", &is, change, &low, &high) != 4)
		fail_msg("cost.measured: %s", measured);
	assert_true(*change >= low && *change <= high);
	return is;
}

static void test_verify_measures_the_recording_that_has_ended_and_keeps_it_in_it(void **state)
{
	struct live l;
	double change;

	verify_storm(&l, "1", "all", "0");
	assert_true(change_of(&l, &change));
	assert_true(change > 25000 * 0.0001);
	assert_non_null(strstr(l.said, "recording changes the median frame of "));
	live__free(&l);
}

/* the calls of the allocator, which go at once and come back after 10 s */
static void test_verify_leaves_out_what_was_left_out_at_the_end(void **state)
{
	struct live l;
	double change;

	verify_storm(&l, "3", "large", "3");
	assert_non_null(strstr(l.said, "allocator calls are left out"));
	change_of(&l, &change);
	assert_true(change < 25000 * 0.0004); /* ms; with them it were 0.0007 at the least */
	live__free(&l);
}

static void test_verify_says_why_it_has_not_measured(void **state)
{
	struct live l;

	live__init(&l);
	live__start(&l, "frame", NULL);
	live__record(&l, "--verify", NULL);
	live__go(&l);
	live__end_target(&l);
	live__end_redframe(&l);
	live__load(&l);
	assert_string_equal(model__info(l.model, "cost.measured"), "not measured: the game has ended");
	assert_non_null(strstr(l.said, "not measured: the game has ended"));
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_probes_on_a_busy_allocator_are_measured_as_dear),
	cmocka_unit_test(test_a_game_with_time_left_is_measured_for_each_class_asked_for),
	cmocka_unit_test(test_verify_measures_the_recording_that_has_ended_and_keeps_it_in_it),
	cmocka_unit_test(test_verify_leaves_out_what_was_left_out_at_the_end),
	cmocka_unit_test(test_verify_says_why_it_has_not_measured),
	cmocka_unit_test(test_without_frames_nothing_is_measured_and_the_status_says_so),
};
LIVE_MAIN(tests)
