/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Hitches that repeat: grouped by cause, thing and thread.
 */
#ifndef REDFRAME_PATTERNS_H
#define REDFRAME_PATTERNS_H

#include "explain.h"

#define PATTERNS_MAX 256u
#define SCENES_MAX   1024u

struct pattern_entry;
struct patterns {
	struct pattern_entry *entries;
	u32 n;
	struct pattern *list;                           /* what patterns__list gave out */
	u64 scenes[SCENES_MAX], scene_seen[SCENES_MAX]; /* hash of a scene's name; start of its first frame */
	u32 n_scenes;
	u64 others; /* hitches that found no room */
};

void patterns__free(struct patterns *p);
/* Every frame, slow or not: learns when scenes were first seen. */
void patterns__scene(struct patterns *p, const struct frame *f);
/* A slow frame with its parts. 0 or -ENOMEM. */
int patterns__add(struct patterns *p, const struct verdict *v);
/* by total excess, largest first; valid until the next call. NULL when there are none. */
const struct pattern *patterns__list(struct patterns *p, u32 *n);

#endif
