/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Call chains, and the functions and lines of their addresses.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model_internal.h"

/* ---- chains: a tree, each call named by a number greater than its caller's ---- */

/* The writer counts from 1 without a gap: another number is damage, and the chain through it is not known. */
int calls__call(struct model *m, const struct ev_call *rec)
{
	struct call c = {.addr = rec->addr, .caller = rec->caller, .flags = (u32)rec->flags};
	struct call *bigger;

	if (rec->id != m->n_calls + 1 || rec->caller >= rec->id || m->n_calls == MAX_CALLS)
		return 0;
	if (m->n_calls == m->cap_calls) {
		m->cap_calls = m->cap_calls ? 2 * m->cap_calls : 256;
		bigger = realloc(m->calls, m->cap_calls * sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		m->calls = bigger;
	}
	m->calls[m->n_calls++] = c;
	return 0;
}

const struct call *model__call(const struct model *m, u32 id)
{
	return id && id <= m->n_calls ? &m->calls[id - 1] : NULL;
}

/* ---- which chain an event has ---- */

int calls__stack(struct model *m, const struct ev_stack *rec)
{
	struct mthread *t = model__mthread(m, rec->hdr.tid);

	if (!t)
		return -ENOMEM;
	t->stack_ts = rec->hdr.ts;
	t->stack = rec->chain;
	return 0;
}

u32 model__chain(const struct model *m, const struct ev_hdr *rec)
{
	const struct mthread *t = table__get(&m->threads, key__int(rec->tid));

	return t && t->stack && t->stack_ts == rec->ts && model__call(m, t->stack) ? t->stack : 0;
}

/* ---- source lines ---- */

int calls__source(struct model *m, const struct ev_source *rec)
{
	char text[EV_MAX_BYTES];
	size_t len = ev__text(&rec->hdr, text, sizeof(text)), name = strlen(text);
	struct source s = {.addr = rec->addr, .line = rec->line, .level = rec->level}, *bigger;
	const char *kept;

	if (m->n_sources == m->cap_sources) {
		m->cap_sources = m->cap_sources ? 2 * m->cap_sources : 256;
		bigger = realloc(m->sources, m->cap_sources * sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		m->sources = bigger;
	}
	kept = pool__intern(&m->pool, text, len);
	if (!kept)
		return -ENOMEM;
	s.function = kept;
	s.file = len > name ? kept + name + 1 : kept + name;
	m->sources[m->n_sources++] = s;
	m->sources_sorted = false;
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct source *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (x->level > y->level) - (x->level < y->level);
}

u32 model__sources(const struct model *m, u64 addr, const struct source **out)
{
	struct model *own = (struct model *)m; /* the order is no part of what the model says */
	u32 lo = 0, hi = m->n_sources, n = 0;

	if (!m->sources_sorted && hi) {
		qsort(own->sources, hi, sizeof(*own->sources), by_place);
		own->sources_sorted = true;
	}
	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (m->sources[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo + n < m->n_sources && m->sources[lo + n].addr == addr)
		n++;
	*out = n ? &m->sources[lo] : NULL;
	return n;
}
