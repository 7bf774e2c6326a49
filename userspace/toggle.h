/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What something does to a game's frame time, measured: it is taken on and off in pairs of blocks, and the medians of
 * neighbouring blocks are compared.
 */
#ifndef REDFRAME_TOGGLE_H
#define REDFRAME_TOGGLE_H

#include "paired.h"

#define TOGGLE_FRAMES 65536 /* of a block; more are left out */

/* The frames of the block that is running. */
struct frame_times {
	struct ev_frame first; /* whose thread, stream and mark count; kind 0: none yet */
	u64 last, not_before;
	double ms[TOGGLE_FRAMES];
	u32 n;
};

/* A ring's callback: takes FRAMEs, drops all else. */
int frame_times__take(void *frame_times, void *data, size_t size);

struct toggle {
	int (*set)(void *arg, bool on); /* 0 or -errno */
	void (*empty)(void *arg);       /* the rings, into the frame_times */
	bool (*over)(void *arg);        /* the game has ended, or somebody wants to stop */
	void *arg;
	u32 pairs; /* PAIRED_LEAST to PAIRED_MAX */
	u64 block_ns;
};

struct toggle_result {
	struct shift shift; /* ms */
	double median_ms;   /* while it is off */
	u32 pairs;
};

/* Leaves it off. 0, -ENODATA where there are too few frames, -errno of set. */
int toggle__measure(const struct toggle *t, struct frame_times *f, struct toggle_result *out);

#endif
