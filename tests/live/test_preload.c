// SPDX-License-Identifier: GPL-2.0-only
/* --alloc preload: every call of the allocator once, by a library in the game; and nothing that harms the game. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "alloc_sites.h"
#include "live.h"
#include "where.h"

#define CLOCK_NS 1000 /* the times come from another clock than the window: right to some 100 ns */

#define PERIOD "16384" /* from sample to sample */

/* Under /bin/sh, which gives it its word to begin at once and its truth a file, and becomes it. */
static void record(struct live *l, const char *target, const char *environment, const char *alloc)
{
	char script[512], path[256],
		*argv[] = {(char *)live__program(), "record", "-o", l->recording, "--no-trace", "--frame", "none",
			"--alloc-sample", PERIOD, "--alloc", (char *)alloc, "--", "/bin/sh", "-c", script, NULL};

	live__init(l);
	snprintf(path, sizeof(path), "%s", live__target_path(target));
	snprintf(script, sizeof(script), "echo > '%s/word'; %s exec '%s' < '%s/word' > '%s/truth'", l->dir, environment,
		path, l->dir, l->dir);
	l->redframe = live__spawn(l, "said", argv);
	live__end_redframe(l);
	l->truth = live__read(l, "truth");
	live__load(l);
}

static size_t count(const struct live *l, u32 fn, u64 size)
{
	const struct live_event *e;
	size_t n = 0;

	live__each(l, at, e, EV_ALLOC)
	{
		const struct ev_alloc *a = (const void *)e->hdr;

		n += a->size == size && a->fn == fn;
	}
	return n;
}

static size_t in_window(const struct live *l, u8 kind)
{
	const struct live_event *e;
	size_t n = 0;

	live__each(l, at, e, kind) n += e->hdr->ts + CLOCK_NS >= (u64)live__num(l, "window", 0, 0) &&
					e->hdr->ts <= (u64)live__num(l, "window", 0, 1) + CLOCK_NS;
	return n;
}

static void same_counts(const struct live *l)
{
	static const char *const names[] = {"malloc", "calloc", "realloc", "aligned", "posix_memalign", "new", "new[]"};
	size_t all = 0;
	char fn[32];

	assert_true(live__rows(l, "alloc") > 0);
	for (size_t i = 0; i < live__rows(l, "alloc"); i++) {
		size_t want = (size_t)live__num(l, "alloc", i, 2);
		u32 k = 0;

		live__word(l, "alloc", i, 0, fn, sizeof(fn));
		while (strcmp(names[k], fn))
			assert_true(++k < ARRAY_SIZE(names));
		if (count(l, k, (u64)live__num(l, "alloc", i, 1)) != want)
			fail_msg("%s(%lld): %zu calls were recorded as %zu", fn, live__num(l, "alloc", i, 1), want,
				count(l, k, (u64)live__num(l, "alloc", i, 1)));
		all += want;
	}
	assert_int_equal(in_window(l, EV_ALLOC), all);
	assert_int_equal(in_window(l, EV_FREE), live__num(l, "frees", 0, 0));
}

static void test_every_call_is_recorded_once_at_its_time_with_its_caller(void **state)
{
	const struct live_event *e;
	struct live l;
	size_t n = 0;

	record(&l, "alloc", "", "preload");
	live__no_loss(&l);
	same_counts(&l);
	live__each(&l, at, e, EV_ALLOC)
	{
		const struct ev_alloc *a = (const void *)e->hdr;
		u64 code = (u64)live__num(&l, "code", 0, 0);

		if (a->size != 1 << 20)
			continue;
		assert_in_range(a->caller, code, code + (u64)live__num(&l, "code", 0, 1));
		n++;
	}
	assert_int_equal(n, 1);
	live__free(&l);
}

static void test_operators_new_and_delete_are_recorded_once(void **state)
{
	struct live l;

	record(&l, "alloc_cxx", "", "preload");
	live__no_loss(&l);
	same_counts(&l);
	live__free(&l);
}

static void test_another_interposer_behind_ours_goes_on_working(void **state)
{
	static const char other[] = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";
	struct live l;

	if (access(other, R_OK))
		live__skip("libjemalloc2 is not installed");
	record(&l, "alloc", "LD_PRELOAD=\"$LD_PRELOAD:/usr/lib/x86_64-linux-gnu/libjemalloc.so.2\"", "preload");
	live__no_loss(&l);
	same_counts(&l);
	live__free(&l);
}

static void test_short_threads_signals_and_a_fork_lose_nothing_and_add_nothing(void **state)
{
	struct live l;

	record(&l, "allocators", "", "preload");
	live__no_loss(&l);
	assert_int_equal(count(&l, ALLOC_MALLOC, 333), live__num(&l, "thread", 0, 0));
	assert_int_equal(count(&l, ALLOC_MALLOC, (u64)live__num(&l, "large", 0, 0)), 1);
	assert_int_equal(count(&l, ALLOC_REALLOC, 7777), 1);
	assert_int_equal(count(&l, ALLOC_MALLOC, 444), 0); /* the child's */
	live__free(&l);
}

/* Of n samples the sum is right to 1 in sqrt(n); five times that comes once in two million runs. */
static void right_bytes(const struct live *l, size_t row, const struct alloc_site *s, u32 n)
{
	double want = (double)live__num(l, "site", row, 1);
	char name[64];
	u32 k = 0;

	live__word(l, "site", row, 0, name, sizeof(name));
	while (k < n && strcmp(s[k].where, name))
		k++;
	if (k == n)
		fail_msg("nothing was recorded of %s", name);
	assert_true(s[k].samples > 100);
	assert_true(fabs((double)s[k].bytes - want) / want < 5 / sqrt((double)s[k].samples));
}

static void test_samples_have_call_chains_and_stand_for_what_each_function_allocated(void **state)
{
	const struct live_event *e;
	struct alloc_sites a = {};
	const struct alloc_site *s;
	size_t chains = 0;
	struct live l;
	u32 n;

	/* the shell becomes it, and what it maps is looked at each second; faster than its ring is emptied, which is no
	 * matter to samples */
	record(&l, "alloc_sites", "LINGER=1", "preload");
	for (size_t i = 0; i < l.n; i++)
		if (l.ev[i].hdr->kind == EV_ALLOC_SAMPLE || l.ev[i].hdr->kind == EV_ALLOC)
			assert_int_equal(alloc_sites__event(&a, l.model, l.ev[i].hdr), 0);
	s = alloc_sites__list(&a, &n);
	assert_int_equal(live__rows(&l, "site"), 3);
	right_bytes(&l, 0, s, n);
	right_bytes(&l, 1, s, n);
	live__each(&l, at, e, EV_STACK)
	{
		const struct ev_stack *k = (const void *)e->hdr;
		char where[256];

		if (k->reason != STACK_ALLOC || !k->chain)
			continue;
		chains += where__function(l.model, k->chain, where, sizeof(where)) &&
			  (!strcmp(where, "parse_names") || !strcmp(where, "load_chunks"));
	}
	assert_true(chains > 50); /* they come by the thousand here, and a thread has a budget of stacks */
	alloc_sites__free(&a);
	live__free(&l);
}

static void test_a_static_program_is_not_covered_and_that_is_said(void **state)
{
	char path[256], *argv[] = {(char *)live__program(), "record", "-o", NULL, "--no-trace", "--frame", "none",
				"--alloc", "preload", "--", path, NULL};
	struct live l;

	live__init(&l);
	argv[3] = l.recording;
	snprintf(path, sizeof(path), "%s", live__target_path("calls_static"));
	l.redframe = live__spawn(&l, "said", argv); /* it has no input, and so ends at once */
	live__end_redframe(&l);
	live__load(&l);
	assert_non_null(strstr(l.said, "allocations not covered"));
	assert_int_equal(live__count(&l, EV_ALLOC), 0);
	live__free(&l);
}

static void test_the_game_goes_on_when_redframe_is_killed(void **state)
{
	char script[512], *argv[] = {(char *)live__program(), "record", "-o", NULL, "--no-trace", "--frame", "none",
				  "--alloc", "preload", "--", "/bin/sh", "-c", script, NULL};
	struct live l;
	char *truth;

	live__init(&l);
	argv[3] = l.recording;
	snprintf(script, sizeof(script),
		"echo > '%s/word'; echo started > '%s/state'; sleep 1; '%s' < '%s/word' > '%s/truth'; echo \"status "
		"$?\" > "
		"'%s/state'",
		l.dir, l.dir, live__target_path("alloc"), l.dir, l.dir, l.dir);
	l.redframe = live__spawn(&l, "said", argv);
	assert_true(live__await(&l, "state", "started", l.redframe));
	kill(l.redframe, SIGKILL);
	live__wait(l.redframe);
	l.redframe = 0;
	assert_true(live__await(&l, "state", "status", getpid()));
	truth = live__read(&l, "state");
	assert_string_equal(truth, "status 0\n");
	free(truth);
	live__free(&l);
}

static void test_a_running_game_is_refused(void **state)
{
	char *argv[] = {(char *)live__program(), "record", "-p", "1", "--alloc", "preload", NULL};
	struct live l;

	live__init(&l);
	l.redframe = live__spawn(&l, "said", argv);
	live__end_redframe(&l);
	assert_int_equal(WEXITSTATUS(l.status), EXIT_USAGE);
	assert_non_null(strstr(l.said, "--alloc preload: only a game that redframe starts"));
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_every_call_is_recorded_once_at_its_time_with_its_caller),
	cmocka_unit_test(test_operators_new_and_delete_are_recorded_once),
	cmocka_unit_test(test_another_interposer_behind_ours_goes_on_working),
	cmocka_unit_test(test_short_threads_signals_and_a_fork_lose_nothing_and_add_nothing),
	cmocka_unit_test(test_samples_have_call_chains_and_stand_for_what_each_function_allocated),
	cmocka_unit_test(test_a_static_program_is_not_covered_and_that_is_said),
	cmocka_unit_test(test_the_game_goes_on_when_redframe_is_killed),
	cmocka_unit_test(test_a_running_game_is_refused),
};
LIVE_MAIN(tests)
