/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Looks for probe sites in libraries that the game maps after we attached: on a thread of its own, since finding a
 * frame source may take a second in which the ring must be drained.
 */
#ifndef REDFRAME_SCOUT_H
#define REDFRAME_SCOUT_H

#include "sites.h"

struct scout_want {
	u32 tgid;
	const char *frame; /* SPEC to look for; NULL: found already */
	bool markers;
	bool allocs, frees;
};

struct scout_find {
	struct site_list sites;      /* the caller frees it */
	bool frame, markers, allocs; /* what was found among it */
	char source[256];
};

struct scout;
struct scout *scout__start(const struct scout_want *w);
/* What was found since, once: false if nothing. Never blocks. */
bool scout__take(struct scout *s, struct scout_find *out);
void scout__stop(struct scout *s); /* NULL is fine */

#endif
