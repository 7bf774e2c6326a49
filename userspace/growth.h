/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Memory that grows with each visit to a scene, or while there are no scenes with each five minutes: a suspected leak.
 */
#ifndef REDFRAME_GROWTH_H
#define REDFRAME_GROWTH_H

#include "common.h"

#define GROWTH_SCENES    128u
#define GROWTH_VISITS    4u                   /* before which nothing is suspected */
#define GROWTH_LEAST     (1u << 20)           /* bytes a visit */
#define GROWTH_WINDOW_NS (300 * NSEC_PER_SEC) /* where there are no scenes */
#define GROWTH_WINDOWS   6u
#define GROWTH_SITES     1024u

struct model;

struct growth_scene {
	char name[64];
	u32 visits, rises;
	u64 first, last;         /* bytes at the end of the first and last visit */
	u64 fell;                /* bytes, in all visits that ended with less than the one before */
	double sx, sy, sxx, sxy; /* over visits: their number, bytes */
};

struct growth_site {
	u64 caller, bytes; /* allocated there since the game began */
};

struct growth {
	struct growth_scene scenes[GROWTH_SCENES];
	u32 n_scenes;
	char scene[64];
	u64 heap, since; /* now; when the visit began */
	struct growth_site sites[GROWTH_SITES];
	u32 n_sites;
};

void growth__reset(struct growth *g); /* another process */
/* MEMORY, ALLOC, SCENE; others are ignored */
void growth__record(struct growth *g, const struct ev_hdr *rec);
/* What is suspected, one text for each scene: false after the last. i counts from 0. */
bool growth__suspect(struct growth *g, const struct model *m, u32 i, char *text, size_t size);

#endif
