// SPDX-License-Identifier: GPL-2.0-only
/* soak on a game that really runs: what it keeps, what it counts, how it ends, and what it survives. */
#include <fcntl.h>

#include "soak_fixture.h"

static char *game_path(void)
{
	return LIVE_BUILD "/examples/hitches";
}

#define GAME game_path(), "--quiet", "--hitch", "read", "--ms", "80", "--every", "40"

/* ---- what is kept and counted ---- */

static void test_slow_frames_are_kept_explained_and_every_frame_counts(void **state)
{
	struct live l;
	pid_t pid;

	begin(&l);
	live__to_the_front(); /* or its hitches would be waits for a CPU */
	pid = soak(&l, "said", "--budget", "60", "--before", "0.2", "--meta", "commit=1a2b", "--", GAME, "--rounds",
		"2", NULL);
	live__to_the_back();
	assert_int_equal(ended(&l, pid, "said"), 0);
	assert_true(any_says(&l, "file_read "));
	assert_true(any_says(&l, ".c:")); /* named, with its line */
	assert_true(ask("select sum(frames) from blocks") >= 80);
	assert_int_equal(
		ask("select sum(frames) from blocks"), ask("select value from counters where name = 'frames'"));
	assert_int_equal(ask("select value from counters where name = 'marks'"),
		ask("select value from counters where name = 'frames'") + 1);
	assert_true(
		ask("select sum(hitches) from hitches where sentence like '%ms %' and trace like 'segment-%'") >= 1);
	assert_true(ask("select sum(total_ns) from block_causes where cause = 'file_read'") >= 10000000);
	assert_int_equal(ask("select count(*) from run_meta where name = 'meta.commit' and value = '1a2b'"), 1);
	assert_true(ask("select count(*) from memory where rss > 1000000 and mappings > 5") >= 1);
	assert_int_equal(ask("select status from run_ends"), 0);
	end(&l);
}

static void test_a_limit_that_is_crossed_ends_in_4(void **state)
{
	char junit[160];
	struct live l;
	pid_t pid;

	begin(&l);
	snprintf(junit, sizeof(junit), "%s/soak.xml", l.dir);
	pid = soak(&l, "said", "--fail", "frame=60", "--junit", junit, "--", GAME, "--rounds", "1", NULL);
	assert_int_equal(ended(&l, pid, "said"), 4);
	said(&l, "said", "limit crossed: frame=60");
	assert_int_equal(ask("select max(failed) from checks where name = 'frame'"), 1);
	said(&l, "soak.xml", "<failure");
	said(&l, "soak.xml", "</testsuites>");
	assert_int_equal(ask("select status from run_ends"), 4);
	end(&l);
}

static void test_a_game_without_frames_is_not_measured(void **state)
{
	struct live l;
	pid_t pid;

	begin(&l);
	pid = soak(&l, "said", "-d", "1", "--", "/bin/sleep", "20", NULL);
	assert_int_equal(ended(&l, pid, "said"), 5);
	said(&l, "said", "not measured: no frames were seen");
	assert_int_equal(ask("select status from run_ends where reason like 'no frames%'"), 5);
	end(&l);
}

/* ---- while it runs ---- */

static void test_signals_marks_and_a_scene_file_are_heard(void **state)
{
	char *marks[] = {(char *)live__program(), "mark", "-o", dir, "harbour \033[31m\xff", NULL};
	char file[160];
	struct live l;
	pid_t pid;
	int status;
	FILE *f;

	begin(&l);
	snprintf(file, sizeof(file), "%s/scene", l.dir);
	pid = soak(&l, "said", "-d", "100", "--scene-file", file, "-n", ticker(&l, NULL), NULL);
	assert_true(live__await(&l, "said", "soaking t", pid));
	usleep(300000);
	free(live__output(&l, &status, marks));
	assert_int_equal(status, 0);
	usleep(500000);
	f = fopen(file, "w");
	fputs("castle\nnot this\n", f);
	fclose(f);
	usleep(1000000); /* it looks at the file now and then */
	assert_int_equal(kill(pid, SIGUSR1), 0);
	assert_true(live__await(&l, "said", "so far", pid));
	kill(pid, SIGTERM);
	assert_int_equal(ended(&l, pid, "said"), 5); /* shorter than asked */
	said(&l, "said", "not measured: it ran for");
	assert_true(ask("select sum(frames) from blocks where scene like 'harbour%'") > 5);
	assert_true(ask("select sum(frames) from blocks where scene = 'castle'") > 5);
	assert_int_equal(ask("select count(*) from blocks where scene like 'not%'"), 0);
	free(live__output(&l, &status, marks)); /* nobody listens any more */
	assert_int_equal(WEXITSTATUS(status), 3);
	live__end_target(&l);
	end(&l);
}

static void test_a_game_that_crashes_is_followed_into_its_next_life(void **state)
{
	char path[PATH_MAX], *text;
	struct live l;
	pid_t pid;

	begin(&l);
	pid = soak(&l, "said", "-n", ticker(&l, "crash"), NULL);
	assert_true(live__await(&l, "said", "soaking t", pid));
	usleep(300000);
	assert_int_equal(write(l.go, "g", 1), 1);
	live__end_target(&l);
	assert_true(live__await(&l, "said", "ended by signal 11", pid));
	ticker(&l, NULL);
	assert_true(live__await(&l, "said", "the game runs again", pid));
	usleep(300000);
	kill(pid, SIGTERM);
	assert_int_equal(ended(&l, pid, "said"), 0);
	await_kept(0, path); /* the last seconds */
	text = explain(&l, path);
	assert_non_null(strstr(text, "pid "));
	free(text);
	assert_int_equal(ask("select value from counters where name = 'games.crashed'"), 1);
	assert_true(ask("select sum(frames) from blocks") > 40);
	assert_int_equal(ask("select count(*) from notes where note like '%runs again%'"), 1);
	live__end_target(&l);
	end(&l);
}

static void test_killed_it_leaves_what_was_kept_and_a_store_that_is_whole(void **state)
{
	char *report[] = {(char *)live__program(), "report", "@last", "--store", store, NULL};
	char path[PATH_MAX], *text;
	int status;
	struct live l;
	pid_t pid;

	begin(&l);
	live__to_the_front();
	pid = soak(&l, "said", "--budget", "60", "--before", "0.2", "--", GAME, "--rounds", "4", NULL);
	live__to_the_back();
	await_kept(0, path);
	usleep(1200000);
	kill(pid, SIGKILL);
	live__wait(pid);
	text = explain(&l, path);
	assert_non_null(strstr(text, "file_read "));
	free(text);
	assert_int_equal(ask("select count(*) from pragma_integrity_check where integrity_check = 'ok'"), 1);
	assert_int_equal(ask("select count(*) from runs"), 1);
	assert_int_equal(ask("select count(*) from run_ends"), 0);
	snprintf(path, sizeof(path), "%s/segment-999999.redframe\033[31m", dir); /* no recording of a soak's */
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	text = live__output(&l, &status, report);
	assert_int_equal(WEXITSTATUS(status), ask("select count(*) from blocks") ? 0 : 5);
	assert_non_null(strstr(text, "It was killed, or goes on"));
	assert_null(strstr(text, "999999"));
	assert_non_null(strstr(text, " ms: "));
	if (!ask("select count(*) from hitches")) /* its first block was open, unless this machine is very slow */
		assert_non_null(strstr(text, "  segment-000001.redframe"));
	free(text);
	end(&l);
}

static void test_a_folder_that_another_soak_used_is_refused(void **state)
{
	char path[PATH_MAX];
	struct live l;
	pid_t pid;

	begin(&l);
	assert_int_equal(mkdir(dir, 0755), 0);
	snprintf(path, sizeof(path), "%s/segment-000001.redframe", dir);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	pid = soak(&l, "said", "-d", "1", "--", "/bin/sleep", "20", NULL);
	assert_int_equal(ended(&l, pid, "said"), 1);
	said(&l, "said", "another soak");
	end(&l);
}

/* and a second one into it is not confused */
static void test_one_that_cannot_begin_leaves_no_folder_and_takes_none_away(void **state)
{
	struct live l;

	begin(&l);
	for (int there = 0; there < 2; there++) {
		assert_int_equal(ended(&l, soak(&l, "said", "-n", "no-such-game", NULL), "said"), 3);
		assert_int_equal(access(dir, F_OK), there ? 0 : -1);
		assert_int_equal(access(store, F_OK), -1);
		assert_int_equal(there ? rmdir(dir) : mkdir(dir, 0755), 0);
	}
	end(&l);
}

static void test_two_at_once_share_a_store(void **state)
{
	const char *name;
	pid_t one, two;
	struct live l;

	begin(&l);
	name = ticker(&l, NULL);
	one = soak(&l, "said", "-d", "1", "-n", name, NULL);
	dir[strlen(dir) - 1] = '2';
	two = soak(&l, "said2", "-d", "1", "-n", name, NULL);
	assert_int_equal(ended(&l, one, "said"), 0);
	assert_int_equal(ended(&l, two, "said2"), 0);
	assert_int_equal(ask("select count(*) from runs"), 2);
	assert_int_equal(ask("select count(*) from run_ends where status = 0"), 2);
	live__end_target(&l);
	end(&l);
}

static void test_a_recording_is_replayed_as_if_it_were_live_and_warm_up_alone_is_not_measured(void **state)
{
	char *record[] = {(char *)live__program(), "record", "-q", "--budget", "60", "--no-trace", "-o", NULL, "--",
		GAME, "--rounds", "2", NULL};
	struct live l;
	pid_t pid;

	begin(&l);
	record[7] = l.recording;
	live__to_the_front();
	assert_int_equal(WEXITSTATUS(live__wait(live__spawn(&l, "recorded", record))), 0);
	live__to_the_back();
	pid = soak(&l, "said", "--budget", "60", "--replay", l.recording, NULL);
	assert_int_equal(ended(&l, pid, "said"), 0);
	assert_true(any_says(&l, "file_read "));
	assert_true(any_says(&l, ".c:"));
	assert_true(ask("select sum(frames) from blocks") >= 80);
	assert_int_equal(ask("select count(*) from run_meta where name = 'option.warm-up' and value = '0'"), 1);
	dir[strlen(dir) - 1] = '2';
	pid = soak(&l, "warm", "--warm-up", "1000", "--fail", "frame=60", "--replay", l.recording, NULL);
	assert_int_equal(ended(&l, pid, "warm"), 5);
	said(&l, "warm", "frames are warm-up: no visit to a scene took longer than 1000 s");
	assert_int_equal(ask("select count(*) from run_ends where status = 5 and reason like '%warm-up%'"), 1);
	assert_int_equal(ask("select count(*) from checks"), 0);
	dir[strlen(dir) - 1] = '3';
	pid = soak(&l, "cold", "--fail", "frame=60", "--replay", l.recording, NULL);
	assert_int_equal(ended(&l, pid, "cold"), 4); /* of the same frames */
	end(&l);
}

/* ---- leaks ---- */

static void test_a_leak_of_small_blocks_is_suspected_with_the_function_that_loses_them(void **state)
{
	char *game = strdup(live__target_path("leaky")), *text, *at;
	double mib = 7 * 113 * 450 * 64 / 1048576.0, told;
	struct live l;
	pid_t pid;

	begin(&l);
	pid = soak(&l, "said", "--alloc-sample", "64K", "--max-overhead", "0", "--", game, "7", NULL);
	assert_int_equal(ended(&l, pid, "said"), 0);
	said(&l, "said", "suspected leak in scene level: memory grew by ");
	text = live__read(&l, "said");
	at = strstr(text, "; what allocated most (frees are not matched): leak_particles ");
	if (!at)
		fail_msg("%s", text);
	assert_int_equal(sscanf(at, "%*[^:]: leak_particles %lf MiB (estimated", &told), 1);
	/* 350 samples; the first ones come before it is attached */
	if (told < mib * 0.6 || told > mib * 1.3)
		fail_msg("%.1f MiB of %.1f: %s", told, mib, text);
	assert_non_null(strstr(at, " samples), shuffle_cards "));
	assert_true(ask("select count(*) from notes where note like '%scene level%leak_particles%'") == 1);
	free(text);
	free(game);
	end(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_slow_frames_are_kept_explained_and_every_frame_counts),
	cmocka_unit_test(test_a_limit_that_is_crossed_ends_in_4),
	cmocka_unit_test(test_a_game_without_frames_is_not_measured),
	cmocka_unit_test(test_signals_marks_and_a_scene_file_are_heard),
	cmocka_unit_test(test_a_game_that_crashes_is_followed_into_its_next_life),
	cmocka_unit_test(test_killed_it_leaves_what_was_kept_and_a_store_that_is_whole),
	cmocka_unit_test(test_a_folder_that_another_soak_used_is_refused),
	cmocka_unit_test(test_one_that_cannot_begin_leaves_no_folder_and_takes_none_away),
	cmocka_unit_test(test_two_at_once_share_a_store),
	cmocka_unit_test(test_a_recording_is_replayed_as_if_it_were_live_and_warm_up_alone_is_not_measured),
	cmocka_unit_test(test_a_leak_of_small_blocks_is_suspected_with_the_function_that_loses_them),
};

LIVE_MAIN(tests)
