/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Why a frame was slow: its time, partitioned; each part against what is typical; one sentence.
 */
#ifndef REDFRAME_EXPLAIN_H
#define REDFRAME_EXPLAIN_H

#include "model.h"

/* One cause of one frame, one row in the JSON's "causes". Strings are valid UTF-8 and live as long as the verdict. */
struct part {
	enum cause cause;
	u64 ns;
	s64 excess_ns;	  /* over the rolling median of this cause in normal frames of the stream */
	u32 count;	  /* events */
	const char *what; /* path, lock, mapping, call, function; NULL */
	u64 bytes, cold_bytes; /* 0: does not apply */
	u32 major, minor;	/* faults */
	u32 samples;	  /* what a statement about code rests on */
	u32 who_tid;	  /* the other thread; 0: none */
	const char *who;  /* its name, with the process where it is not the game's */
	const char *detail; /* words for the sentence: "another CPU was idle", …; NULL */
	const struct part *because; /* what `who` did meanwhile, largest first */
	u32 n_because;
};

/* One stretch of the frame in time order: the "why" lane. */
struct stretch {
	u64 start, end;
	u32 part; /* index into parts */
	u64 waker_ts; /* when who_tid ended it; 0: not by a thread */
	u32 waker_tid;
};

struct verdict {
	struct frame frame;
	bool slow;
	bool unsure;	  /* records were lost in it: sentence says what */
	u64 typical_ns;	  /* rolling median of the stream's normal frames; 0: too few yet */
	u64 budget_ns;
	const char *sentence; /* NULL for a frame that is not slow */
	const struct part *parts; /* by excess, largest first; sums to the frame to the nanosecond. Not slow: may be 0 */
	u32 n_parts;
	const struct stretch *stretches;
	u32 n_stretches;
};

/* The whole recording. */
struct report {
	u64 frames, slow;
	u64 budget_ns; /* of the last frame where it is auto */
	const char *budget_from; /* "option", "auto" */
	double mean_ns;
	u64 p50, p95, p99, p999, max;
	double low1_fps, low01_fps; /* 1 % low and 0.1 % low */
	u64 over_budget_ns;
	s64 excess_ns[CAUSE_COUNT]; /* of slow frames */
};

enum budget_from { BUDGET_AUTO, BUDGET_OPTION };
struct explain_options {
	enum budget_from from;
	u64 budget_ns;
};

struct explain;
struct explain *explain__new(const struct explain_options *o);
void explain__free(struct explain *x);
/* Feed after model__event, in the same order. 0 or -ENOMEM. */
int explain__event(struct explain *x, struct model *m, const struct ev_hdr *rec);
/* The next finished verdict, or NULL; flush at the end of the stream. Valid until the next call on x. */
const struct verdict *explain__next(struct explain *x, struct model *m, bool flush);
const struct report *explain__report(struct explain *x, const struct model *m);

#endif
