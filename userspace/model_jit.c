/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Code made at run time: other code may have been at the same address before.
 */
#include <errno.h>
#include <stdlib.h>

#include "model_internal.h"

#define REACH     (1u << 20) /* no such code is longer */
#define STEPS_MAX 4096

struct jit_symbol {
	struct symbol s;
	u64 since, until;
};

/* The writer counts from 1 without a gap. */
int jits__symbol(struct model *m, const struct ev_jit_symbol *rec)
{
	char text[EV_MAX_BYTES];
	struct jit_symbol j = {
		.s = {.addr = rec->addr, .size = rec->size, .object = ""}, .since = rec->since, .until = rec->until};
	struct jit_symbol *bigger;

	if (rec->id != m->n_jits + 1ULL || m->n_jits == MAX_JITS)
		return 0;
	if (m->n_jits == m->cap_jits) {
		m->cap_jits = m->cap_jits ? 2 * m->cap_jits : 256;
		bigger = realloc(m->jits, m->cap_jits * sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		m->jits = bigger;
	}
	j.s.name = pool__intern(&m->pool, text, ev__text(&rec->hdr, text, sizeof(text)));
	if (!j.s.name)
		return -ENOMEM;
	m->jits[m->n_jits++] = j;
	free(m->jits_by_addr);
	m->jits_by_addr = NULL;
	return 0;
}

void jits__free(struct model *m)
{
	free(m->jits);
	free(m->jits_by_addr);
}

const struct symbol *model__jit(const struct model *m, u64 id)
{
	return id && id <= m->n_jits ? &m->jits[id - 1].s : NULL;
}

static int by_addr(const void *a, const void *b, void *arg)
{
	const struct jit_symbol *jits = arg, *x = &jits[*(const u32 *)a - 1], *y = &jits[*(const u32 *)b - 1];

	return x->s.addr < y->s.addr ? -1 : x->s.addr > y->s.addr;
}

static bool sort(struct model *m)
{
	if (m->jits_by_addr || !m->n_jits)
		return m->n_jits;
	m->jits_by_addr = malloc(m->n_jits * sizeof(*m->jits_by_addr));
	if (!m->jits_by_addr)
		return false;
	for (u32 i = 0; i < m->n_jits; i++)
		m->jits_by_addr[i] = i + 1;
	qsort_r(m->jits_by_addr, m->n_jits, sizeof(*m->jits_by_addr), by_addr, m->jits);
	return true;
}

u32 model__jit_at(const struct model *m, u64 addr, u64 ts)
{
	u32 lo = 0, hi = m->n_jits, mid;

	if (!sort((struct model *)m)) /* the order is no part of what the model says */
		return 0;
	while (lo < hi) { /* the first that begins above addr */
		mid = lo + (hi - lo) / 2;
		if (m->jits[m->jits_by_addr[mid] - 1].s.addr > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	for (u32 n = 0; lo-- && n < STEPS_MAX; n++) {
		const struct jit_symbol *j = &m->jits[m->jits_by_addr[lo] - 1];

		if (addr - j->s.addr >= REACH)
			break;
		if (addr - j->s.addr < j->s.size && ts >= j->since && ts < j->until)
			return m->jits_by_addr[lo];
	}
	return 0;
}
