/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc_sites.h"
#include "events_desc.h"
#include "growth.h"
#include "intern.h"
#include "model.h"
#include "names.h"
#include "strings.h"

#define SITES_TOLD 3

void growth__reset(struct growth *g)
{
	memset(g, 0, sizeof(*g));
}

static struct growth_scene *scene_of(struct growth *g, const char *name)
{
	for (u32 i = 0; i < g->n_scenes; i++)
		if (!strcmp(g->scenes[i].name, name))
			return &g->scenes[i];
	if (g->n_scenes == GROWTH_SCENES)
		return NULL;
	snprintf(g->scenes[g->n_scenes].name, sizeof(g->scenes[0].name), "%s", name);
	return &g->scenes[g->n_scenes++];
}

static void end_visit(struct growth *g, u64 ts)
{
	struct growth_scene *s = g->heap ? scene_of(g, g->scene) : NULL;
	double x, y = (double)g->heap;

	g->since = ts;
	if (!s)
		return;
	x = s->visits;
	s->rises += s->visits && g->heap > s->last;
	s->fell += s->visits ? s->last - min(s->last, g->heap) : 0;
	s->first = s->visits ? s->first : g->heap;
	s->last = g->heap;
	s->visits++;
	s->sx += x;
	s->sy += y;
	s->sxx += x * x;
	s->sxy += x * y;
}

static void on_scene(struct growth *g, const struct ev_hdr *rec)
{
	char text[EV_MAX_BYTES], name[64];

	utf8__sanitize(name, sizeof(name), text, ev__text(rec, text, sizeof(text)));
	if (!strcmp(name, g->scene))
		return;
	if (g->scene[0])
		end_visit(g, rec->ts);
	memcpy(g->scene, name, sizeof(g->scene));
	g->since = rec->ts;
}

static u64 weight(const struct growth *g, const struct growth_site *s)
{
	return g->matched ? s->live + s->large : s->bytes;
}

/* make: the least of its set gives way where it has none. NULL: it has none. */
static struct growth_site *site_of(struct growth *g, u64 caller, bool make)
{
	struct growth_site *set = g->sites[hash64(caller) & (GROWTH_SETS - 1)], *least = set;

	for (u32 i = 0; i < GROWTH_WAYS; i++) {
		if (set[i].caller == caller)
			return &set[i];
		least = weight(g, &set[i]) < weight(g, least) ? &set[i] : least;
	}
	if (!make)
		return NULL;
	if (g->sample.site == least)
		g->sample.site = NULL;
	*least = (struct growth_site){.caller = caller};
	return least;
}

static void on_sample(struct growth *g, const struct ev_alloc_sample *e)
{
	struct growth_site *s = site_of(g, e->caller, true);
	struct block b = {e->addr, e->caller, alloc_sample__bytes(e)};

	g->sample = (struct growth_sample){s, e->hdr.ts, b.bytes, e->hdr.tid};
	s->bytes += b.bytes;
	s->samples++;
	if (!b.addr)
		return;
	g->matched = true;
	if (blocks__add(&g->blocks, &b))
		s->live += b.bytes;
	else
		g->cut = true;
}

static void on_free(struct growth *g, u64 addr)
{
	struct growth_site *s;
	struct block b;

	if (!blocks__take(&g->blocks, addr, &b))
		return;
	s = site_of(g, b.caller, false);
	if (s)
		s->live -= min(s->live, b.bytes);
}

static void on_alloc(struct growth *g, const struct ev_alloc *e)
{
	struct growth_site *s = site_of(g, e->caller, true);

	if (g->sample.site == s && g->sample.ts == e->hdr.ts && g->sample.tid == e->hdr.tid) {
		s->bytes -= g->sample.bytes;
		s->samples--;
		g->sample.site = NULL;
	}
	s->bytes += e->size;
	s->large += e->size >= ALLOC_ALWAYS_BYTES ? e->size : 0;
	if (e->fn == ALLOC_REALLOC)
		on_free(g, e->addr);
}

/* a child's addresses mean nothing in the game's code */
static bool of_game(const struct model *m, u32 tid)
{
	const struct thread *t = model__find_thread(m, tid);

	return !t || !t->tgid || t->game;
}

void growth__record(struct growth *g, const struct model *m, const struct ev_hdr *rec)
{
	switch (rec->kind) {
	case EV_SCENE:
		on_scene(g, rec);
		break;
	case EV_ALLOC:
		if (((const struct ev_alloc *)rec)->caller && of_game(m, rec->tid))
			on_alloc(g, (const struct ev_alloc *)rec);
		break;
	case EV_ALLOC_SAMPLE:
		if (((const struct ev_alloc_sample *)rec)->caller && of_game(m, rec->tid))
			on_sample(g, (const struct ev_alloc_sample *)rec);
		break;
	case EV_FREE:
		if (of_game(m, rec->tid))
			on_free(g, ((const struct ev_free *)rec)->addr);
		break;
	case EV_LOST:
		g->cut |= ((const struct ev_lost *)rec)->class == CLASS_ALLOC;
		break;
	case EV_SHED:
		g->cut |= ((const struct ev_shed *)rec)->class == CLASS_ALLOC;
		break;
	case EV_MEMORY:
		g->heap = ((const struct ev_memory *)rec)->heap;
		g->since = g->since ?: rec->ts;
		if (!g->scene[0] && rec->ts > g->since && rec->ts - g->since >= GROWTH_WINDOW_NS)
			end_visit(g, rec->ts);
		break;
	}
}

/* by least squares, bytes a visit */
static double slope(const struct growth_scene *s)
{
	double n = s->visits, d = n * s->sxx - s->sx * s->sx;

	return d > 0 ? (n * s->sxy - s->sx * s->sy) / d : 0;
}

static bool is_suspect(const struct growth_scene *s)
{
	if (s->visits < (s->name[0] ? GROWTH_VISITS : GROWTH_WINDOWS))
		return false;
	/* Nearly each visit ended with more than the one before. What a garbage collector lets rise, it lets fall
	 * again. */
	return s->rises * 5 >= (s->visits - 1) * 4 && slope(s) >= GROWTH_LEAST && s->last > s->first &&
	       s->last - s->first > 4 * s->fell;
}

bool growth__is_suspect(const struct growth *g)
{
	for (u32 i = 0; i < g->n_scenes; i++)
		if (is_suspect(&g->scenes[i]))
			return true;
	return false;
}

u32 growth__sites(const struct growth *g, struct growth_site *out, u32 max)
{
	u32 n = 0, at;

	for (u32 i = 0; i < GROWTH_SETS * GROWTH_WAYS; i++) {
		const struct growth_site *s = &g->sites[i / GROWTH_WAYS][i % GROWTH_WAYS];

		for (at = n; at && weight(g, &out[at - 1]) < weight(g, s); at--)
			if (at < max)
				out[at] = out[at - 1];
		if (!weight(g, s) || at == max)
			continue;
		out[at] = *s;
		n = min(n + 1, max);
	}
	return n;
}

static void tell_site(const struct growth *g, const struct growth_site *site, const struct model *m, struct str *s)
{
	const struct mapping *map = model__mapping(m, site->caller);
	const char *base = map && map->path[0] ? strrchr(map->path, '/') : NULL;
	u64 offset = map ? site->caller - map->start + map->offset : 0;
	char name[256], size[32];

	if (!function__name(m, site->caller, name, sizeof(name)) && map)
		snprintf(name, sizeof(name), "%s+0x%llx", base ? base + 1 : map->path, (unsigned long long)offset);
	else if (!map)
		snprintf(name, sizeof(name), "0x%llx", (unsigned long long)site->caller);
	str__fmt(s, "%s %s", name, fmt__bytes(size, sizeof(size), weight(g, site)));
	if (site->samples)
		str__fmt(s, " (estimated from %u samples)", site->samples);
}

/* Where a function allocates at several places, each is a site. */
static void tell_sites(const struct growth *g, const struct model *m, struct str *s)
{
	struct growth_site sites[SITES_TOLD];
	u32 n = growth__sites(g, sites, SITES_TOLD);

	if (n)
		str__add(s, g->matched ? "; what holds most" : "; what allocated most (frees are not matched)");
	if (n && g->cut)
		str__add(s, ", as far as allocations were recorded");
	for (u32 i = 0; i < n; i++) {
		str__add(s, i ? ", " : ": ");
		tell_site(g, &sites[i], m, s);
	}
}

bool growth__suspect(const struct growth *g, const struct model *m, u32 i, char *text, size_t size)
{
	char each[32], from[32], to[32];
	struct str s = {};

	for (u32 n = 0; n < g->n_scenes; n++) {
		const struct growth_scene *k = &g->scenes[n];

		if (!is_suspect(k) || i--)
			continue;
		str__fmt(&s, "suspected leak%s%s: memory grew by %s with each %s, %u times, from %s to %s",
			k->name[0] ? " in scene " : "", k->name, fmt__bytes(each, sizeof(each), (u64)slope(k)),
			k->name[0] ? "visit" : "five minutes", k->visits - 1, fmt__bytes(from, sizeof(from), k->first),
			fmt__bytes(to, sizeof(to), k->last));
		tell_sites(g, m, &s);
		snprintf(text, size, "%s", s.s ?: "");
		str__free(&s);
		return true;
	}
	return false;
}
