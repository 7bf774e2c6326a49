// SPDX-License-Identifier: GPL-2.0-only
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "maps.h"
#include "scout.h"

#define LOOK_EVERY_US 50000 /* a library's probes come within 100 ms of its mapping */

struct scout {
	pthread_t thread;
	pthread_mutex_t lock;
	struct scout_want want; /* the thread's own */
	struct scout_find find; /* under lock, while `found` */
	bool found;
	bool stop;
	u64 seen; /* hash of the files mapped */
};

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

static void look(struct scout *s)
{
	struct scout_find f = {};
	char why[512];

	f.frame = s->want.frame &&
		  sites__frame(&f.sites, s->want.tgid, s->want.frame, f.source, sizeof(f.source), why, sizeof(why)) > 0;
	f.markers = s->want.markers && sites__markers(&f.sites, s->want.tgid, why, sizeof(why)) > 0;
	f.allocs = s->want.allocs && sites__alloc(&f.sites, s->want.tgid, s->want.frees, why, sizeof(why)) > 0;
	if (!f.sites.n) {
		sites__free(&f.sites);
		return;
	}
	if (f.frame)
		s->want.frame = NULL;
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

static void *run(void *arg)
{
	struct scout *s = arg;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		u64 h = waiting(s) ? s->seen : hash_of_files(s->want.tgid);

		if (h && h != s->seen) {
			s->seen = h;
			look(s);
		}
		if (!s->want.frame && !s->want.markers && !s->want.allocs)
			break;
		usleep(LOOK_EVERY_US);
	}
	return NULL;
}

struct scout *scout__start(const struct scout_want *w)
{
	struct scout *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->want = *w;
	s->seen = hash_of_files(w->tgid); /* the caller has looked at these */
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
