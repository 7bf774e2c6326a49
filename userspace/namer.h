/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What a kept segment still needs after its last record: names for its code, and the explanation of the frames for
 * whose sake it is kept. Both take time and memory as the game's symbols are large, so a child process does it, one at
 * a time for all segments that wait; the ring is drained meanwhile, and what a hostile file does to a parser, it does
 * there. Segments wait for each other, since a child unpacks the game's debug data once; and where naming takes more
 * than its share of a CPU, they wait until it is earned again.
 */
#ifndef REDFRAME_NAMER_H
#define REDFRAME_NAMER_H

#include <sys/types.h>

#include "segment.h"

#define NAMER_WAITING  64u /* segments; of more those with the shortest frames are not named, and counted */
#define NAMER_TOGETHER 16u /* a child begins with so many, */
#define NAMER_WAIT_NS  (5 * NSEC_PER_SEC) /* or when the first has waited so long, */
#define NAMER_SHARE    25                 /* one part in so many of a CPU's time is for it, */
#define NAMER_SAVED_NS (3 * NSEC_PER_SEC) /* of which so much can be saved up; then it begins at once */

/* A kept frame, explained. Texts are valid UTF-8. */
struct finding {
	u32 segment; /* 0: none could be kept, and the code has no names */
	u32 stream;
	u64 start, end, number;
	u32 crossed; /* as in kept_frame */
	s32 cause;   /* enum cause of the root; CAUSE_NONE: nothing is to be told */
	u64 fingerprint;
	s64 excess_ns;
	u64 typical_ns;
	bool slow, unsure;
	char scene[64];
	char sentence[768];
	char text[256]; /* without figures */
	char what[256], who[64], where[256];
};

struct namer {
	struct segment waiting[NAMER_WAITING];
	u32 n_waiting, n_working; /* the first n_working are in the child's hands */
	const struct explain_options *explain;
	/* In the child: appends names to the segment. NULL: there is nothing to name. 0 or -errno. */
	int (*name)(void *arg, struct recording_writer *w, struct stacks *stacks);
	/* Here, for each: what was found, and that a segment is done, with its size; err: it could not be completed.
	 * -EBUSY: there was no time for it; its frames were told as found, without a cause. */
	void (*found)(void *arg, const struct finding *f);
	void (*done)(void *arg, u32 segment, u64 bytes, int err);
	void *arg;
	pid_t child;
	int from_child;
	u64 cpu_ns; /* of the children so far */
	u64 now;
	s64 credit_ns; /* CPU time that the next child may take; below 0: the last one took more */
};

/* Takes the segment over; it may be used again. */
void namer__take(struct namer *n, struct segment *s);
/* Now and then, with the stream's time: what the child has told, and the next child: with hurry the segments do not
 * wait for more of them. */
void namer__tend(struct namer *n, u64 now, bool hurry);
/* Until all is done, whatever it takes. */
void namer__finish(struct namer *n);
void namer__free(struct namer *n);

/* Explains the frames of a segment that fd, which is taken over, has: what the child does after naming. 0 or -errno. */
int namer__explain(const struct segment *s, int fd, const struct explain_options *o,
	void (*found)(void *arg, const struct finding *f), void *arg);
struct verdict;
/* What a verdict says, as a finding; segment and crossed are 0. */
void finding__of(struct finding *f, const struct verdict *v);

#endif
