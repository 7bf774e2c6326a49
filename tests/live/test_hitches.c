// SPDX-License-Identifier: GPL-2.0-only
/*
 * examples/hitches recorded and explained, against its own log. REDFRAME_ROUNDS is how often each kind comes (1; make
 * test-accuracy: 20), REDFRAME_FRAMES how many frames without any hitch are looked at.
 *
 * Game and redframe run under SCHED_RR where that is allowed: what is judged is the analysis, not how busy the machine
 * is. What the machine takes nevertheless is told apart (judge.h). Under load they run as everything else does, beside
 * a process for each CPU that never rests.
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "json.h"
#include "judge.h"
#include "live.h"

#define EVERY       31 /* not a multiple of what the game does now and then */
#define RIGHT_SHARE 0.99

static long setting(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtol(text, NULL, 10) : otherwise;
}

struct load {
	pid_t pids[64];
	int n;
};

static void make_load(struct load *b)
{
	pid_t parent = getpid();

	b->n = (int)min(sysconf(_SC_NPROCESSORS_ONLN), (long)ARRAY_SIZE(b->pids));
	for (int i = 0; i < b->n; i++) {
		b->pids[i] = fork();
		assert_true(b->pids[i] >= 0);
		if (b->pids[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* not longer than the test, however that ends */
		prctl(PR_SET_NAME, "load");
		while (getppid() == parent)
			for (volatile int n = 0; n < 1000000; n++)
				;
		_exit(0);
	}
}

static void end_load(const struct load *b)
{
	for (int i = 0; i < b->n; i++) {
		kill(b->pids[i], SIGKILL);
		waitpid(b->pids[i], NULL, 0);
	}
}

/* until it ends by itself, however long that takes: scripts/run-tests has a limit */
static int run(struct live *l, const char *name, char *const argv[])
{
	pid_t pid = live__spawn(l, name, argv);
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Records the game with `args`, before all others where `front`, and explains; what the game and redframe left is in
 * dir/log and dir/json */
static void record(struct live *l, const char *budget, char *const args[], bool front)
{
	char game[PATH_MAX], log[128];
	char *argv[40] = {(char *)live__program(), "record", "-q", "--budget", (char *)budget, "-o", l->recording,
		"--no-trace", "--", game, "--quiet", "--log", log, NULL};
	char *explain[] = {(char *)live__program(), "explain", l->recording, "--json", NULL};
	int n = 13, status;

	snprintf(game, sizeof(game), "%s/examples/hitches", LIVE_BUILD);
	snprintf(log, sizeof(log), "%s/log", l->dir);
	while (*args)
		argv[n++] = *args++;
	if (front)
		live__to_the_front();
	status = run(l, "said", argv);
	live__to_the_back();
	if (status)
		fail_msg("redframe record: status 0x%x: %s", status, live__read(l, "said"));
	assert_int_equal(run(l, "json", explain), 0);
}

/* On a shared machine code itself, a sleep's end or the disk takes a multiple of its time now and then, and nothing
 * shows why. What redframe gets wrong it gets wrong each time. */
#define TRIES 3

/* busy: every CPU is busy with others, and what they take of a hitch is said to be theirs */
static struct judgement judge(char *shape, bool busy)
{
	char rounds[16], every[16];
	char *args[] = {"--shape", shape, "--rounds", rounds, "--every", every, NULL}, *log, *explained;
	struct judgement j;
	struct load load = {};
	struct live l;

	snprintf(rounds, sizeof(rounds), "%ld", setting("REDFRAME_ROUNDS", 1));
	snprintf(every, sizeof(every), "%d", EVERY);
	live__init(&l);
	if (busy)
		make_load(&load);
	record(&l, "60fps", args, !busy);
	end_load(&load);
	log = live__read(&l, "log");
	explained = live__read(&l, "json");
	assert_int_equal(judge__hitches(&j, log, explained, busy, stdout), 0);
	judge__print(&j, stdout);
	fflush(stdout);
	assert_int_equal(j.all.hitches + j.all.hidden, 11 * setting("REDFRAME_ROUNDS", 1));
	free(log);
	free(explained);
	live__free(&l);
	return j;
}

static bool is_good(const struct judgement *j)
{
	return j->all.right >= RIGHT_SHARE * j->all.hitches && j->all.hidden * 10 <= j->all.hitches;
}

static void check_hitches(char *shape, bool busy)
{
	struct judgement j = judge(shape, busy);

	for (int i = 1; i < TRIES && !is_good(&j); i++)
		j = judge(shape, busy);
	assert_true(is_good(&j));
}

static void test_every_hitch_of_one_loop_thread_is_explained_as_it_was(void **state)
{
	check_hitches("loop", false);
}

static void test_every_hitch_behind_a_render_thread_is_explained_as_it_was(void **state)
{
	check_hitches("pipeline", false);
}

static void test_with_every_cpu_busy_hitches_of_a_loop_are_told_from_what_others_took(void **state)
{
	check_hitches("loop", true);
}

static void test_with_every_cpu_busy_hitches_behind_a_render_thread_are_told_from_what_others_took(void **state)
{
	check_hitches("pipeline", true);
}

/* Time that the machine took: other processes, interrupts, timers that came late; also of a thread that was waited
 * for. */
static double machine_ms(const struct json *rows)
{
	double ms = 0;

	json__each(rows, r)
	{
		const char *cause = json__text(r, "cause");

		if (!strcmp(cause, "cpu_wait") || !strcmp(cause, "interrupt"))
			ms += json__number(r, "ms");
		else if (!strcmp(cause, "sleep"))
			ms += json__number(r, "late_ms");
		else
			ms += machine_ms(json__get(r, "because"));
	}
	return ms;
}

static int unaccounted(const struct json *explained)
{
	int n = 0;

	json__each(json__get(explained, "slow_frames"), f)
	{
		double over = json__number(f, "duration_ms") - json__number(f, "typical_ms");

		print_message("frame %.0f, %.2f ms: %s\n", json__number(f, "frame"), json__number(f, "duration_ms"),
			json__text(f, "verdict"));
		n += machine_ms(json__get(f, "causes")) < over / 2;
	}
	return n;
}

/* returns how many slow frames the machine is not seen to have made */
static int slow_by_itself(char *shape)
{
	char frames[16];
	char *args[] = {"--shape", shape, "--hitch", "none", "--fps", "100", "--frames", frames, NULL}, *text;
	struct json *explained;
	struct live l;
	int n;

	snprintf(frames, sizeof(frames), "%ld", setting("REDFRAME_FRAMES", 500));
	live__init(&l);
	record(&l, "100fps", args, true);
	text = live__read(&l, "json");
	explained = json__parse(text);
	assert_non_null(explained);
	n = unaccounted(explained);
	print_message("%.0f frames, %.0f slow, %d of them not by the machine\n",
		json__number(json__get(explained, "frames"), "count"),
		json__number(json__get(explained, "frames"), "slow"), n);
	/* those before redframe had found the markers are missing */
	assert_true(json__number(json__get(explained, "frames"), "count") >= setting("REDFRAME_FRAMES", 500) - 100);
	json__free(explained);
	free(text);
	live__free(&l);
	return n;
}

static void check_quiet(char *shape)
{
	int n = slow_by_itself(shape);

	for (int i = 1; i < TRIES && n; i++)
		n = slow_by_itself(shape);
	assert_int_equal(n, 0);
}

static void test_without_hitches_only_the_machine_makes_slow_frames_of_a_loop(void **state)
{
	check_quiet("loop");
}

static void test_without_hitches_only_the_machine_makes_slow_frames_of_a_pipeline(void **state)
{
	check_quiet("pipeline");
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_with_every_cpu_busy_hitches_of_a_loop_are_told_from_what_others_took),
	cmocka_unit_test(test_with_every_cpu_busy_hitches_behind_a_render_thread_are_told_from_what_others_took),
	cmocka_unit_test(test_every_hitch_of_one_loop_thread_is_explained_as_it_was),
	cmocka_unit_test(test_every_hitch_behind_a_render_thread_is_explained_as_it_was),
	cmocka_unit_test(test_without_hitches_only_the_machine_makes_slow_frames_of_a_loop),
	cmocka_unit_test(test_without_hitches_only_the_machine_makes_slow_frames_of_a_pipeline),
};
LIVE_MAIN(tests)
