// SPDX-License-Identifier: GPL-2.0-only
/* A real game without a screen: Doom draws 35 frames a second, whatever the machine. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"

#define FPS 35
#define WAD "/usr/share/games/doom/freedoom1.wad"

static const char *missing(void)
{
	static const char *const files[][2] = {
		{"/usr/bin/Xvfb", "package xvfb"},
		{"/usr/games/chocolate-doom", "package chocolate-doom"},
		{WAD, "package freedoom"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (access(files[i][0], F_OK))
			return files[i][1];
	return NULL;
}

static bool maps(pid_t pid, const char *library)
{
	char path[64], line[512];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, library);
	if (f)
		fclose(f);
	return found;
}

static void start_game(struct live *l)
{
	char *argv[] = {"/usr/games/chocolate-doom", "-iwad", WAD, "-window", "-width", "640", "-height", "480",
		"-nosound", NULL};

	setenv("HOME", l->dir, 1);
	setenv("XDG_RUNTIME_DIR", l->dir, 1);
	setenv("SDL_AUDIODRIVER", "dummy", 1);
	setenv("vblank_mode", "0", 1);
	live__start_program(l, argv);
	for (int i = 0; i < 600 && !maps(l->target, "libGLX.so"); i++)
		usleep(50000);
	sleep(2); /* its start-up screen */
}

static void count_game_thread(const struct thread *t, void *arg)
{
	*(long long *)arg += t->game;
}

/* what the trace processor finds in the trace is what the recording holds */
static void same_trace(struct live *l, const char *trace)
{
	const struct model_stats *st = model__stats(l->model);
	long long threads = 0;
	char sql[256];

	model__each_thread(l->model, count_game_thread, &threads);
	assert_true(threads >= 2);

	assert_int_equal(live__query(l, trace,
				 "select count(*) n from stats where severity in ('error','data_loss') and value > 0"),
		0);
	snprintf(sql, sizeof(sql),
		"select count(*) n from slice join process_track on slice.track_id = process_track.id join process "
		"using(upid) where pid = %u and category in ('frame', 'slow_frame')",
		model__game(l->model));
	assert_int_equal(live__query(l, trace, sql), st->frames);
	snprintf(sql, sizeof(sql), "select count(distinct tid) n from thread join process using(upid) where pid = %u",
		model__game(l->model));
	assert_int_equal(live__query(l, trace, sql), threads);
	assert_true(live__query(l, trace, "select count(*) n from sched_slice") > 1000);
}

/* A machine that is too busy, or draws too slowly, shows fewer. */
static bool steady_frames(const struct live *l)
{
	const struct live_event *e;
	u64 first = 0, last = 0;
	size_t marks = 0;
	double expected;

	live__each(l, at, e, EV_FRAME)
	{
		first = first ?: e->hdr->ts;
		last = e->hdr->ts;
		marks++;
	}
	assert_true(marks > 2);
	assert_true(last - first > 7000000000ULL);
	expected = FPS * (last - first) / 1e9;
	assert_int_equal(model__stats(l->model)->frames, marks - 1);
	printf("%zu frames in %.3f s, of %.0f\n", marks - 1, (last - first) / 1e9, expected);
	assert_true(marks - 1 <= 1.02 * expected);
	return marks - 1 >= 0.98 * expected;
}

static bool record_doom(void)
{
	bool steady;
	char pid[16], trace[160];
	struct live l;
	char *argv[] = {(char *)live__program(), "record", "-p", pid, "-o", l.recording, "-d", "8", NULL};
	pid_t display;

	live__init(&l);
	live__to_the_front();
	display = live__start_display(&l);
	start_game(&l);
	snprintf(pid, sizeof(pid), "%d", l.target);
	l.redframe = live__spawn(&l, "said", argv);
	live__to_the_back();
	live__end_redframe(&l);
	assert_int_equal(kill(l.target, 0), 0);
	kill(l.target, SIGKILL);
	live__end_target(&l);
	kill(display, SIGTERM);
	live__wait(display);
	if (l.status)
		fail_msg("status %#x; it said: %s", l.status, l.said);
	live__load(&l);
	live__no_loss(&l);
	steady = steady_frames(&l);
	snprintf(trace, sizeof(trace), "%s/r.pftrace", l.dir);
	same_trace(&l, trace);
	live__free(&l);
	return steady;
}

static void test_doom_has_35_frames_a_second_and_its_trace_imports_whole(void **state)
{
	bool steady = false;

	if (missing())
		live__skip(missing());
	for (int i = 0; i < 3 && !steady; i++)
		steady = record_doom();
	assert_true(steady);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_doom_has_35_frames_a_second_and_its_trace_imports_whole),
};
LIVE_MAIN(tests)
