/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Clocks, and threads that take jobs from a queue.
 */
#include "game.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

_Thread_local volatile double crunched;

static int64_t read_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int64_t now_ns(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

int64_t cpu_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void sleep_until(int64_t ns)
{
	struct timespec t = {ns / 1000000000, ns % 1000000000};

	/* a signal only shortens it: the loops look at the stop flag once a frame */
	clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &t, NULL);
}

void name_thread(const char *name)
{
	prctl(PR_SET_NAME, name);
}

#define QUEUE 64

struct job {
	void (*fn)(void *);
	void *arg;
};

struct worker {
	char name[16];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct job queue[QUEUE];
	unsigned int head, tail; /* taken, posted */
	bool stopping;
	pid_t tid; /* 0 until it runs */
};

static bool next_job(struct worker *w, struct job *job)
{
	bool got;

	pthread_mutex_lock(&w->lock);
	while (w->head == w->tail && !w->stopping)
		pthread_cond_wait(&w->changed, &w->lock);
	got = w->head != w->tail;
	if (got) {
		*job = w->queue[w->head++ % QUEUE];
		pthread_cond_broadcast(&w->changed);
	}
	pthread_mutex_unlock(&w->lock);
	return got;
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;
	struct job job;

	name_thread(w->name);
	pthread_mutex_lock(&w->lock);
	w->tid = gettid();
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	while (next_job(w, &job))
		job.fn(job.arg);
	return NULL;
}

struct worker *worker__start(const char *name)
{
	struct worker *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return NULL;
	snprintf(w->name, sizeof(w->name), "%s", name);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	err = pthread_create(&w->thread, NULL, run_worker, w);
	if (err) {
		free(w);
		errno = err;
		return NULL;
	}
	pthread_mutex_lock(&w->lock);
	while (!w->tid)
		pthread_cond_wait(&w->changed, &w->lock);
	pthread_mutex_unlock(&w->lock);
	return w;
}

void worker__post(struct worker *w, void (*fn)(void *), void *arg)
{
	pthread_mutex_lock(&w->lock);
	while (w->tail - w->head == QUEUE)
		pthread_cond_wait(&w->changed, &w->lock);
	w->queue[w->tail++ % QUEUE] = (struct job){fn, arg};
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

void worker__stop(struct worker *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

pid_t worker__tid(const struct worker *w)
{
	return w->tid;
}

const char *worker__name(const struct worker *w)
{
	return w->name;
}

int crew__start(struct crew *c, enum shape shape)
{
	char name[16];
	int i;

	memset(c, 0, sizeof(*c));
	c->loader = worker__start("AssetLoader");
	c->middle = c->loader ? worker__start(shape == SHAPE_LOOP ? "RenderThread" : "StreamingThread") : NULL;
	if (!c->middle)
		return -errno;
	for (i = 0; i < JOB_WORKERS; i++) {
		snprintf(name, sizeof(name), "JobWorker%d", i);
		c->jobs[i] = worker__start(name);
		if (!c->jobs[i])
			return -errno;
	}
	return 0;
}

void crew__stop(struct crew *c)
{
	int i;

	for (i = 0; i < JOB_WORKERS; i++)
		worker__stop(c->jobs[i]);
	worker__stop(c->middle);
	worker__stop(c->loader);
	memset(c, 0, sizeof(*c));
}
