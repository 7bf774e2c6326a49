/* SPDX-License-Identifier: MIT
 *
 * Memory that the interposer in the game (preload/preload.c) and redframe (userspace/preload.c) share: a head, and a
 * ring of 16-byte records for each thread. The thread writes, redframe reads; neither ever waits for the other. To
 * redframe all of it is the game's: checked before it is believed.
 */
#ifndef REDFRAME_PRELOAD_AREA_H
#define REDFRAME_PRELOAD_AREA_H

#include <stdint.h>

#define PRELOAD_MAGIC   0x326c6c6f63616672ULL   /* a layout that is not this one has another */
#define PRELOAD_FD_ENV  "REDFRAME_ALLOC_FD"     /* the area's descriptor, inherited over exec */
#define PRELOAD_SAMPLE  "redframe_alloc_sample" /* the function that a sampled call goes through: a probe is on it */
#define PRELOAD_SLOTS   1024u                   /* threads that can be recorded at once */
#define PRELOAD_RECORDS 65536u                  /* of a ring: 1 MiB; a power of two */

/* One call. Times are the low 40 bits of the CPU's counter: a record is read within seconds of its making. */
struct preload_record {
	uint64_t what; /* 0-47: who called, of a free the block; 48-55: enum alloc_fn, or PRELOAD_MORE; 56-63: time,
			  high */
	uint64_t how;  /* 0-31: size, low; 32-63: time, low */
};

/* Comes right before a record that it belongs to: what is the old block of a realloc; how is the size's high half. */
#define PRELOAD_MORE 255u

enum preload_slot_state { PRELOAD_FREE, PRELOAD_TAKEN };

struct preload_slot {
	uint32_t state;     /* the game takes it; redframe gives it back once the thread is gone */
	uint32_t tid, tgid; /* in the game's pid namespace; tgid is written first */
	uint32_t zero[13];
	/* the writer's */
	uint64_t head; /* records written, ever */
	uint64_t lost; /* calls for which there was no room, or that came out of a signal handler inside another */
	uint64_t zero2[6];
	/* the reader's */
	uint64_t tail;
	uint64_t zero3[7];
	struct preload_record ring[PRELOAD_RECORDS];
};

struct preload_area {
	uint64_t magic;
	uint32_t recording; /* redframe reads: else calls cost one look at this */
	uint32_t slots;
	uint32_t loaded;       /* processes that have the interposer */
	uint32_t high;         /* no slot from here on was ever taken */
	uint64_t unslotted;    /* calls of threads that found no slot */
	uint64_t sample_bytes; /* from sample to sample, on average; 0: none is taken */
	uint64_t zero[507];
	struct preload_slot slot[PRELOAD_SLOTS];
};

/* The CPU's counter: the same on all CPUs, and cheaper than any clock. */
static inline uint64_t preload__ticks(void)
{
#if defined(__x86_64__)
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
	uint64_t v;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#else
#error "no counter is known for this architecture"
#endif
}

#endif
