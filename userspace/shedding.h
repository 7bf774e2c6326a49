/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Records that are let go while there is no time for all: a class more with each level, the least valuable first. It
 * is told in the stream as a loss, so that the frames in which it happened are unsure, and say so.
 */
#ifndef REDFRAME_SHEDDING_H
#define REDFRAME_SHEDDING_H

#include "common.h"

struct merge;

struct shedding {
	u32 level; /* 0: nothing is let go */
	u64 since; /* when that was last told */
	u64 now[CLASS_COUNT], total[CLASS_COUNT];
};

u32 shedding__levels(void);
enum ev_class shedding__class(u32 level); /* the class that this level adds, from 1 */
/* True: this record is let go, and counted. What was let go before it is told, once it is time. */
bool shedding__drops(struct shedding *s, const struct ev_hdr *rec, struct merge *to);
/* Another level, from ts on. */
void shedding__set(struct shedding *s, u32 level, u64 ts, struct merge *to);

#endif
