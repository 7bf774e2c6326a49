/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Which slices of a recording are asked for: by time, by frame number, or around slow frames.
 */
#ifndef REDFRAME_SELECTION_H
#define REDFRAME_SELECTION_H

#include "slices.h"

struct recording;
struct time_index;

struct selection_options {
	double from_s, to_s; /* since the recording's first event; 0: not given */
	const char *frames;  /* "A..B", "A.." or "A"; NULL */
	bool around_slow;    /* half a second before and after each, docs/attribution.md says which are slow */
};

struct selection {
	struct slice *v; /* in order, apart from each other */
	u32 n, cap;
};

/* Reads the recording to find them, or its index (NULL: it has none), and leaves it rewound. 0 with n = 0 where nothing
 * was asked for; -EINVAL after a message where that is not to be understood; -ENOENT after a message where there is no
 * such thing in the recording; -errno. */
int selection__find(
	struct selection *s, struct recording *r, const struct time_index *ix, const struct selection_options *o);
/* ts of the recording's first event, from which --from and --to count; 0: it holds none. Rewinds. 0 or -errno. */
int selection__zero(struct recording *r, u64 *zero);
void selection__free(struct selection *s);

#endif
