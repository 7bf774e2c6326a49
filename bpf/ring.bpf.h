/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The writing side of bpf/ring_layout.h:
 *
 *	struct ev_x *e = reserve(x);
 *	if (!e)
 *		return lost(CLASS_…);
 *	*e = (struct ev_x){HDR(EV_X, ts, tid), …};
 *	submit(e);
 */
#ifndef REDFRAME_RING_BPF_H
#define REDFRAME_RING_BPF_H

#include "ring_layout.h"

struct chunks {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* userspace sets it, and the value's size */
	__uint(key_size, sizeof(u32));
	__uint(value_size, RING_CHUNK_MAX + RING_TAIL);
};
extern struct chunks chunks SEC(".maps");

#define RING_FULL (~0ull)

/* bpf/ring.bpf.c: global functions, so that they are verified once, not at each record. Where so many bytes of this
 * CPU's ring are, counted over all rings; RING_FULL: there is no room. And how many bytes of it are in use. */
u64 ring__take(u32 bytes);
u64 ring__used(u32 unused);

#define RING_SPACE(bytes) (((bytes) + 7) / 8 * 8 + RING_WORD)

/* bytes: RING_TAIL at most. NULL: there is no room. */
static __always_inline void *ring_reserve(u32 bytes)
{
	u64 place = ring__take(RING_SPACE(bytes));
	u32 chunk = place >> opt.ring_chunk_shift;
	void *at;

	if (place == RING_FULL)
		return NULL;
	at = bpf_map_lookup_elem(&chunks, &chunk);
	return at ? at + (place & opt.ring_chunk_mask) + RING_WORD : NULL; /* it is there: for the verifier */
}

/* What was written before must be seen before: x86 keeps stores in order, and elsewhere an exchange does. */
static __always_inline void ring_complete(void *record, u64 word)
{
	u64 *at = record - RING_WORD;

#ifdef __TARGET_ARCH_x86
	asm volatile("" ::: "memory");
	*(volatile u64 *)at = word;
#else
	__sync_lock_test_and_set(at, word);
#endif
}

#define reserve(kind)           ((struct ev_##kind *)ring_reserve(sizeof(struct ev_##kind)))
#define submit(e)               submit_bytes(e, sizeof(*(e)))
#define submit_bytes(e, bytes)  ring_complete(e, RING_SPACE(bytes))
#define discard_bytes(e, bytes) ring_complete(e, RING_SPACE(bytes) | RING_DROPPED)

#endif
