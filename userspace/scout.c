// SPDX-License-Identifier: GPL-2.0-only
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "maps.h"
#include "objects.h"
#include "scout.h"
#include "trial.h"
#include "vulkan.h"

#define LOOK_EVERY_US  50000 /* a library's probes come within 100 ms of its mapping */
#define AGAIN_FIRST_MS 1000  /* without a reason: at first, and then ever more rarely */
#define AGAIN_LAST_MS  8000
#define DEVICE_LOOKS   5 /* after a vkCreateDevice, which takes its time: after 50, 100, 200, … ms */

/* Counts the game's calls of vkCreateDevice. */
struct device_watch {
	bool on;
	struct trial trial;
	struct site_list sites;
	u64 count;
	int looks; /* still to come */
	u64 next;  /* ms */
	u64 step;
};

struct scout {
	pthread_t thread;
	pthread_mutex_t lock;
	struct scout_want want; /* the thread's own */
	struct scout_find find; /* under lock, while `found` */
	bool found;
	bool stop, settled;
	u64 seen; /* hash of the files mapped */
	struct device_watch devices;
	u64 again, again_step; /* ms */
};

static u64 now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000 + (u64)t.tv_nsec / 1000000;
}

/* Changes when a file is mapped or unmapped. */
static u64 hash_of_files(u32 tgid)
{
	struct maps maps = {};
	u64 h = 0;

	if (maps__read(&maps, tgid))
		return 0;
	for (int i = 0; i < maps.n; i++)
		if (maps.v[i].ino && maps.v[i].prot & PROT_EXEC)
			h = h * 31 + (maps.v[i].ino ^ (u64)maps.v[i].dev << 32 ^ maps.v[i].start);
	maps__free(&maps);
	return h;
}

/* ---- Vulkan devices ---- */

static void watch_devices(struct scout *s)
{
	struct device_watch *d = &s->devices;
	struct objects o;

	if (d->on || objects__read(&o, s->want.tgid))
		return;
	if (vulkan__create_device(&d->sites, &o) > 0 && !trial__open(&d->trial, s->want.tgid)) {
		d->on = trial__add(&d->trial, &d->sites) >= 0;
		if (!d->on)
			trial__close(&d->trial);
	}
	objects__free(&o);
	if (!d->on)
		sites__free(&d->sites);
}

static void unwatch_devices(struct device_watch *d)
{
	if (d->on)
		trial__close(&d->trial);
	sites__free(&d->sites);
	d->on = false;
}

/* Whether it is time to look for a device that may be new. */
static bool device_is_due(struct device_watch *d)
{
	u64 n = d->on ? trial__count(&d->trial, 0) : 0;

	if (n != d->count) {
		d->count = n;
		d->looks = DEVICE_LOOKS;
		d->step = 50;
		d->next = now_ms() + d->step;
	}
	if (!d->looks || now_ms() < d->next)
		return false;
	d->looks--;
	d->step *= 2;
	d->next += d->step;
	return true;
}

/* ---- looking ---- */

static void look_for_frames(struct scout *s, struct scout_find *f)
{
	const struct scout_want *w = &s->want;

	if (!w->frame && !w->vulkan)
		return;
	if (sites__frame(&f->sites, w->tgid, w->frame ?: "vulkan", f->source, sizeof(f->source), f->why,
		    sizeof(f->why)) <= 0)
		return;
	f->frame = w->frame;
	f->more_frames = !w->frame;
}

static void look(struct scout *s)
{
	struct scout_find f = {};
	char why[512];

	look_for_frames(s, &f);
	f.markers = s->want.markers && sites__markers(&f.sites, s->want.tgid, why, sizeof(why)) > 0;
	f.allocs = s->want.allocs && sites__alloc(&f.sites, s->want.tgid, s->want.frees, why, sizeof(why)) > 0;
	if (!f.sites.n) {
		sites__free(&f.sites);
		return;
	}
	if (f.frame) {
		s->want.unsure = f.sites.unsure;
		if (!f.sites.unsure)
			s->want.frame = NULL;
		s->want.vulkan = !strncmp(f.source, "vulkan:", 7);
	}
	s->want.markers &= !f.markers;
	s->want.allocs &= !f.allocs;
	pthread_mutex_lock(&s->lock);
	s->find = f;
	s->found = true;
	pthread_mutex_unlock(&s->lock);
}

static bool waiting(struct scout *s)
{
	bool yes;

	pthread_mutex_lock(&s->lock);
	yes = s->found;
	pthread_mutex_unlock(&s->lock);
	return yes;
}

/* A game that loads, or shows a still picture, presents nothing: what it will present through is known later. */
static bool again_is_due(struct scout *s)
{
	u64 now = now_ms();

	if (!s->want.frame || now < s->again)
		return false;
	s->again_step = min(2 * s->again_step, (u64)AGAIN_LAST_MS);
	s->again = now + s->again_step;
	return true;
}

static bool is_due(struct scout *s)
{
	u64 h = hash_of_files(s->want.tgid);
	bool due = h && h != s->seen;

	if (due && (s->want.frame || s->want.vulkan))
		watch_devices(s);
	if (h)
		s->seen = h;
	due |= device_is_due(&s->devices);
	return due | again_is_due(s);
}

static bool wants_nothing(struct scout *s)
{
	const struct scout_want *w = &s->want;

	return !w->frame && !w->markers && !w->allocs && !(w->vulkan && s->devices.on);
}

static void *run(void *arg)
{
	struct scout *s = arg;

	if (s->want.frame || s->want.vulkan)
		watch_devices(s);
	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		if (__atomic_load_n(&s->settled, __ATOMIC_RELAXED) && s->want.unsure) {
			s->want.frame = NULL;
			s->want.unsure = false;
		}
		if (!waiting(s) && is_due(s))
			look(s);
		if (wants_nothing(s))
			break;
		usleep(LOOK_EVERY_US);
	}
	unwatch_devices(&s->devices);
	return NULL;
}

struct scout *scout__start(const struct scout_want *w)
{
	struct scout *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->want = *w;
	s->seen = hash_of_files(w->tgid); /* the caller has looked at these */
	s->again_step = AGAIN_FIRST_MS;
	s->again = now_ms() + s->again_step;
	pthread_mutex_init(&s->lock, NULL);
	if (pthread_create(&s->thread, NULL, run, s)) {
		free(s);
		return NULL;
	}
	return s;
}

bool scout__take(struct scout *s, struct scout_find *out)
{
	bool yes;

	pthread_mutex_lock(&s->lock);
	yes = s->found;
	if (yes)
		*out = s->find;
	s->found = false;
	pthread_mutex_unlock(&s->lock);
	return yes;
}

void scout__settle(struct scout *s)
{
	__atomic_store_n(&s->settled, true, __ATOMIC_RELAXED);
}

void scout__stop(struct scout *s)
{
	if (!s)
		return;
	__atomic_store_n(&s->stop, true, __ATOMIC_RELAXED);
	pthread_join(s->thread, NULL);
	if (s->found)
		sites__free(&s->find.sites);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
