// SPDX-License-Identifier: GPL-2.0-only
/* However a recording ends, it is whole, and nothing stays behind in the game or in the kernel. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"

static void start(struct live *l)
{
	live__init(l);
	live__start(l, "ticker", NULL);
	l->truth = live__read(l, "truth");
}

static void whole(struct live *l, int status)
{
	assert_true(WIFEXITED(l->status));
	if (WEXITSTATUS(l->status) != status)
		fail_msg("exit %d, not %d; it said: %s", WEXITSTATUS(l->status), status, l->said);
	live__load(l);
	live__no_loss(l);
	assert_false(l->incomplete);
}

/* numbers in a row: nothing between the first and the last frame is missing */
static size_t frames_in_order(const struct live *l)
{
	const struct live_event *e;
	size_t n = 0;
	u64 first = 0;

	live__each(l, at, e, EV_FRAME)
	{
		const struct ev_frame *f = (const void *)e->hdr;

		first = n ? first : f->number;
		assert_int_equal(f->number, first + n);
		n++;
	}
	return n;
}

static void ended_by(int sig)
{
	struct live l;

	start(&l);
	live__record(&l, NULL);
	usleep(300000);
	kill(l.redframe, sig);
	live__end_redframe(&l);
	whole(&l, 0);
	assert_true(frames_in_order(&l) > 2);
	assert_int_equal(live__semaphore(&l, 0), 0);
	live__free(&l);
}

static void test_sigint_ends_a_recording_cleanly(void **state)
{
	ended_by(SIGINT);
}
static void test_sigterm_ends_a_recording_cleanly(void **state)
{
	ended_by(SIGTERM);
}
static void test_sighup_ends_a_recording_cleanly(void **state)
{
	ended_by(SIGHUP);
}

static void test_the_end_of_the_game_ends_the_recording(void **state)
{
	struct live l;

	start(&l);
	live__record(&l, NULL);
	usleep(200000);
	assert_int_equal(write(l.go, "g", 1), 1);
	live__end_target(&l);
	assert_int_equal(WEXITSTATUS(l.target_status), 7);
	live__end_redframe(&l);
	whole(&l, 0);
	assert_true(frames_in_order(&l) > 2);
	live__free(&l);
}

static void test_a_crash_of_the_game_ends_the_recording(void **state)
{
	struct live l;

	live__init(&l);
	live__start(&l, "ticker", "crash", NULL);
	live__record(&l, NULL);
	usleep(200000);
	assert_int_equal(write(l.go, "g", 1), 1);
	live__end_target(&l);
	assert_true(WIFSIGNALED(l.target_status) && WTERMSIG(l.target_status) == SIGSEGV);
	live__end_redframe(&l);
	whole(&l, 0);
	live__free(&l);
}

static void test_after_the_given_time_it_ends_and_the_game_goes_on(void **state)
{
	struct live l;

	start(&l);
	live__record(&l, "-d", "0.5", NULL);
	live__end_redframe(&l);
	whole(&l, 0);
	assert_int_equal(kill(l.target, 0), 0);
	assert_true(model__stats(l.model)->last - model__stats(l.model)->first >= 400000000);
	live__free(&l);
}

static void test_after_n_frames_it_ends_with_at_least_n_frames(void **state)
{
	struct live l;

	start(&l);
	live__record(&l, "--frames", "20", NULL);
	live__end_redframe(&l);
	whole(&l, 0);
	assert_true(frames_in_order(&l) >= 21);
	assert_true(model__stats(l.model)->frames >= 20);
	live__free(&l);
}

static void test_after_sigkill_what_was_flushed_is_readable_and_nothing_stays_attached(void **state)
{
	struct live l;
	int before = live__programs_loaded(), after = 0;

	start(&l);
	live__record(&l, NULL);
	assert_int_equal(live__semaphore(&l, 0), 1);
	assert_true(live__programs_loaded() > before);
	sleep(2); /* it flushes every second */
	kill(l.redframe, SIGKILL);
	live__end_redframe(&l);
	live__load(&l);
	assert_true(l.incomplete);
	assert_true(frames_in_order(&l) > 20);
	for (int i = 0; i < 500; i++) { /* the kernel frees programs a moment later */
		after = live__programs_loaded();
		if (after <= before && !live__semaphore(&l, 0))
			break;
		usleep(10000);
	}
	assert_int_equal(live__semaphore(&l, 0), 0);
	assert_true(after <= before);
	live__free(&l);
}

static void test_two_at_once_on_one_game_both_see_every_frame(void **state)
{
	char pid[16], second[PATH_MAX];
	char *argv[] = {(char *)live__program(), "record", "-p", pid, "-o", second, "--no-trace", NULL};
	struct live l;
	pid_t other;
	size_t n;

	start(&l);
	snprintf(pid, sizeof(pid), "%d", l.target);
	snprintf(second, sizeof(second), "%s/second.redframe", l.dir);
	live__record(&l, NULL);
	other = live__spawn(&l, "second", argv);
	assert_true(live__await(&l, "second", "redframe: recording ", other));
	assert_int_equal(live__semaphore(&l, 0), 1); /* the kernel counts the place once, however many listen there */
	usleep(200000);
	kill(l.redframe, SIGINT);
	live__end_redframe(&l);
	assert_int_equal(live__semaphore(&l, 0), 1);
	usleep(100000);
	kill(other, SIGINT);
	assert_int_equal(live__wait(other), 0);
	whole(&l, 0);
	n = frames_in_order(&l);
	assert_true(n > 2);
	model__free(l.model);
	l.n = 0;
	live__load_from(&l, second);
	assert_true(frames_in_order(&l) > 2);
	assert_int_equal(live__semaphore(&l, 0), 0);
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_sigint_ends_a_recording_cleanly),
	cmocka_unit_test(test_sigterm_ends_a_recording_cleanly),
	cmocka_unit_test(test_sighup_ends_a_recording_cleanly),
	cmocka_unit_test(test_the_end_of_the_game_ends_the_recording),
	cmocka_unit_test(test_a_crash_of_the_game_ends_the_recording),
	cmocka_unit_test(test_after_the_given_time_it_ends_and_the_game_goes_on),
	cmocka_unit_test(test_after_n_frames_it_ends_with_at_least_n_frames),
	cmocka_unit_test(test_after_sigkill_what_was_flushed_is_readable_and_nothing_stays_attached),
	cmocka_unit_test(test_two_at_once_on_one_game_both_see_every_frame),
};
LIVE_MAIN(tests)
