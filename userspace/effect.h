/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What the probes cost the game, estimated: hits that were counted × what a hit costs. `redframe overhead` measures it.
 */
#ifndef REDFRAME_EFFECT_H
#define REDFRAME_EFFECT_H

#include "common.h"

/* Hits since recording began. */
struct hits {
	u64 class[CLASS_COUNT]; /* a switch of the game's threads with its wakeup, a fault, a call, …: each counts 1 */
	u64 mem_calls;          /* mmap and its like, which CLASS_SYSCALL is charged for but does not count */
	u64 calls;         /* all of the game's, of which most make no record: CLASS_SYSCALL is charged for these too */
	u64 other_calls;   /* of processes that are not recorded */
	u64 stepped;       /* of those of CLASS_ALLOC */
	u64 stepped_marks; /* of those of CLASS_FRAME; more where not every call is a frame */
	u64 stacks;        /* copied; they belong to no class */
	u64 kernel_stacks; /* taken at switches */
	u64 other_user_faults, other_kernel_faults; /* of processes that are not recorded */
};

/* ns of the game's time. A uprobe's is the trap alone, the others are all that a hit adds. */
struct prices {
	u64 uprobe, stepped, stack, kernel_stack, mem_call, call, other_call, other_fault, tick;
	u64 class[CLASS_COUNT]; /* with a uprobe or a tick: what comes on top */
	bool calibrated;        /* uprobe and stepped were measured here, and the others but tick scaled by that */
};

struct effect {
	u64 class[CLASS_COUNT]; /* ns */
	u64 stacks;
	u64 other_user_faults, other_kernel_faults,
		other_calls; /* paid by others, and by the game where it waits for them */
};

/* The prices of a machine on which the two kinds of trap and a timer's tick cost so much; 0: not measured. */
struct prices effect__prices(u64 uprobe_ns, u64 stepped_ns, u64 tick_ns);
/* Samples a second where that is left to us: as many of 1000, 500 and 250 as take no more than a sixth of the bound on
 * each CPU, 250 at the least. max_percent 0: no bound. */
u32 effect__sample_hz(u64 tick_ns, double max_percent);
struct effect effect__of(const struct prices *p, const struct hits *h);

#endif
