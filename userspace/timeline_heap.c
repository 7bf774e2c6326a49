/* SPDX-License-Identifier: GPL-2.0-only
 *
 * How the game's main heap grew, and what of it was free meanwhile.
 */
#include <errno.h>

#include "syscalls.h"
#include "timeline.h"

static bool is_game(const struct model *m, u32 tid)
{
	const struct thread *t = model__find_thread(m, tid);

	return !t || !t->tgid || t->game;
}

/* Comes right before the call that made the heap grow, with its time. */
static void look(struct timeline *t, const struct ev_heap *e)
{
	if (e->free > e->size || e->largest > e->free)
		return;
	t->heap = (struct growth){.ts = e->hdr.ts,
		.size = e->size,
		.free = e->free,
		.largest = e->largest,
		.pieces = e->pieces,
		.cut = !!e->cut};
}

static int grow(struct timeline *t, const struct ev_mem_call *e)
{
	struct growth *g = fifo__push(&t->growths, t->horizon, &t->bytes);

	if (!g)
		return -ENOMEM;
	/* it is looked at no more often: what was found counts until then */
	*g = e->hdr.ts - t->heap.ts <= HEAP_LOOK_NS ? t->heap : (struct growth){};
	g->ts = e->hdr.ts;
	g->bytes = (u64)e->ret - e->was;
	if (!fifo__settle(&t->growths))
		t->late++;
	return 0;
}

int heap__event(struct timeline *t, const struct model *m, const struct ev_hdr *rec)
{
	const struct ev_mem_call *e = (const struct ev_mem_call *)rec;

	if (!is_game(m, rec->tid))
		return 0;
	if (rec->kind == EV_HEAP)
		look(t, (const struct ev_heap *)rec);
	else if (rec->kind == EV_MEM_CALL && e->sys == SYS_ID_brk && e->was && (u64)e->ret > e->was)
		return grow(t, e);
	return 0;
}

struct growth heap__growth(const struct timeline *t, u64 start, u64 end)
{
	struct growth sum = {};
	u64 bytes = 0;

	for (u32 i = fifo__after(&t->growths, start); i < t->growths.n; i++) {
		const struct growth *g = fifo__at(&t->growths, i);

		if (g->ts >= end)
			break;
		bytes += g->bytes;
		if (g->size || !sum.size)
			sum = *g;
	}
	sum.bytes = bytes;
	return sum;
}
