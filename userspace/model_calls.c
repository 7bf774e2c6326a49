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
	struct call c = {.addr = rec->addr, .caller = rec->caller, .flags = (u32)rec->flags, .jit = (u32)rec->jit};
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

/* ---- in the kernel ---- */

int calls__kstack(struct model *m, const struct ev_kstack *rec)
{
	u32 n = m->n_kchains ? m->n_kchains : 1024, *bigger;

	if (rec->id >= MAX_KSTACKS)
		return 0;
	while (n <= rec->id)
		n *= 2;
	if (n > m->n_kchains) {
		bigger = realloc(m->kchains, n * sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		memset(bigger + m->n_kchains, 0, (n - m->n_kchains) * sizeof(*bigger));
		m->kchains = bigger;
		m->n_kchains = n;
	}
	m->kchains[rec->id] = rec->chain;
	return 0;
}

int calls__switch(struct model *m, const struct ev_switch *rec)
{
	struct mthread *t = rec->kstack ? model__mthread(m, rec->hdr.tid) : NULL;

	if (!rec->kstack)
		return 0;
	if (!t)
		return -ENOMEM;
	t->kstack = rec->kstack;
	t->kstack_ts = rec->hdr.ts;
	return 0;
}

u32 model__kernel_chain(const struct model *m, u32 kstack)
{
	u32 chain = kstack < m->n_kchains ? m->kchains[kstack] : 0;

	return model__call(m, chain) ? chain : 0;
}

u32 model__blocked_chain(const struct model *m, const struct ev_hdr *rec)
{
	const struct mthread *t = table__get(&m->threads, key__int(rec->tid));

	if (!t || !t->kstack || t->kstack_ts > rec->ts || rec->ts - t->kstack_ts > ev__dur(rec))
		return 0;
	return model__kernel_chain(m, t->kstack);
}

/* ---- the files ---- */

int calls__image(struct model *m, const struct ev_image *rec)
{
	struct code_image new = {.start = rec->start, .end = rec->end, .bias = rec->bias}, *bigger;
	char text[EV_MAX_BYTES];

	if (m->n_images == MAX_IMAGES)
		return 0;
	ev__text(&rec->hdr, text, sizeof(text));
	new.build_id = pool__intern(&m->pool, text, strlen(text));
	bigger = m->n_images & (m->n_images - 1) ? m->images
						 : realloc(m->images, max(2 * m->n_images, 1u) * sizeof(*bigger));
	if (!bigger || !new.build_id)
		return -ENOMEM;
	m->images = bigger;
	m->images[m->n_images++] = new;
	return 0;
}

const struct code_image *model__image(const struct model *m, u64 addr)
{
	for (u32 i = m->n_images; i-- > 0;) /* of two at one place the later */
		if (addr >= m->images[i].start && addr < m->images[i].end)
			return &m->images[i];
	return NULL;
}

/* ---- source lines ---- */

int calls__source(struct model *m, const struct ev_source *rec)
{
	char text[EV_MAX_BYTES];
	size_t len = ev__text(&rec->hdr, text, sizeof(text)), name = strlen(text);
	struct source s = {.ts = rec->hdr.ts, .addr = rec->addr, .line = rec->line, .level = rec->level}, *bigger;
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
	if (x->ts != y->ts)
		return x->ts > y->ts ? -1 : 1;
	return (x->level > y->level) - (x->level < y->level);
}

/* Of an address that was looked up twice, the later time counts. */
static void sort_sources(struct model *m)
{
	u32 kept = 0;

	qsort(m->sources, m->n_sources, sizeof(*m->sources), by_place);
	for (u32 i = 0; i < m->n_sources; i++) {
		const struct source *last = kept ? &m->sources[kept - 1] : NULL, *s = &m->sources[i];

		if (!last || last->addr != s->addr || (last->ts == s->ts && last->level != s->level))
			m->sources[kept++] = *s;
	}
	m->n_sources = kept;
	m->sources_sorted = true;
}

u32 model__sources(const struct model *m, u64 addr, const struct source **out)
{
	u32 lo = 0, hi, n = 0;

	if (!m->sources_sorted && m->n_sources)
		sort_sources((struct model *)m); /* the order is no part of what the model says */
	hi = m->n_sources;
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
