// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device_watch.h"
#include "family.h"
#include "maps.h"
#include "objects.h"
#include "scout.h"
#include "site_build.h"
#include "trial.h"

#define LOOK_EVERY_US  25000 /* a library's probes come within 100 ms of its mapping */
#define LOOK_CLOSER_MS 1000  /* … where another of the same size went at the same time, within this */
#define SETTLE_MS      250   /* after something was mapped: by then it has been relocated, too */
#define AGAIN_FIRST_MS 1000  /* without a reason: at first, and then ever more rarely */
#define AGAIN_LAST_MS  8000
#define FAMILY_MS      250 /* between looks for new descendants */
#define REST_MS        500 /* after another process was found to be the game */

/* A descendant that was looked at. What it may present through is counted until it does. */
struct relative {
	u32 tgid;
	u64 seen; /* hash of the files that it mapped then */
	bool watched;
	struct trial trial;
	struct site_list sites;
};

struct scout {
	pthread_t thread;
	pthread_mutex_t lock;
	struct scout_want want; /* the thread's own */
	struct scout_find find; /* under lock, while `found` */
	bool found;
	bool stop, settled;
	char anew[SCOUT_SPEC_SIZE];  /* SPEC to begin with anew, under lock; "": nothing */
	char frame[SCOUT_SPEC_SIZE]; /* what it was */
	int blind;                   /* -errno, until it was told */
	u64 seen;                    /* hash of the files mapped */
	u64 code, closer;            /* pages of code as of then; and when (ms) to look whatever they are */
	char more[256];
	struct relative family[FAMILY_MAX];
	int n_family;
	struct device_watch devices;
	u64 settle;            /* ms: when to look once more at what was mapped last; 0: it was */
	u64 again, again_step; /* ms */
	char left_out[512];    /* what was told last */
	bool by_time;          /* it looks because time has passed, not because something is new */
	u64 family_next;       /* ms */
	u64 rest_until;        /* ms */
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

/* KiB of code in libraries: what the kernel knows without going through the mappings, which would hold the game up. */
static u64 code_size(u32 tgid)
{
	char path[64], *text, *line;
	u64 size = 0;

	snprintf(path, sizeof(path), "/proc/%u/status", tgid);
	text = proc__read(path, 8192, NULL);
	line = text ? strstr(text, "\nVmLib:") : NULL;
	if (line)
		size = strtoull(line + 7, NULL, 10);
	free(text);
	return size;
}

static u64 files_now(struct scout *s)
{
	u64 now = now_ms(), code = code_size(s->want.tgid);

	if (code == s->code && now < s->closer)
		return s->seen;
	s->code = code;
	s->closer = now + LOOK_CLOSER_MS;
	return hash_of_files(s->want.tgid);
}

static void watch_devices(struct scout *s)
{
	int err = device_watch__open(&s->devices, s->want.tgid);

	if (err)
		__atomic_store_n(&s->blind, err, __ATOMIC_RELAXED);
}

/* ---- looking ---- */

const char *scout__more(const char *source, char *spec, size_t size)
{
	if (!strncmp(source, "vulkan:", 7))
		source = "vulkan";
	else if (strncmp(source, "usdt:", 5) || !strncmp(source, "usdt:redframe:frame_", 20))
		return NULL;
	snprintf(spec, size, "%s", source);
	return spec;
}

static bool has_frames(struct scout_find *f, u32 tgid, const char *spec)
{
	f->tgid = tgid;
	f->why[0] = 0;
	return sites__frame(&f->sites, tgid, spec, f->source, sizeof(f->source), f->why, sizeof(f->why)) > 0;
}

static void unwatch(struct relative *r)
{
	if (r->watched)
		trial__close(&r->trial);
	sites__free(&r->sites);
	r->watched = false;
}

static void watch(struct relative *r, struct site_list *sites)
{
	unwatch(r);
	r->sites = *sites;
	*sites = (struct site_list){0};
	if (trial__open(&r->trial, r->tgid))
		return;
	r->watched = trial__add(&r->trial, &r->sites) >= 0;
	if (!r->watched)
		trial__close(&r->trial);
}

/* NULL: there are too many of them. */
static struct relative *relative(struct scout *s, u32 tgid)
{
	for (int i = 0; i < s->n_family; i++)
		if (s->family[i].tgid == tgid)
			return &s->family[i];
	for (int i = 0; i < s->n_family; i++)
		if (kill((pid_t)s->family[i].tgid, 0) && errno == ESRCH) {
			unwatch(&s->family[i]);
			s->family[i] = (struct relative){.tgid = tgid};
			return &s->family[i];
		}
	if (s->n_family == FAMILY_MAX)
		return NULL;
	s->family[s->n_family] = (struct relative){.tgid = tgid};
	return &s->family[s->n_family++];
}

/* A launcher starts the game: it is the one that is seen to present. */
static void look_among_family(struct scout *s, struct scout_find *f, bool again)
{
	struct scout_find k = {0};
	u32 tgids[FAMILY_MAX];
	int n = family__list(s->want.family, tgids, FAMILY_MAX);

	for (int i = 0; i < n && !__atomic_load_n(&s->stop, __ATOMIC_RELAXED); i++) {
		struct relative *r = tgids[i] == s->want.tgid ? NULL : relative(s, tgids[i]);
		u64 h = r ? hash_of_files(tgids[i]) : 0;
		bool fires = r && r->watched && trial__count(&r->trial, 0);

		if (!h || (h == r->seen && !again && !fires))
			continue;
		r->seen = h;
		if (has_frames(&k, tgids[i], s->want.frame) && (fires || !k.sites.unsure)) {
			sites__free(&f->sites);
			*f = k;
			return;
		}
		if (k.sites.n)
			watch(r, &k.sites);
		sites__free(&k.sites);
	}
}

static void look_for_frames(struct scout *s, struct scout_find *f)
{
	const struct scout_want *w = &s->want;
	bool found;

	if (!w->frame && !w->more)
		return;
	found = has_frames(f, w->tgid, w->frame ?: w->more);
	if (w->frame && w->family && (!found || f->sites.unsure)) {
		look_among_family(s, f, s->by_time);
		found |= f->tgid != w->tgid;
	}
	f->frame = found && w->frame;
}

static void hand_over(struct scout *s, const struct scout_find *f)
{
	pthread_mutex_lock(&s->lock);
	s->find = *f;
	s->found = true;
	/* another process is the game: whoever records stops this scout now, and must not wait for it */
	s->rest_until = f->tgid == s->want.tgid ? 0 : now_ms() + REST_MS;
	pthread_mutex_unlock(&s->lock);
}

static void leave_out(struct scout_find *f, const char *why)
{
	if (why[0])
		why__add(f->left_out, sizeof(f->left_out), "%s", why);
}

static void look_for_allocs(struct scout *s, struct scout_find *f)
{
	const struct scout_want *w = &s->want;
	char why[512];

	if (w->allocs) {
		f->allocs = sites__alloc(&f->sites, w->tgid, w->frees, why, sizeof(why)) > 0;
		if (f->allocs || strstr(why, "left out"))
			leave_out(f, why);
	}
	for (int i = 0; i < w->n_alloc_fns; i++)
		if (sites__alloc_fn(&f->sites, w->tgid, w->alloc_fns[i], why, sizeof(why)) >= 0)
			leave_out(f, why);
	if (!strcmp(f->left_out, s->left_out))
		f->left_out[0] = 0;
	else
		memcpy(s->left_out, f->left_out, sizeof(s->left_out));
}

static void look(struct scout *s)
{
	struct scout_find f = {};
	char why[512];

	look_for_frames(s, &f);
	if (!f.tgid)
		f.tgid = s->want.tgid;
	if (f.tgid != s->want.tgid) {
		hand_over(s, &f); /* whoever records begins anew with that process */
		return;
	}
	sites__markers(&f.sites, s->want.tgid, why, sizeof(why));
	look_for_allocs(s, &f);
	if (!f.sites.n && !f.left_out[0]) {
		sites__free(&f.sites);
		return;
	}
	if (f.frame) {
		s->want.unsure = f.sites.unsure;
		if (!f.sites.unsure)
			s->want.frame = NULL;
		s->want.more = scout__more(f.source, s->more, sizeof(s->more));
	}
	s->want.allocs &= !f.allocs;
	hand_over(s, &f);
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

/* Whose addresses were not in place yet when it was seen, was taken for a library without the functions. */
static bool settled_is_due(struct scout *s, bool mapped)
{
	u64 now = now_ms();

	if (mapped)
		s->settle = now + SETTLE_MS;
	if (!s->settle || now < s->settle)
		return false;
	s->settle = 0;
	return s->want.frame || s->want.allocs;
}

static bool family_is_due(struct scout *s)
{
	u64 now = now_ms();

	bool fires = false;

	for (int i = 0; i < s->n_family && !fires; i++)
		fires = s->family[i].watched && trial__count(&s->family[i].trial, 0);
	if (!s->want.family || !s->want.frame || (!fires && now < s->family_next))
		return false;
	s->family_next = now + FAMILY_MS;
	return true;
}

/* Descendants that are new, or have mapped something; the target itself is as it was. */
static void look_at_family(struct scout *s)
{
	struct scout_find f = {0};

	look_among_family(s, &f, false);
	f.frame = f.sites.n;
	if (f.frame)
		hand_over(s, &f);
}

static bool wants_vulkan(const struct scout *s)
{
	return s->want.frame || (s->want.more && !strcmp(s->want.more, "vulkan"));
}

static bool is_due(struct scout *s)
{
	u64 h = files_now(s);
	bool due = h && (h != s->seen || s->want.now);

	s->want.now &= !h;

	if (due && wants_vulkan(s))
		watch_devices(s);
	if (h)
		s->seen = h;
	due |= settled_is_due(s, due);
	due |= device_watch__is_due(&s->devices, now_ms());
	s->by_time = again_is_due(s);
	return due | s->by_time;
}

static void begin_anew(struct scout *s)
{
	pthread_mutex_lock(&s->lock);
	if (s->anew[0]) {
		memcpy(s->frame, s->anew, sizeof(s->frame));
		s->anew[0] = 0;
		s->want.frame = s->frame;
		s->want.more = NULL;
		s->want.unsure = false;
		s->want.now = true;
		__atomic_store_n(&s->settled, false, __ATOMIC_RELAXED);
		s->again_step = AGAIN_FIRST_MS;
		s->again = now_ms() + s->again_step;
	}
	pthread_mutex_unlock(&s->lock);
}

static void *run(void *arg)
{
	struct scout *s = arg;

	if (wants_vulkan(s))
		watch_devices(s);
	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		begin_anew(s);
		if (__atomic_load_n(&s->settled, __ATOMIC_RELAXED) && s->want.unsure) {
			s->want.frame = NULL;
			s->want.unsure = false;
		}
		if (!waiting(s) && now_ms() >= s->rest_until) {
			if (is_due(s))
				look(s);
			else if (family_is_due(s))
				look_at_family(s);
		}
		usleep(LOOK_EVERY_US);
	}
	device_watch__close(&s->devices);
	for (int i = 0; i < s->n_family; i++)
		unwatch(&s->family[i]);
	return NULL;
}

struct scout *scout__start(const struct scout_want *w)
{
	struct scout *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->want = *w;
	if (w->more) {
		snprintf(s->more, sizeof(s->more), "%s", w->more);
		s->want.more = s->more;
	}
	s->seen = hash_of_files(w->tgid); /* the caller has looked at these */
	s->settle = now_ms() + SETTLE_MS;
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

int scout__blind(struct scout *s)
{
	return __atomic_exchange_n(&s->blind, 0, __ATOMIC_RELAXED);
}

void scout__settle(struct scout *s)
{
	__atomic_store_n(&s->settled, true, __ATOMIC_RELAXED);
}

void scout__look_anew(struct scout *s, const char *frame)
{
	pthread_mutex_lock(&s->lock);
	snprintf(s->anew, sizeof(s->anew), "%s", frame);
	pthread_mutex_unlock(&s->lock);
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
