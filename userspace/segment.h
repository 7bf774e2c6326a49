/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A kept recording while it is being written: what surrounds slow frames, with all definitions that it needs at its
 * begin, so that it opens by itself.
 */
#ifndef REDFRAME_SEGMENT_H
#define REDFRAME_SEGMENT_H

#include <limits.h>

#include "recording.h"
#include "stacks.h"

struct model;
struct stack_cache;

#define SEGMENT_FRAMES 64u   /* kept frames in one; then another begins */
#define SEGMENT_PATHS  4096u /* a power of two */

/* A frame for whose sake the segment is kept. */
struct kept_frame {
	u64 start, end, number;
	u32 stream;
	u32 crossed; /* bits of enum limit_kind; 0: it was slow */
};

struct segment {
	u32 number; /* 0: none is open */
	char path[PATH_MAX];
	struct recording_writer w;
	struct stacks stacks;
	u64 from, to; /* ts of its first and last record */
	u64 no_stack; /* STACK records whose copy was gone */
	struct kept_frame frames[SEGMENT_FRAMES];
	u32 n_frames;
	u64 told[SEGMENT_PATHS]; /* paths in it, by hash; a collision tells a path again */
};

/* A new file dir/segment-NUMBER.redframe. 0 or -errno after a message. */
int segment__open(struct segment *s, const char *dir, u32 number, u64 from);
/* What model knows, as of `from`. 0 or -errno. */
int segment__define(struct segment *s, const struct model *m);
/* A record of the stream, with the path of its file before it and the stack that belongs to it. 0 or -errno. */
int segment__write(struct segment *s, const struct ev_hdr *rec, const struct model *m, const struct stack_cache *c);
/* The file stays as it is, incomplete; s is to be used again. */
void segment__abandon(struct segment *s);

#endif
