/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events_desc.h"
#include "growth.h"
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

/* The least gives way: what allocates most is there in the end. */
static void on_alloc(struct growth *g, const struct ev_alloc *e)
{
	struct growth_site *least = &g->sites[0];

	if (!e->caller)
		return;
	for (u32 i = 0; i < g->n_sites; i++) {
		if (g->sites[i].caller == e->caller) {
			g->sites[i].bytes += e->size;
			return;
		}
		least = g->sites[i].bytes < least->bytes ? &g->sites[i] : least;
	}
	if (g->n_sites < GROWTH_SITES)
		least = &g->sites[g->n_sites++];
	*least = (struct growth_site){e->caller, e->size};
}

void growth__record(struct growth *g, const struct ev_hdr *rec)
{
	switch (rec->kind) {
	case EV_SCENE:
		on_scene(g, rec);
		break;
	case EV_ALLOC:
		on_alloc(g, (const struct ev_alloc *)rec);
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

static int by_bytes(const void *a, const void *b)
{
	const struct growth_site *x = a, *y = b;

	return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

static void tell_sites(struct growth *g, const struct model *m, struct str *s)
{
	char name[256], size[32];

	qsort(g->sites, g->n_sites, sizeof(*g->sites), by_bytes);
	for (u32 i = 0; i < g->n_sites && i < SITES_TOLD; i++) {
		const struct mapping *map = model__mapping(m, g->sites[i].caller);
		const char *base = map && map->path[0] ? strrchr(map->path, '/') : NULL;
		u64 offset = map ? g->sites[i].caller - map->start + map->offset : 0;

		if (!function__name(m, g->sites[i].caller, name, sizeof(name)) && map)
			snprintf(name, sizeof(name), "%s+0x%llx", base ? base + 1 : map->path,
				(unsigned long long)offset);
		else if (!map)
			snprintf(name, sizeof(name), "0x%llx", (unsigned long long)g->sites[i].caller);
		str__fmt(s, "%s%s %s",
			i ? ", " : "; what allocates most in large blocks (frees are not matched): ", name,
			fmt__bytes(size, sizeof(size), g->sites[i].bytes));
	}
}

bool growth__suspect(struct growth *g, const struct model *m, u32 i, char *text, size_t size)
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
