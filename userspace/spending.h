/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What the game did from one frame mark to the next, in amounts that limits are for: thresholds.h. A frame's are there
 * when it ends, and taken when it is explained, a moment later and in the same order.
 */
#ifndef REDFRAME_SPENDING_H
#define REDFRAME_SPENDING_H

#include "thresholds.h"

#define SPENDING_FRAMES  512u /* that ended and are not taken yet; explain holds fewer */
#define SPENDING_STREAMS 16u  /* frames of further ones have a duration only */

struct model;
struct frame;

struct spent {
	u32 stream, index;
	struct amounts did;
};

struct spending {
	struct amounts sum;                      /* ever */
	u64 lock_ns[SPENDING_STREAMS];           /* … of each stream's thread */
	struct amounts before[SPENDING_STREAMS]; /* sums when its last frame ended */
	struct spent ended[SPENDING_FRAMES];
	u32 first, n;
};

/* After model__event. */
void spending__record(struct spending *s, const struct model *m, const struct ev_hdr *rec);
void spending__frame_ended(struct spending *s, const struct frame *f);
struct amounts spending__take(struct spending *s, const struct frame *f);

#endif
