/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A stream of records without an end, live or replayed, in memory of a fixed size: merge, model, explain; what
 * surrounds slow frames goes into segments, and every frame is told to whoever keeps statistics. It knows no kernel and
 * no clock but the records' own.
 */
#ifndef REDFRAME_ENGINE_H
#define REDFRAME_ENGINE_H

#include "explain.h"
#include "kept.h"
#include "namer.h"
#include "thresholds.h"

#define ENGINE_BEFORE_NS     (500 * NSEC_PER_MSEC)
#define ENGINE_BEFORE_FRAMES 31u /* with the next one they are 30 whole ones: what is typical is known again */
#define ENGINE_AFTER_FRAMES  10u
#define ENGINE_LAST_NS       (2 * NSEC_PER_SEC) /* kept of a game that ends by a crash, at the least */
#define ENGINE_SEGMENT_BYTES (256u << 20)
#define ENGINE_MAX_BYTES     (1536u << 20)

/* What is held at the most: of the 128 MiB that soak may take, the rings (16 MiB, on up to 16 CPUs) and the program's
 * own files take 24.
 */
#define ENGINE_MERGE_BYTES    (16u << 20)
#define ENGINE_TIMELINE_BYTES (24u << 20)
#define ENGINE_HISTORY_BYTES  (16u << 20)
#define ENGINE_STACK_BYTES    (4u << 20)

/* A frame, explained as far as that is possible without names. */
struct soak_frame {
	const struct verdict *v;
	struct amounts did;
	u32 kept, failed; /* limits crossed: bits of enum limit_kind */
	bool suspended;   /* the machine slept in it: it says nothing of the game */
};

struct engine_options {
	struct explain_options explain;
	struct amounts keep, fail;
	const char *dir; /* of segments; NULL: none is kept */
	u64 segment_bytes, max_bytes;
	u64 before_ns;
	u32 before_frames, after_frames;
	bool patient; /* the stream can wait: a replay */
	/* names for a segment's code: namer.h; NULL: none */
	int (*name)(void *arg, struct recording_writer *w, struct stacks *stacks);
	/* each may be NULL */
	void (*frame)(void *arg, const struct soak_frame *f, const struct model *m);
	void (*hitch)(void *arg, const struct finding *f);
	void (*note)(void *arg, const char *text);
	/* a record that is about the process, not about a frame: COST, MEMORY, SCENE, ALLOC, ALLOC_SAMPLE, FREE, LOST,
	 * SHED */
	void (*record)(void *arg, const struct ev_hdr *rec);
	void *arg;
};

struct engine_stats {
	u64 naming_ns;           /* CPU time of the children that name code */
	u64 records;             /* taken in */
	u64 frames, slow, kept;  /* verdicts; slow ones; kept ones, slow or for another limit */
	u64 not_kept, not_named; /* of the kept: no room on the disk; without explanation */
	u64 doubled;             /* marks that were the one before, seen again: of streams that ended */
	u32 streams;             /* of which the first mark began a frame and ended none */
	u64 suspends, suspended_ns;
	u64 shed[CLASS_COUNT]; /* records let go for lack of time */
	u64 late;              /* came so late that something younger had gone on already */
	u64 forgotten;         /* frames so long that memory had no room for their beginning */
	u64 cut;               /* kept segments that begin later than asked for, for lack of room */
	u32 segments;
	u64 first, last; /* ts of the first and last record that is no META */
	u64 last_frame;  /* end of the last frame */
};

struct engine;
/* NULL when out of memory */
struct engine *engine__new(const struct engine_options *o);
void engine__free(struct engine *e);
/* One record: has the form of recording_writer's sink; arg is the engine. 0 or -ENOMEM. */
int engine__record(void *arg, const struct ev_hdr *rec);
/* has the form of stacks' sink */
void engine__stack(void *arg, const struct stack_copy *c, size_t size);
/* Before the first record, of a recording that can be read twice: as model__foretell. */
int engine__foretell(struct engine *e, const struct ev_hdr *rec);
/* So many classes of shedding.h are let go from ts on, 0: none; frames never are. */
void engine__shed(struct engine *e, u32 level, u64 ts);
/* Some times a second: what is kept reaches the disk. */
void engine__flush(struct engine *e);
/* Each second: segments end, what was explained is told. */
void engine__tend(struct engine *e);
/* The game has ended; what follows is another one's stream. Its last seconds are kept if a signal ended it, or if asked
 * for; *code is its exit status as wait(2) has it. 0 or -errno. */
int engine__game_ended(struct engine *e, bool keep_last, u32 *code);
/* Everything to its end, kept recordings named. 0 or -errno. */
int engine__finish(struct engine *e);
const struct engine_stats *engine__stats(struct engine *e);
const struct kept *engine__kept(const struct engine *e);
struct model *engine__model(struct engine *e);

#endif
