/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Memory that grows with each visit to a scene, or while there are no scenes with each five minutes: a suspected leak.
 */
#ifndef REDFRAME_GROWTH_H
#define REDFRAME_GROWTH_H

#include "blocks.h"

#define GROWTH_SCENES    128u
#define GROWTH_VISITS    4u                   /* before which nothing is suspected */
#define GROWTH_LEAST     (1u << 20)           /* bytes a visit */
#define GROWTH_WINDOW_NS (300 * NSEC_PER_SEC) /* where there are no scenes */
#define GROWTH_WINDOWS   6u
#define GROWTH_SETS      256u /* a power of two */
#define GROWTH_WAYS      4u

struct model;

struct growth_scene {
	char name[64];
	u32 visits, rises;
	u64 first, last;         /* bytes at the end of the first and last visit */
	u64 fell;                /* bytes, in all visits that ended with less than the one before */
	double sx, sy, sxx, sxy; /* over visits: their number, bytes */
};

struct growth_site {
	u64 caller;  /* 0: none */
	u64 bytes;   /* allocated there since the game began; of small blocks what their samples stand for */
	u64 large;   /* of these: in blocks that are never sampled */
	u64 live;    /* of the others: not freed, where their samples have addresses */
	u32 samples; /* of small ones */
};

/* The last sample. A block that is recorded one by one may be sampled too: its record comes right behind, and counts.
 */
struct growth_sample {
	struct growth_site *site; /* NULL: none */
	u64 ts, bytes;
	u32 tid;
};

struct growth {
	struct growth_scene scenes[GROWTH_SCENES];
	u32 n_scenes;
	char scene[64];
	u64 heap, since;                                    /* now; when the visit began */
	struct growth_site sites[GROWTH_SETS][GROWTH_WAYS]; /* by caller: in its set the least gives way */
	struct growth_sample sample;
	struct blocks blocks;
	bool matched; /* samples have addresses, as where each free is recorded: what is live is known */
	bool cut;     /* not all of them found room, or allocations were lost or left out */
};

void growth__reset(struct growth *g); /* another process */
/* MEMORY, SCENE, ALLOC, ALLOC_SAMPLE, FREE, LOST, SHED; others are ignored. After model__event. */
void growth__record(struct growth *g, const struct model *m, const struct ev_hdr *rec);
bool growth__is_suspect(const struct growth *g);
/* The sites with most bytes, live ones where they are known, these first: returns how many. */
u32 growth__sites(const struct growth *g, struct growth_site *out, u32 max);
/* What is suspected, one text for each scene: false after the last. i counts from 0; m has the names of code. */
bool growth__suspect(const struct growth *g, const struct model *m, u32 i, char *text, size_t size);

#endif
