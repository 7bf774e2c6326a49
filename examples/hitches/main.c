/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The frame loops. A limiter holds the rate, as in a game without vsync; frame N ends with mark N, mark 0 begins
 * frame 1.
 */
#include "game.h"
#include "redframe.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEAD     15 /* frames in which a hitch is prepared */
#define TAIL     5  /* frames after which it is cleared away and logged */
#define MAX_SLOW 10000

static struct options options;
static struct data data;
static struct crew crew;
static struct truth truth;
static struct hitch *hitch; /* the one that is prepared, run or cleared: of the simulating thread */
static atomic_bool stop;

static struct {
	int64_t period, deadline, mark;
	long presented; /* frames */
	struct {
		long frame;
		int64_t ns;
	} slow[MAX_SLOW];
	long n_slow; /* also those beyond MAX_SLOW */
} show;

/* between GameThread and RenderThread */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	long frame; /* 0: empty, -1: no more will come */
	struct hitch *hitch;
} packet = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, NULL};

/* ---- presenting ---- */

NOINLINE static void Present(long frame)
{
	REDFRAME_FRAME(frame);
}

NOINLINE static void LimitFrameRate(void)
{
	int64_t now = now_ns();

	show.deadline += show.period;
	if (show.deadline < now)
		show.deadline = now; /* late: do not hurry to make up for it */
	else
		sleep_until(show.deadline);
}

static void present(long frame, struct hitch *h)
{
	int64_t before = show.mark;

	show.mark = now_ns();
	Present(frame);
	show.presented = frame;
	if (h) {
		h->frame_start = before;
		h->frame_end = show.mark;
	} else if (show.mark - before > show.period * 3 / 2) {
		if (show.n_slow < MAX_SLOW) {
			show.slow[show.n_slow].frame = frame;
			show.slow[show.n_slow].ns = show.mark - before;
		}
		show.n_slow++;
	}
}

static void present_first(void)
{
	show.period = 1000000000 / options.fps;
	show.mark = show.deadline = now_ns();
	Present(0);
}

/* ---- hitches in time ---- */

static bool is_hitch(long frame, enum kind *kind)
{
	long i = frame / options.every - 1;

	if (!options.n_kinds || frame % options.every || i < 0 || frame > options.frames)
		return false;
	if (options.rounds && i >= options.rounds * options.n_kinds)
		return false;
	*kind = options.kinds[i % options.n_kinds];
	return true;
}

static void prepare(void *arg)
{
	hitch__prepare(arg);
}

static void finish(void *arg)
{
	struct hitch *h = arg;

	truth__hitch(&truth, h);
	hitch__clear(h);
	hitch__free(h);
	free(h);
}

static void plan_hitch(long frame)
{
	enum kind kind;

	if (!is_hitch(frame, &kind))
		return;
	hitch = malloc(sizeof(*hitch));
	if (!hitch) {
		fprintf(stderr, "hitches: no memory for the hitch of frame %ld\n", frame);
		return;
	}
	hitch__init(hitch, frame, kind, options.ms * NS_PER_MS, &crew, &data);
	worker__post(crew.loader, prepare, hitch);
}

NOINLINE static void Simulate(long frame)
{
	work__scene(frame);
	plan_hitch(frame + LEAD);
	work__simulate(&crew);
	if (hitch && hitch->frame == frame)
		hitch__run(hitch);
	if (hitch && hitch->frame == frame + 1)
		hitch__stage(hitch);
	if (hitch && hitch->frame + TAIL == frame) {
		worker__post(crew.loader, finish, hitch);
		hitch = NULL;
	}
}

/* The game ended: before, in or after the frame of a hitch. */
static void end_hitch(void)
{
	if (!hitch)
		return;
	if (hitch->frame_end) {
		worker__post(crew.loader, finish, hitch);
	} else {
		hitch__release(hitch);
		crew__stop(&crew); /* nobody uses it any more */
		hitch__clear(hitch);
		hitch__free(hitch);
		free(hitch);
	}
	hitch = NULL;
}

static struct hitch *hitch_of(long frame)
{
	return hitch && hitch->frame == frame ? hitch : NULL;
}

/* ---- one loop thread ---- */

static int run_loop(void)
{
	long frame;

	name_thread("MainThread");
	present_first();
	for (frame = 1; frame <= options.frames && !atomic_load(&stop); frame++) {
		Simulate(frame);
		work__render();
		LimitFrameRate();
		present(frame, hitch_of(frame));
	}
	return 0;
}

/* ---- a game thread that feeds a render thread ---- */

/* Returns when RenderThread has taken it: the next frame is simulated while this one is rendered. */
NOINLINE static void HandOver(long frame, struct hitch *h)
{
	pthread_mutex_lock(&packet.lock);
	packet.frame = frame;
	packet.hitch = h;
	pthread_cond_signal(&packet.changed);
	while (packet.frame > 0)
		pthread_cond_wait(&packet.changed, &packet.lock);
	pthread_mutex_unlock(&packet.lock);
}

NOINLINE static long WaitForPacket(struct hitch **h)
{
	int64_t start = now_ns();
	long frame;

	pthread_mutex_lock(&packet.lock);
	while (!packet.frame)
		pthread_cond_wait(&packet.changed, &packet.lock);
	frame = packet.frame;
	*h = packet.hitch;
	if (frame > 0)
		packet.frame = 0;
	pthread_cond_signal(&packet.changed);
	pthread_mutex_unlock(&packet.lock);
	if (*h) {
		(*h)->wait_start = start;
		(*h)->wait_end = now_ns();
	}
	return frame;
}

static void *run_render(void *arg)
{
	struct hitch *h;
	long frame;

	(void)arg;
	name_thread("RenderThread");
	present_first();
	while ((frame = WaitForPacket(&h)) > 0) {
		work__render();
		LimitFrameRate();
		present(frame, h);
	}
	return NULL;
}

static int run_pipeline(void)
{
	pthread_t render;
	long frame;
	int err;

	name_thread("GameThread");
	err = pthread_create(&render, NULL, run_render, NULL);
	if (err)
		return -err;
	for (frame = 1; frame <= options.frames && !atomic_load(&stop); frame++) {
		Simulate(frame);
		HandOver(frame, hitch_of(frame));
	}
	pthread_mutex_lock(&packet.lock);
	packet.frame = -1;
	packet.hitch = NULL;
	pthread_cond_signal(&packet.changed);
	pthread_mutex_unlock(&packet.lock);
	return -pthread_join(render, NULL);
}

/* ---- from start to end ---- */

static void on_signal(int sig)
{
	(void)sig;
	atomic_store(&stop, true);
}

static void catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
}

static int start(void)
{
	int err = data__make(&data, &options);

	if (!err)
		err = rival__start(); /* forks: before there are threads */
	if (!err)
		err = crew__start(&crew, options.shape);
	if (!err)
		err = work__start(&data, options.seed);
	if (!err)
		err = truth__open(&truth, &options, &data, options.frames);
	return err;
}

static int finish_truth(void)
{
	long i;

	for (i = 0; i < show.n_slow && i < MAX_SLOW; i++)
		truth__slow(&truth, show.slow[i].frame, show.slow[i].ns);
	if (!options.quiet)
		fprintf(truth.out == stdout ? stderr : stdout, "%ld frames, %ld hitches, %ld other slow frames\n",
			show.presented, truth.hitches, show.n_slow);
	return truth__close(&truth, show.presented);
}

int main(int argc, char **argv)
{
	int err = options__parse(&options, argc, argv);

	if (err)
		return err < 0;
	catch_signals();
	err = start();
	if (!err) {
		work__scene(0);
		err = options.shape == SHAPE_LOOP ? run_loop() : run_pipeline();
		end_hitch();
		crew__stop(&crew);
		err = finish_truth() ?: err;
	} else {
		fprintf(stderr, "hitches: could not start: %s\n", strerror(-err));
		crew__stop(&crew);
	}
	work__stop();
	rival__stop();
	data__remove(&data);
	return err != 0;
}
