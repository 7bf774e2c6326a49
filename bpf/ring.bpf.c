// SPDX-License-Identifier: GPL-2.0-only
/* Who gets which bytes of a ring. */
#include "redframe.bpf.h"

/* An interrupt between look and swap makes one try fail; so does another CPU of the same ring. */
#define TRIES 64

struct ring_ends ring_ends[RINGS_MAX] __attribute__((aligned(64))) = {};

/* This CPU's. CPUs that came later share the first. */
static __always_inline u32 number(void)
{
	u32 ring = opt.rings > 1 ? bpf_get_smp_processor_id() >> opt.ring_shift : 0;

	return ring < opt.rings ? ring & (RINGS_MAX - 1) : 0;
}

__noinline u64 ring__used(u32 unused)
{
	volatile struct ring_ends *ends = &ring_ends[number()];
	s64 used = ends->head - ends->tail;

	return used < 0 ? 0 : used;
}

__noinline u64 ring__take(u32 bytes)
{
	u32 ring = number();
	volatile struct ring_ends *ends = &ring_ends[ring];

	for (int i = 0; i < TRIES; i++) {
		u64 head = ends->head;

		/* signed: by now others may have gone on, and all that been taken; then the swap fails */
		if ((s64)(head + bytes - ends->tail) > (s64)opt.ring_bytes)
			return RING_FULL;
		if (__sync_val_compare_and_swap(&ends->head, head, head + bytes) == head)
			return ring * opt.ring_bytes + (head & (opt.ring_bytes - 1));
	}
	return RING_FULL;
}
