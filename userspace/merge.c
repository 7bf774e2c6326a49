/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Records are copied into blocks; a block is used again when all its records have gone out. Records that arrive in
 * order form a queue (`run`): O(1) each. The few that arrive behind its end go into a heap: O(log n). What goes out is
 * the lesser of the two heads, so input in any order costs O(log n) at worst.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge.h"

#define BLOCK_BYTES (64u << 10) /* blocks are aligned to their size: a record's address tells its block */

struct block {
	struct block *next; /* free list */
	struct block *all;  /* every block, for merge__free */
	u32 used;           /* bytes filled, this header included */
	u32 live;           /* records not given out yet */
};

struct item {
	u64 ts;
	u64 order; /* cpu, then arrival: 16 and 48 bits */
	const struct ev_hdr *rec;
};

struct merge {
	u64 window_ns;
	size_t max_bytes, held_bytes;
	struct block *filling, *spare, *all;
	struct item *run; /* a ring of run_cap entries, a power of two */
	size_t run_cap, run_head, run_len;
	struct item *heap;
	size_t heap_cap, heap_len;
	const struct ev_hdr *out; /* given out last: its bytes are still in use */
	u64 newest, last_out;
	u64 arrivals, late;
	bool any_out;
};

/* what a record takes here */
static size_t held(const struct ev_hdr *rec)
{
	return rec->words * 8u + sizeof(struct item);
}

static bool before(const struct item *a, const struct item *b)
{
	return a->ts != b->ts ? a->ts < b->ts : a->order < b->order;
}

struct merge *merge__new(u64 window_ns, size_t max_bytes)
{
	struct merge *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->window_ns = window_ns;
	m->max_bytes = max_bytes;
	m->run_cap = 4096;
	m->heap_cap = 256;
	m->run = malloc(m->run_cap * sizeof(*m->run));
	m->heap = malloc(m->heap_cap * sizeof(*m->heap));
	if (!m->run || !m->heap) {
		merge__free(m);
		return NULL;
	}
	return m;
}

void merge__free(struct merge *m)
{
	struct block *b, *next;

	if (!m)
		return;
	for (b = m->all; b; b = next) {
		next = b->all;
		free(b);
	}
	free(m->run);
	free(m->heap);
	free(m);
}

static struct block *block_of(const struct ev_hdr *rec)
{
	return (struct block *)((uintptr_t)rec & ~(uintptr_t)(BLOCK_BYTES - 1));
}

static int new_block(struct merge *m)
{
	struct block *b = m->spare;

	if (b) {
		m->spare = b->next;
	} else {
		b = aligned_alloc(BLOCK_BYTES, BLOCK_BYTES);
		if (!b)
			return -ENOMEM;
		b->all = m->all;
		m->all = b;
	}
	b->used = sizeof(*b);
	b->live = 0;
	m->filling = b;
	return 0;
}

/* The record that was given out is no longer looked at. */
static void release(struct merge *m)
{
	struct block *b;

	if (!m->out)
		return;
	b = block_of(m->out);
	m->held_bytes -= held(m->out);
	m->out = NULL;
	if (--b->live)
		return;
	if (b == m->filling) {
		b->used = sizeof(*b);
	} else {
		b->next = m->spare;
		m->spare = b;
	}
}

static const struct ev_hdr *store(struct merge *m, const struct ev_hdr *rec)
{
	size_t bytes = rec->words * 8u;
	struct block *b = m->filling;
	char *at;

	if ((!b || b->used + bytes > BLOCK_BYTES) && new_block(m))
		return NULL;
	b = m->filling;
	at = (char *)b + b->used;
	memcpy(at, rec, bytes);
	b->used += (u32)bytes;
	b->live++;
	m->held_bytes += held(rec);
	return (const struct ev_hdr *)at;
}

static int grow_run(struct merge *m)
{
	struct item *bigger = malloc(2 * m->run_cap * sizeof(*bigger));
	size_t i;

	if (!bigger)
		return -ENOMEM;
	for (i = 0; i < m->run_len; i++)
		bigger[i] = m->run[(m->run_head + i) & (m->run_cap - 1)];
	free(m->run);
	m->run = bigger;
	m->run_head = 0;
	m->run_cap *= 2;
	return 0;
}

static int grow_heap(struct merge *m)
{
	struct item *bigger = realloc(m->heap, 2 * m->heap_cap * sizeof(*bigger));

	if (!bigger)
		return -ENOMEM;
	m->heap = bigger;
	m->heap_cap *= 2;
	return 0;
}

static void heap_push(struct merge *m, struct item it)
{
	size_t i = m->heap_len++, up;

	for (; i && before(&it, &m->heap[up = (i - 1) / 2]); i = up)
		m->heap[i] = m->heap[up];
	m->heap[i] = it;
}

static struct item heap_pop(struct merge *m)
{
	struct item top = m->heap[0], last = m->heap[--m->heap_len];
	size_t i = 0, kid;

	while ((kid = 2 * i + 1) < m->heap_len) {
		if (kid + 1 < m->heap_len && before(&m->heap[kid + 1], &m->heap[kid]))
			kid++;
		if (!before(&m->heap[kid], &last))
			break;
		m->heap[i] = m->heap[kid];
		i = kid;
	}
	m->heap[i] = last;
	return top;
}

int merge__push(struct merge *m, const struct ev_hdr *rec)
{
	struct item it = {.ts = rec->ts, .order = (u64)rec->cpu << 48 | m->arrivals};
	bool in_order;

	release(m);
	if ((m->run_len == m->run_cap && grow_run(m)) || (m->heap_len == m->heap_cap && grow_heap(m)))
		return -ENOMEM;
	it.rec = store(m, rec);
	if (!it.rec)
		return -ENOMEM;
	m->arrivals++;
	m->newest = max(m->newest, it.ts);
	m->late += m->any_out && it.ts < m->last_out;
	in_order = !m->run_len || !before(&it, &m->run[(m->run_head + m->run_len - 1) & (m->run_cap - 1)]);
	if (in_order)
		m->run[(m->run_head + m->run_len++) & (m->run_cap - 1)] = it;
	else
		heap_push(m, it);
	return 0;
}

const struct ev_hdr *merge__pop(struct merge *m, bool flush)
{
	const struct item *run = m->run_len ? &m->run[m->run_head] : NULL;
	const struct item *heap = m->heap_len ? &m->heap[0] : NULL;
	const struct item *next = !run || (heap && before(heap, run)) ? heap : run;
	struct item it;

	release(m);
	if (!next)
		return NULL;
	it = *next;
	if (!flush && m->newest - it.ts < m->window_ns && !(m->any_out && it.ts < m->last_out) &&
		m->held_bytes <= m->max_bytes)
		return NULL;
	if (next == heap) {
		heap_pop(m);
	} else {
		m->run_head = (m->run_head + 1) & (m->run_cap - 1);
		m->run_len--;
	}
	m->last_out = m->any_out ? max(m->last_out, it.ts) : it.ts;
	m->any_out = true;
	m->out = it.rec;
	return it.rec;
}

u64 merge__late(const struct merge *m)
{
	return m->late;
}
