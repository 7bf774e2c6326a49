// SPDX-License-Identifier: GPL-2.0-only
/* What the allocator had free when its heap grew. glibc asks for more while it holds the lock of its arena, after it
 * has looked in vain for a free block that is large enough: this is the moment at which its lists can be read, and the
 * one that matters. What lies in caches of threads (tcache) and in fast bins is not counted: the truth is no less. */
#include "redframe.bpf.h"
#include "heap.bpf.h"

extern u64 heap_bins, heap_looked;

#define STEPS    4096   /* blocks and bins looked at, 80 ns each where the cache has them */
#define LOOK_NS  500000 /* and no longer than this */
#define NONSENSE (~0UL)
#define FLAGS    7UL /* in a block's size: previous in use, own mapping, other arena */

/* struct malloc_chunk, of a free block */
struct block {
	u64 prev_size;
	u64 size;
	u64 next;
};

struct bins {
	u64 bin, at; /* the bin, and the block in it */
	u64 first;   /* the last bin to look at */
	u64 size;    /* of the heap */
	u64 free, largest;
	u32 pieces;
	u32 cut; /* 1: not all were looked at */
};

/* One block, or on to the bin before. 0: all bins are done, or this is no list of blocks. A global function, so that it
 * is verified once: inlined, its branches times the steps would be too many. */
__noinline int heap__step(struct bins *b)
{
	struct block block = {};
	u64 size;

	if (!b || bpf_probe_read_user(&block, sizeof(block), (void *)b->at))
		return 0;
	if (b->at != b->bin) {
		size = block.size & ~FLAGS;
		b->free = size && size <= b->size - b->free ? b->free + size : NONSENSE;
		if (b->free == NONSENSE)
			return 0;
		b->pieces++;
		if (size > b->largest)
			b->largest = size;
		b->at = block.next;
		return 1;
	}
	if (b->bin == b->first) {
		b->cut = 0;
		return 0;
	}
	b->bin -= 16;
	b->at = 0;
	bpf_probe_read_user(&b->at, sizeof(b->at), (void *)(b->bin + 16));
	return 1;
}

static __always_inline bool read_u64(u64 *to, u64 at)
{
	return !bpf_probe_read_user(to, sizeof(*to), (void *)at);
}

int heap__look(u64 was, u64 ts, u32 tid)
{
	u64 bins = heap_bins, top, left, size;
	struct bins b = {};
	struct ev_heap *e;

	if (!bins || ts - heap_looked < HEAP_LOOK_NS)
		return 0;
	if (!read_u64(&top, bins + HEAP_TOP) || !read_u64(&left, top + 8) || !read_u64(&size, bins + HEAP_SIZE))
		return 0;
	left &= ~FLAGS;
	if (top + left != was || left > size)
		return 0; /* it is not the allocator that asks, or another program by now */
	heap_looked = ts;
	/* from the bin of the largest blocks down; a bin is a list through a block that begins 16 bytes before it */
	b.first = bins - 16;
	b.bin = b.first + 16 * (HEAP_BINS - 1);
	b.at = b.bin;
	read_u64(&b.at, b.bin + 16);
	b.size = size;
	b.cut = 1;
	for (int i = 0; i < STEPS && heap__step(&b); i++)
		if (i % 256 == 255 && now() - ts > LOOK_NS)
			break;
	if (b.free > size - left)
		return 0; /* the lists contradict its size: somebody else changes them */
	e = reserve(heap);
	if (!e)
		return lost(CLASS_ALLOC);
	*e = (struct ev_heap){
		HDR(HEAP, heap, ts, tid),
		.size = size,
		.free = b.free,
		.largest = b.largest,
		.top = left,
		.took = now() - ts,
		.pieces = b.pieces,
		.cut = b.cut,
	};
	submit(e);
	return 0;
}
