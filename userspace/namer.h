/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What a kept segment still needs after its last record: names for its code, and the explanation of the frames for
 * whose sake it is kept. Both take time and memory as the game's symbols are large, so a child process does it, one at
 * a time for all segments that wait; the ring is drained meanwhile, and what a hostile file does to a parser, it does
 * there.
 */
#ifndef REDFRAME_NAMER_H
#define REDFRAME_NAMER_H

#include <sys/types.h>

#include "segment.h"

#define NAMER_WAITING 64u /* segments; more are not named, and counted */

/* A kept frame, explained. Texts are valid UTF-8. */
struct finding {
	u32 segment;
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
	/* Here, for each: what was found, and that a segment is done, with its size; err: it could not be completed. */
	void (*found)(void *arg, const struct finding *f);
	void (*done)(void *arg, u32 segment, u64 bytes, int err);
	void *arg;
	pid_t child;
	int from_child;
	u64 cpu_ns;    /* of the children so far */
	u64 not_named; /* segments that found no room */
};

/* Takes the segment over; it may be used again. */
void namer__take(struct namer *n, struct segment *s);
/* Now and then, with wait until all is done: what the child has told, and the next child. */
void namer__tend(struct namer *n, bool wait);
void namer__free(struct namer *n);

/* Explains the frames of a segment that fd, which is taken over, has: what the child does after naming. 0 or -errno. */
int namer__explain(const struct segment *s, int fd, const struct explain_options *o,
	void (*found)(void *arg, const struct finding *f), void *arg);
struct verdict;
/* What a verdict says, as a finding; segment and crossed are 0. */
void finding__of(struct finding *f, const struct verdict *v);

#endif
