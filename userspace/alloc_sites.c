/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc_sites.h"
#include "names.h"
#include "where.h"

u64 alloc_sample__bytes(const struct ev_alloc_sample *e)
{
	double size = (double)min(e->size, 1ull << 40), period = (double)min(e->period, 1ull << 40);

	return period && size ? (u64)(size / -expm1(-size / period) + 0.5) : 0;
}

/* Where no function is known, the file of the code that asked for the memory. */
void alloc__where(const struct model *m, u32 chain, u64 caller, u64 ts, char *buf, size_t size)
{
	if (!where__function(m, chain, buf, size) && !(caller && code__name(m, code__at(m, caller, ts), buf, size)))
		snprintf(buf, size, "code without a name");
}

static struct alloc_site *site_of(struct alloc_sites *a, const char *where)
{
	u32 id = intern__id(&a->names, where);
	struct alloc_site *bigger;

	if (!id)
		return NULL;
	if (id > a->cap) {
		u32 cap = a->cap ? 2 * a->cap : 64; /* ids grow by one */

		bigger = realloc(a->v, cap * sizeof(*bigger));
		if (!bigger)
			return NULL;
		memset(bigger + a->cap, 0, (cap - a->cap) * sizeof(*bigger));
		a->v = bigger;
		a->cap = cap;
	}
	a->n = max(a->n, id);
	return &a->v[id - 1];
}

int alloc_sites__event(struct alloc_sites *a, const struct model *m, const struct ev_hdr *rec)
{
	const struct ev_alloc_sample *sample = (const struct ev_alloc_sample *)rec;
	const struct ev_alloc *one = (const struct ev_alloc *)rec;
	bool is_sample = rec->kind == EV_ALLOC_SAMPLE;
	u32 chain = is_sample || rec->kind == EV_ALLOC ? model__chain(m, rec) : 0;
	const struct thread *t = model__find_thread(m, rec->tid);
	struct alloc_site *s;
	char where[256];
	u64 bytes;

	if (!is_sample && (rec->kind != EV_ALLOC || one->size < ALLOC_ALWAYS_BYTES))
		return 0;
	if (t && t->tgid && !t->game) /* a child's addresses mean nothing in the game's symbols */
		return 0;
	alloc__where(m, chain, is_sample ? sample->caller : one->caller, rec->ts, where, sizeof(where));
	s = site_of(a, where);
	if (!s)
		return -ENOMEM;
	bytes = is_sample ? alloc_sample__bytes(sample) : one->size;
	s->bytes += bytes;
	s->samples += is_sample;
	s->large += !is_sample;
	a->bytes += bytes;
	a->samples += is_sample;
	if (is_sample)
		a->period = sample->period;
	return 0;
}

static int by_bytes(const void *x, const void *y)
{
	const struct alloc_site *a = x, *b = y;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	return strcmp(a->where, b->where);
}

const struct alloc_site *alloc_sites__list(struct alloc_sites *a, u32 *n)
{
	*n = 0;
	free(a->sorted);
	a->sorted = a->n ? malloc(a->n * sizeof(*a->sorted)) : NULL;
	for (u32 i = 0; a->sorted && i < a->n; i++) {
		a->sorted[i] = a->v[i];
		a->sorted[i].where = intern__text(&a->names, i + 1);
	}
	if (!a->sorted)
		return NULL;
	qsort(a->sorted, a->n, sizeof(*a->sorted), by_bytes);
	*n = a->n;
	return a->sorted;
}

void alloc_sites__free(struct alloc_sites *a)
{
	intern__free(&a->names);
	free(a->v);
	free(a->sorted);
	*a = (struct alloc_sites){};
}
