/* SPDX-License-Identifier: GPL-2.0-only OR MIT
 *
 * How a record crosses to userspace: through a ring in a mapped array. Not the kernel's ring buffer, whose two helpers
 * with their lock cost 40 to 60 ns a record more than the one compare-and-swap that this takes (v6.18, measured).
 *
 * A ring is a number of chunks, since an element of an array may have 4 MiB at most before v6.6. Places in it are
 * counted in bytes since load: a record lies in the chunk that its first byte belongs to, and may end in the room
 * behind it, so none is ever split; the next one begins as many bytes into the next chunk.
 *
 * In front of each record is a word: 0 until the record is complete, then its length with that word, and flags.
 * Userspace takes records in their order, up to the first that is not complete, and leaves zeroes behind.
 */
#ifndef REDFRAME_RING_LAYOUT_H
#define REDFRAME_RING_LAYOUT_H

#define RING_TAIL      (20u << 10) /* room behind a chunk, bytes: more than the longest record, which is a stack */
#define RING_WORD      8u
#define RING_DROPPED   (1ull << 32) /* the record is none after all */
#define RING_CHUNK_MAX (1u << 20)   /* bytes, without the room behind it */

/* A cache line for each side: both are written all the time. */
struct ring_ends {
	__u64 head; /* bytes that the kernel side has given away */
	__u64 pad[7];
	__u64 tail; /* bytes that userspace has taken */
	__u64 pad2[7];
};

#endif
