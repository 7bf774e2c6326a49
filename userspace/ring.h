/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The reading side of bpf/ring_layout.h.
 */
#ifndef REDFRAME_RING_H
#define REDFRAME_RING_H

#include "common.h"
#include "ring_layout.h"

struct ring {
	struct ring_ends *ends;
	char *chunks;       /* its first */
	size_t chunk_bytes; /* without the room behind it; a power of two */
	u32 n_chunks;       /* a power of two */
};

/* bytes: with the padding that was reserved. Other than 0 ends the pass: more than 0 before this record, less behind
 * it. */
typedef int (*ring_take_fn)(void *arg, void *record, size_t bytes);

/* From chunk to chunk, in the mapping. */
size_t ring__stride(size_t chunk_bytes);
/* Bytes that the kernel side has given away and nobody has taken. */
u64 ring__unread(const struct ring *r);
/* Everything that is complete now. 0, what take returned, or -EPROTO: the kernel side never writes such a record. */
int ring__consume(struct ring *r, ring_take_fn take, void *arg);

#endif
