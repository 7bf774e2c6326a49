/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What soak keeps of its stream: the last moments in memory, and on the disk segments with what surrounds the frames
 * that are worth it, named and explained by a child.
 */
#ifndef REDFRAME_KEEPER_H
#define REDFRAME_KEEPER_H

#include "explain.h"
#include "history.h"
#include "kept.h"
#include "namer.h"
#include "segment.h"
#include "stack_cache.h"

#define KEEPER_RECENT 128u /* frames whose begin is remembered */

struct engine_options;

struct recent {
	u64 start;
	u32 stream;
};

struct keeper {
	const struct engine_options *o;
	const struct model *live; /* up to now */
	struct model *past;       /* up to where the history begins */
	struct history history;
	struct stack_cache stacks;
	struct segment segment;
	struct finding found[SEGMENT_FRAMES]; /* in it, without names: what is told if it cannot stay */
	struct namer namer;
	struct kept files;
	struct ev_clock clock; /* the last */
	struct recent recent[KEEPER_RECENT];
	u64 n_recent;
	u64 now;
	u32 after;     /* frames since the last that is kept */
	u64 last_kept; /* its end */
	u64 full_since;
	bool precious; /* the segment that is begun */
	bool hurried;  /* it was said that there is no time to name all */
	u32 segments;
	u64 kept;                /* frames */
	u64 not_kept, not_named; /* of them: no room on the disk; without explanation */
	u64 cut;                 /* segments that begin later than asked for: memory was short */
};

/* o stays where it is. 0 or -ENOMEM. */
int keeper__init(struct keeper *k, const struct engine_options *o);
void keeper__free(struct keeper *k);
/* A stream begins, another one after the first; live is its model. 0 or -ENOMEM. */
int keeper__begin(struct keeper *k, const struct model *live);
void keeper__end(struct keeper *k);
/* The next record, after model__event. 0 or -ENOMEM. */
int keeper__record(struct keeper *k, const struct ev_hdr *rec);
/* A frame that is worth it. crossed: bits of enum limit_kind; 0: it is slow. If it cannot be kept, now or later, it is
 * told as found without names. */
void keeper__keep(struct keeper *k, const struct verdict *v, u32 crossed);
/* Each frame, in the order in which they are explained, after keeper__keep. */
void keeper__passed(struct keeper *k, const struct frame *f);
/* What is still in memory of the last seconds; it is the last to make room. */
void keeper__keep_last(struct keeper *k);
/* ts of the oldest record in memory, up to which the past may be asked for */
u64 keeper__oldest(const struct keeper *k);
int keeper__forget(struct keeper *k, u64 ts); /* as model__forget_dead */
/* Now and then: what is kept reaches the disk. */
void keeper__flush(struct keeper *k);
/* Each second: segments end, and are named. last_frame: the end of the last one. */
void keeper__tend(struct keeper *k, u64 last_frame);
/* What is open ends, and all that waits is named. */
void keeper__finish(struct keeper *k);

#endif
