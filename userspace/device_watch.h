/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Counts a game's calls of vkCreateDevice: a device made later has a dispatch table of its own, and another function
 * that presents.
 */
#ifndef REDFRAME_DEVICE_WATCH_H
#define REDFRAME_DEVICE_WATCH_H

#include <stdbool.h>

#include "common.h"
#include "sites.h"
#include "trial.h"

struct device_watch {
	bool on;
	struct trial trial;
	struct site_list sites;
	u64 count;
	int looks; /* still to come */
	u64 next;  /* ms */
	u64 step;
};

/* Begins once the game has mapped a Vulkan loader; until then, and again, it does nothing. 0 or -errno. */
int device_watch__open(struct device_watch *d, u32 tgid);
void device_watch__close(struct device_watch *d);
/* Whether it is time to look for a device that may be new. */
bool device_watch__is_due(struct device_watch *d, u64 now_ms);

#endif
