/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Records that arrive in order form a lane, a queue of their own. One ring gives one lane; of several, which are
 * emptied one after the other, each gives its own. What goes out is the least of the lanes' first records, so a record
 * costs O(log lanes), and with one lane O(1). Those that fit behind no lane, where there are as many as may be, go into
 * a heap: input in any order costs O(log n).
 *
 * Records are copied into blocks, of which each lane has a list; a block is used again when all its records have gone
 * out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge.h"

#define BLOCK_BYTES (16u << 10) /* blocks are aligned to their size: a record's address tells its block */
#define SLAB_BLOCKS 16u         /* are made at once: each by itself, its alignment would take as much again */
#define LANES       128u

struct block {
	struct block *next; /* of the lane; of the free list */
	struct block *all;  /* of the first block of a slab: the slab before, for merge__free */
	u32 used;           /* bytes filled, this header included */
	u32 live;           /* records not given out yet */
};

struct key {
	u64 ts;
	u64 order; /* cpu, then arrival: 16 and 48 bits */
};

struct item {
	struct key key;
	const struct ev_hdr *rec;
};

/* Its records, each with its order before it. */
struct lane {
	struct block *head, *filling; /* NULL: never used */
	u32 at;                       /* of the first record in head */
	u32 n;
	struct key first, last;
};

struct merge {
	u64 window_ns;
	size_t max_bytes, held_bytes;
	struct block *spare, *all;
	struct lane lanes[LANES];
	u32 n_lanes, current; /* used ever; which took the last record */
	u8 order[LANES];      /* lanes that are not empty: a heap by their first records */
	u32 n_order;
	struct block *filling; /* of the records in `heap` */
	struct item *heap;
	size_t heap_cap, heap_len;
	const struct ev_hdr *out; /* given out last: its bytes are still in use */
	u64 newest, last_out;
	u64 arrivals, late;
	bool any_out;
};

static bool before(const struct key *a, const struct key *b)
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
	m->heap_cap = 256;
	m->heap = malloc(m->heap_cap * sizeof(*m->heap));
	if (!m->heap) {
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
	free(m->heap);
	free(m);
}

/* ---- blocks ---- */

static struct block *block_of(const struct ev_hdr *rec)
{
	return (struct block *)((uintptr_t)rec & ~(uintptr_t)(BLOCK_BYTES - 1));
}

static int new_slab(struct merge *m)
{
	char *slab = aligned_alloc(BLOCK_BYTES, (size_t)SLAB_BLOCKS * BLOCK_BYTES);

	if (!slab)
		return -ENOMEM;
	for (u32 i = SLAB_BLOCKS; i-- > 0;) {
		struct block *b = (struct block *)(slab + (size_t)i * BLOCK_BYTES);

		b->next = m->spare;
		m->spare = b;
	}
	m->spare->all = m->all;
	m->all = m->spare;
	return 0;
}

/* NULL when out of memory */
static struct block *new_block(struct merge *m)
{
	struct block *b;

	if (!m->spare && new_slab(m))
		return NULL;
	b = m->spare;
	m->spare = b->next;
	b->next = NULL;
	b->used = sizeof(*b);
	b->live = 0;
	return b;
}

/* The record that was given out is no longer looked at. A block that is being filled has no next one, and is begun anew
 * where it is next written to. */
static void release(struct merge *m)
{
	struct block *b;

	if (!m->out)
		return;
	b = block_of(m->out);
	m->held_bytes -= m->out->words * 8u;
	m->out = NULL;
	if (--b->live || b == m->filling)
		return;
	for (u32 i = 0; i < m->n_lanes; i++)
		if (m->lanes[i].filling == b)
			return;
	b->next = m->spare;
	m->spare = b;
}

/* Room for bytes at the end of the list that *filling ends: NULL when out of memory. */
static char *room(struct merge *m, struct block **filling, size_t bytes)
{
	struct block *b = *filling;
	char *at;

	if (b && !b->live)
		b->used = sizeof(*b);
	if (!b || b->used + bytes > BLOCK_BYTES) {
		b = new_block(m);
		if (!b)
			return NULL;
		if (*filling)
			(*filling)->next = b;
		*filling = b;
	}
	at = (char *)b + b->used;
	b->used += (u32)bytes;
	b->live++;
	return at;
}

/* ---- lanes ---- */

static bool sooner(const struct merge *m, u8 a, u8 b)
{
	return before(&m->lanes[a].first, &m->lanes[b].first);
}

static void sift_down(struct merge *m)
{
	u8 moved = m->order[0];
	u32 i = 0, kid;

	while ((kid = 2 * i + 1) < m->n_order) {
		if (kid + 1 < m->n_order && sooner(m, m->order[kid + 1], m->order[kid]))
			kid++;
		if (!sooner(m, m->order[kid], moved))
			break;
		m->order[i] = m->order[kid];
		i = kid;
	}
	m->order[i] = moved;
}

static void sift_up(struct merge *m, u8 lane)
{
	u32 i = m->n_order++, up;

	for (; i && sooner(m, lane, m->order[up = (i - 1) / 2]); i = up)
		m->order[i] = m->order[up];
	m->order[i] = lane;
}

static bool fits(const struct lane *l, const struct key *k)
{
	return !l->n || !before(k, &l->last);
}

/* The lane whose end is nearest, an empty one, a new one; NULL: there is none. */
static struct lane *find_lane(struct merge *m, const struct key *k)
{
	struct lane *best = NULL;

	if (m->current < m->n_lanes && m->lanes[m->current].n && fits(&m->lanes[m->current], k))
		return &m->lanes[m->current];
	for (u32 i = 0; i < m->n_lanes; i++) {
		struct lane *l = &m->lanes[i];

		if (fits(l, k) && (!best || (l->n && (!best->n || before(&best->last, &l->last)))))
			best = l;
	}
	if (!best && m->n_lanes < LANES)
		best = &m->lanes[m->n_lanes++];
	if (best)
		m->current = (u32)(best - m->lanes);
	return best;
}

static int lane_push(struct merge *m, struct lane *l, const struct key *k, const struct ev_hdr *rec)
{
	size_t bytes = rec->words * 8u;
	char *at = room(m, &l->filling, sizeof(k->order) + bytes);

	if (!at)
		return -ENOMEM;
	memcpy(at, &k->order, sizeof(k->order));
	memcpy(at + sizeof(k->order), rec, bytes);
	l->last = *k;
	if (l->n++)
		return 0;
	l->head = l->filling;
	l->at = (u32)(at - (char *)l->filling);
	l->first = *k;
	sift_up(m, (u8)(l - m->lanes));
	return 0;
}

/* The first record of a lane, which is not empty; the next one becomes its first. */
static const struct ev_hdr *lane_pop(struct lane *l)
{
	const struct ev_hdr *rec = (const struct ev_hdr *)((const char *)l->head + l->at + sizeof(u64)), *next;

	if (!--l->n)
		return rec;
	l->at += (u32)sizeof(u64) + rec->words * 8u;
	if (l->at == l->head->used) {
		l->head = l->head->next;
		l->at = sizeof(*l->head);
	}
	next = (const struct ev_hdr *)((const char *)l->head + l->at + sizeof(u64));
	l->first.ts = next->ts;
	memcpy(&l->first.order, (const char *)next - sizeof(u64), sizeof(u64));
	return rec;
}

static const struct ev_hdr *pop_lanes(struct merge *m)
{
	struct lane *l = &m->lanes[m->order[0]];
	const struct ev_hdr *rec = lane_pop(l);

	if (!l->n)
		m->order[0] = m->order[--m->n_order];
	if (m->n_order > 1)
		sift_down(m);
	return rec;
}

/* ---- the heap ---- */

static int grow_heap(struct merge *m)
{
	struct item *bigger = realloc(m->heap, 2 * m->heap_cap * sizeof(*bigger));

	if (!bigger)
		return -ENOMEM;
	m->heap = bigger;
	m->heap_cap *= 2;
	return 0;
}

static int heap_push(struct merge *m, const struct key *k, const struct ev_hdr *rec)
{
	size_t i = m->heap_len, up, bytes = rec->words * 8u;
	char *at;

	if (m->heap_len == m->heap_cap && grow_heap(m))
		return -ENOMEM;
	at = room(m, &m->filling, bytes);
	if (!at)
		return -ENOMEM;
	memcpy(at, rec, bytes);
	m->heap_len++;
	for (; i && before(k, &m->heap[up = (i - 1) / 2].key); i = up)
		m->heap[i] = m->heap[up];
	m->heap[i] = (struct item){*k, (const struct ev_hdr *)at};
	return 0;
}

static const struct ev_hdr *heap_pop(struct merge *m)
{
	struct item top = m->heap[0], last = m->heap[--m->heap_len];
	size_t i = 0, kid;

	while ((kid = 2 * i + 1) < m->heap_len) {
		if (kid + 1 < m->heap_len && before(&m->heap[kid + 1].key, &m->heap[kid].key))
			kid++;
		if (!before(&m->heap[kid].key, &last.key))
			break;
		m->heap[i] = m->heap[kid];
		i = kid;
	}
	m->heap[i] = last;
	return top.rec;
}

/* ---- in and out ---- */

int merge__push(struct merge *m, const struct ev_hdr *rec)
{
	struct key k = {.ts = rec->ts, .order = (u64)rec->cpu << 48 | m->arrivals};
	struct lane *l;
	int err;

	release(m);
	l = find_lane(m, &k);
	err = l ? lane_push(m, l, &k, rec) : heap_push(m, &k, rec);
	if (err)
		return err;
	m->held_bytes += rec->words * 8u;
	m->arrivals++;
	m->newest = max(m->newest, k.ts);
	m->late += m->any_out && k.ts < m->last_out;
	return 0;
}

const struct ev_hdr *merge__pop(struct merge *m, bool flush)
{
	const struct key *lane = m->n_order ? &m->lanes[m->order[0]].first : NULL;
	const struct key *heap = m->heap_len ? &m->heap[0].key : NULL;
	const struct key *next = !lane || (heap && before(heap, lane)) ? heap : lane;
	u64 ts;

	release(m);
	if (!next)
		return NULL;
	ts = next->ts;
	if (!flush && m->newest - ts < m->window_ns && !(m->any_out && ts < m->last_out) &&
		m->held_bytes <= m->max_bytes)
		return NULL;
	m->last_out = m->any_out ? max(m->last_out, ts) : ts;
	m->any_out = true;
	return m->out = next == heap ? heap_pop(m) : pop_lanes(m);
}

u64 merge__late(const struct merge *m)
{
	return m->late;
}
