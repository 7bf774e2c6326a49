/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"
#include "patterns.h"
#include "sentence.h"

#define FIRST_VISIT_NS (2 * NSEC_PER_SEC)
#define REGULAR_SHARE  10 /* periodic: the intervals' standard deviation is below 1/10 of their mean */

struct pattern_entry {
	struct pattern p;
	double mean, m2; /* of the intervals, ns: Welford */
};

void patterns__free(struct patterns *p)
{
	for (u32 i = 0; i < p->n; i++)
		free((char *)p->entries[i].p.text);
	free(p->entries);
	free(p->list);
	memset(p, 0, sizeof(*p));
}

static u64 *seen_of(struct patterns *p, const char *scene, u64 now)
{
	u64 h = hash_bytes(scene, strlen(scene));

	for (u32 i = 0; i < p->n_scenes; i++)
		if (p->scenes[i] == h)
			return &p->scene_seen[i];
	if (p->n_scenes == SCENES_MAX)
		return NULL;
	p->scenes[p->n_scenes] = h;
	p->scene_seen[p->n_scenes] = now;
	return &p->scene_seen[p->n_scenes++];
}

void patterns__scene(struct patterns *p, const struct frame *f)
{
	if (f->scene[0])
		seen_of(p, f->scene, f->start);
}

static struct pattern_entry *find(struct patterns *p, u64 key)
{
	for (u32 i = 0; i < p->n; i++)
		if (p->entries[i].p.key == key)
			return &p->entries[i];
	return NULL;
}

static struct pattern_entry *add(struct patterns *p, const struct verdict *v, const struct part *lead, u64 key)
{
	struct str text = {0};
	struct pattern_entry *e;

	if (!p->entries)
		p->entries = calloc(PATTERNS_MAX, sizeof(*p->entries));
	sentence__pattern(&text, lead);
	if (!p->entries || text.oom) {
		str__free(&text);
		return NULL;
	}
	e = &p->entries[p->n++];
	e->p.key = key;
	e->p.cause = sentence__root(lead)->cause;
	e->p.text = text.s;
	e->p.first = v->frame.end;
	return e;
}

static void add_interval(struct pattern_entry *e, u64 ns)
{
	double d = (double)ns - e->mean;

	/* p.count already counts this hitch: that many intervals, less one */
	e->mean += d / (e->p.count - 1);
	e->m2 += d * ((double)ns - e->mean);
}

int patterns__add(struct patterns *p, const struct verdict *v)
{
	u64 key, duration = v->frame.end - v->frame.start, *seen;
	struct pattern_entry *e;
	s64 excess_ns;
	const struct part *lead = sentence__lead(v, &excess_ns);

	if (!lead)
		return 0;
	key = sentence__fingerprint(lead);
	e = find(p, key);
	if (!e && p->n == PATTERNS_MAX) {
		p->others++;
		return 0;
	}
	if (!e)
		e = add(p, v, lead, key);
	if (!e)
		return -ENOMEM;
	e->p.count++;
	if (e->p.count > 1)
		add_interval(e, v->frame.end - min(e->p.last, v->frame.end));
	e->p.last = v->frame.end;
	if (__builtin_add_overflow(e->p.excess_ns, excess_ns, &e->p.excess_ns))
		e->p.excess_ns = INT64_MAX;
	if (duration > e->p.worst_ns) {
		e->p.worst_ns = duration;
		e->p.worst_frame = v->frame.number;
	}
	seen = v->frame.scene[0] ? seen_of(p, v->frame.scene, v->frame.start) : NULL;
	e->p.first_visits += seen && v->frame.end - min(*seen, v->frame.end) <= FIRST_VISIT_NS;
	return 0;
}

static u64 period(const struct pattern_entry *e)
{
	u64 intervals = e->p.count - 1;
	double deviation;

	if (intervals < 2)
		return 0;
	deviation = sqrt(e->m2 / intervals);
	return deviation < e->mean / REGULAR_SHARE ? (u64)e->mean : 0;
}

static int by_excess(const void *a, const void *b)
{
	const struct pattern *x = a, *y = b;

	if (x->excess_ns != y->excess_ns)
		return x->excess_ns > y->excess_ns ? -1 : 1;
	return x->first != y->first ? (x->first < y->first ? -1 : 1) : x->key < y->key ? -1 : x->key > y->key;
}

const struct pattern *patterns__list(struct patterns *p, u32 *n)
{
	free(p->list);
	p->list = p->n ? calloc(p->n, sizeof(*p->list)) : NULL;
	*n = p->list ? p->n : 0;
	for (u32 i = 0; i < *n; i++) {
		p->list[i] = p->entries[i].p;
		p->list[i].period_ns = period(&p->entries[i]);
	}
	if (*n)
		qsort(p->list, *n, sizeof(*p->list), by_excess);
	return p->list;
}
