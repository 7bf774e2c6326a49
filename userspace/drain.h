/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Moves records from the ring to the recording, and nothing else: no parsing, no allocation after open. What did not
 * fit into the ring is counted by the kernel side; drain writes the count down where it happened.
 */
#ifndef REDFRAME_DRAIN_H
#define REDFRAME_DRAIN_H

#include "common.h"

struct capture;
struct recording_writer;
struct stacks;

/* one of the rings */
struct drain_ring {
	struct drain *drain;
	u64 pass_bytes; /* moved in this pass */
	u64 lost;
};

#define DRAIN_CPUS 512u /* beyond, switches are not compared */

struct drain {
	struct drain_ring *rings;
	struct capture *capture;
	struct recording_writer *out;
	struct stacks *stacks; /* NULL: copied stacks are dropped */
	size_t ring_bytes;
	u32 cpus;
	u64 *lost_before; /* [class][cpu] */
	u64 last_ts;      /* of the pass before: losses happened since */
	u64 until;        /* the slice of time that is being taken from each ring ends then; 0: never */
	u64 pass_bytes;   /* moved in this pass, of the fullest ring */
	u64 wakeups;
	/* for progress and limits */
	u64 records, marks, lost;
	u64 kinds[256]; /* … of each kind */
	u64 game_switches;
	u64 runs[DRAIN_CPUS]; /* 1 + the thread that a CPU runs, as its last switch said; 0: not known */
	u64 unseen_switches;  /* another thread left a CPU than had come */
	u64 kernel_stacks;    /* taken at switches */
	u64 lost_class[CLASS_COUNT];
	u64 mark_ts, mark_ns, worst_ns; /* the last frame mark, the time between the last two, the longest so far */
};

int drain__open(struct drain *d, struct capture *c, struct recording_writer *out);
/* One pass: everything that is in the ring now, then the losses. 0 or -errno of the recording. */
int drain__pass(struct drain *d);
/* One record of a struct drain_ring: a ring_take_fn. 0, -errno of the recording, or 1: it lies beyond the slice, and
 * stays. */
int drain__take(void *ring, void *data, size_t size);
/* Writes down that n records of a class are missing since the pass before. 0 or -errno of the recording. */
int drain__tell_loss(struct drain *d, u32 class, u32 cpu, u64 n, u64 ts);
/* How long the ring can wait for the next pass: 1 to 10 ms, by how full it was. */
int drain__pause_ms(const struct drain *d);
void drain__close(struct drain *d);

u64 clock_boot_ns(void);

#endif
