/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What the frames of each scene did, against the limits of --fail.
 */
#ifndef REDFRAME_SOAK_LIMITS_H
#define REDFRAME_SOAK_LIMITS_H

#include "store.h"
#include "thresholds.h"

#define SOAK_LIMITS_SCENES 256u /* the last one stands for all further ones */

struct soak_limits {
	u32 n;
	struct scene_did {
		char name[64];
		u64 crossed[LIMIT_KINDS], worst[LIMIT_KINDS]; /* frames; the largest amount */
	} scenes[SOAK_LIMITS_SCENES];
};

/* A frame that is no warm-up; failed: bits of enum limit_kind. */
void soak_limits__frame(struct soak_limits *l, const char *scene, const struct amounts *did, u32 failed);
/* A check in the store for each scene and limit. Whether any was crossed; says which. */
bool soak_limits__check(const struct soak_limits *l, const struct amounts *limits, struct store *s, const char *run);

#endif
