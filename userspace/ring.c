// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <string.h>

#include "ring.h"

#define TELL_PARTS 16 /* of a ring: after so much the kernel side is told that there is room again */

size_t ring__stride(size_t chunk_bytes)
{
	return chunk_bytes + RING_TAIL; /* elements of an array are rounded up to 8 bytes: it is */
}

u64 ring__unread(const struct ring *r)
{
	return __atomic_load_n(&r->ends->head, __ATOMIC_ACQUIRE) - r->ends->tail;
}

static u64 *place(const struct ring *r, u64 at)
{
	size_t chunk = at / r->chunk_bytes & (r->n_chunks - 1);

	return (u64 *)(r->chunks + chunk * ring__stride(r->chunk_bytes) + (at & (r->chunk_bytes - 1)));
}

int ring__consume(struct ring *r, ring_take_fn take, void *arg)
{
	u64 head = __atomic_load_n(&r->ends->head, __ATOMIC_ACQUIRE), at = r->ends->tail, told = at;
	u64 size = (u64)r->chunk_bytes * r->n_chunks;
	int err = 0;

	while (at < head && !err) {
		u64 *p = place(r, at), word = __atomic_load_n(p, __ATOMIC_ACQUIRE);
		u32 bytes = (u32)word;

		if (!word)
			break; /* its writer is at it */
		if (bytes < RING_WORD || bytes % RING_WORD || bytes > RING_TAIL || bytes > head - at)
			err = -EPROTO;
		else if (!(word & RING_DROPPED))
			err = take(arg, p + 1, bytes - RING_WORD);
		if (err > 0 || err == -EPROTO)
			break;
		memset(p, 0, bytes); /* a word of them will be the next record's */
		at += bytes;
		if (at - told >= size / TELL_PARTS) {
			told = at;
			__atomic_store_n(&r->ends->tail, at, __ATOMIC_RELEASE);
		}
	}
	__atomic_store_n(&r->ends->tail, at, __ATOMIC_RELEASE);
	return err;
}
