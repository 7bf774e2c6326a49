/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A thread's time between two moments, cut so that every nanosecond is in exactly one piece with one cause.
 */
#ifndef REDFRAME_PARTITION_H
#define REDFRAME_PARTITION_H

#include "timeline.h"

enum phase { PHASE_RUNNING, PHASE_BLOCKED, PHASE_RUNNABLE };

struct piece {
	u64 start, end;
	const struct off *off;   /* NULL while running */
	const struct span *span; /* the innermost; NULL: none */
	enum phase phase;
	enum cause cause;
	bool code; /* running, and nothing but interrupts covers it: what they interrupted is user code */
	bool lost; /* records were lost here */
};

#define PARTITION_KEPT 16384u /* pieces or spans */

/* Reused from frame to frame; all zero to begin with. */
struct partition {
	struct piece *pieces;
	u32 n, cap;
	const struct span **spans; /* those that touch the interval, by start, outer before inner */
	u32 n_spans, cap_spans;
	const struct span **stack; /* those that are open, innermost last; stale ones further down */
	u32 depth;
};

/* Cuts [start, end) of a thread: pieces in time order without gap or overlap, each longer than 0. `l` NULL is a
 * thread that nothing is known of. Pointers into the timeline hold until the next timeline__event. 0 or -ENOMEM. */
int partition__cut(struct partition *p, const struct timeline *t, const struct line *l, u64 start, u64 end);
/* Done with the pieces: what a usual interval needs is kept for the next one, the room of a long one is given back. */
void partition__rest(struct partition *p);
void partition__free(struct partition *p);

#endif
