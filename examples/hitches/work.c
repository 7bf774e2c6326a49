/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What every frame does: some milliseconds of computing in functions named as in an engine, jobs on the workers, a
 * handful of allocations, warm reads, and locks that are free or nearly so. Nothing here may ever be a hitch.
 */
#include "game.h"
#include "redframe.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOBS        4
#define SCENE_EVERY 360 /* frames */
#define NAMES_EVERY 60

pthread_mutex_t g_navmesh_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_texture_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_scene_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t g_audio_mutex = PTHREAD_MUTEX_INITIALIZER;
struct renderer *g_renderer;

static long rounds_per_us = 1;
static uint64_t first_seed;
static _Thread_local uint64_t rng; /* 0: not begun */
static const struct data *data;
static pthread_t audio;
static bool have_audio;
static atomic_bool audio_stop;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t finished;
	int left;
} jobs = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

/* 90 to 110 % of us, in rounds of crunch() */
static long about(long us)
{
	if (!rng)
		rng = first_seed;
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return us * rounds_per_us * (long)(90 + rng % 21) / 100;
}

/* A fixed amount of work, not of time: what disturbs it shows. The quickest of many tries is the undisturbed one. */
static void calibrate(void)
{
	int64_t best = INT64_MAX, t;
	int i;

	for (i = 0; i < 200; i++) {
		t = now_ns();
		crunched = crunch(1.0, 10000);
		t = now_ns() - t;
		if (t < best)
			best = t;
	}
	rounds_per_us = 10000 * 1000 / (best > 0 ? best : 1);
	if (rounds_per_us < 1)
		rounds_per_us = 1;
}

NOINLINE static void UpdatePhysics(void)
{
	crunched = crunch(1.0, about(900));
}

NOINLINE static void UpdateAnimation(void)
{
	int i;

	for (i = 0; i < 30; i++) {
		pthread_mutex_lock(&g_scene_mutex);
		crunched = crunch(2.0, about(20) / 10);
		pthread_mutex_unlock(&g_scene_mutex);
		crunched = crunch(2.0, about(20));
	}
}

NOINLINE static void UpdateAI(void)
{
	crunched = crunch(3.0, about(500));
}

NOINLINE static void SpawnEntities(void)
{
	void *entity[20];
	size_t i;

	for (i = 0; i < 20; i++) {
		entity[i] = malloc(64 + i * 48);
		if (entity[i])
			memset(entity[i], 1, 64);
	}
	crunched = crunch(4.0, about(50));
	for (i = 0; i < 20; i++)
		free(entity[i]);
}

NOINLINE static void ReadSettings(void)
{
	char block[4096];
	int i;

	for (i = 0; i < 3; i++)
		if (pread(data->settings.fd, block, sizeof(block), i * 8192) != (ssize_t)sizeof(block))
			return;
}

NOINLINE static void UpdateListener(void)
{
	pthread_mutex_lock(&g_audio_mutex);
	crunched = crunch(1.0, about(20));
	pthread_mutex_unlock(&g_audio_mutex);
}

NOINLINE static void SkinMeshes(void *arg)
{
	long us = (long)(intptr_t)arg;

	crunched = crunch(5.0, us * rounds_per_us);
	pthread_mutex_lock(&g_scene_mutex);
	crunched = crunch(5.0, 2 * rounds_per_us);
	pthread_mutex_unlock(&g_scene_mutex);
	pthread_mutex_lock(&jobs.lock);
	if (!--jobs.left)
		pthread_cond_signal(&jobs.finished);
	pthread_mutex_unlock(&jobs.lock);
}

NOINLINE static void KickJobs(const struct crew *c)
{
	int i;

	pthread_mutex_lock(&jobs.lock);
	jobs.left = JOBS;
	pthread_mutex_unlock(&jobs.lock);
	for (i = 0; i < JOBS; i++)
		worker__post(c->jobs[i % JOB_WORKERS], SkinMeshes, (void *)(intptr_t)(100 + 20 * i));
}

NOINLINE static void WaitForJobs(void)
{
	pthread_mutex_lock(&jobs.lock);
	while (jobs.left)
		pthread_cond_wait(&jobs.finished, &jobs.lock);
	pthread_mutex_unlock(&jobs.lock);
}

NOINLINE static void CullScene(void)
{
	crunched = crunch(6.0, about(600));
}

NOINLINE static void BuildDrawList(void)
{
	pthread_mutex_lock(&g_scene_mutex);
	crunched = crunch(7.0, about(5));
	pthread_mutex_unlock(&g_scene_mutex);
	crunched = crunch(7.0, about(800));
}

NOINLINE static void MixAudio(void)
{
	pthread_mutex_lock(&g_audio_mutex);
	crunched = crunch(8.0, 60 * rounds_per_us);
	pthread_mutex_unlock(&g_audio_mutex);
}

static void *run_audio(void *arg)
{
	int64_t next = now_ns();

	(void)arg;
	name_thread("AudioThread");
	while (!atomic_load(&audio_stop)) {
		MixAudio();
		next += 10 * NS_PER_MS;
		if (next < now_ns())
			next = now_ns();
		sleep_until(next);
	}
	return NULL;
}

int work__start(const struct data *d, uint64_t seed)
{
	int err;

	data = d;
	first_seed = (2 * seed + 1) * 2654435761U; /* odd: xorshift never leaves 0 */
	g_renderer = calloc(1, sizeof(*g_renderer));
	if (!g_renderer)
		return -ENOMEM;
	pthread_mutex_init(&g_renderer->upload_lock, NULL);
	calibrate();
	ReadSettings();
	err = pthread_create(&audio, NULL, run_audio, NULL);
	have_audio = !err;
	return -err;
}

void work__stop(void)
{
	atomic_store(&audio_stop, true);
	if (have_audio)
		pthread_join(audio, NULL);
	free(g_renderer);
	g_renderer = NULL;
}

void work__simulate(const struct crew *c)
{
	KickJobs(c);
	UpdatePhysics();
	UpdateAnimation();
	SpawnEntities();
	ReadSettings();
	UpdateListener();
	WaitForJobs();
	UpdateAI();
}

void work__render(void)
{
	CullScene();
	BuildDrawList();
}

void work__scene(long frame)
{
	static const char *const scenes[] = {"harbour", "mountains", "castle"};

	if (frame % SCENE_EVERY == 0)
		REDFRAME_SCENE(scenes[frame / SCENE_EVERY % 3]);
	/* again and again, for a tracer that came late; the other locks have symbols */
	if (frame % NAMES_EVERY == 0)
		REDFRAME_LOCK_NAME(&g_renderer->upload_lock, "Renderer::upload_lock");
}
