/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Looks for probe sites after we attached: in libraries that the game maps later, among Vulkan devices that it makes
 * later, and once more where the frame source was only guessed. On a thread of its own, since finding a frame source
 * may take a second in which the ring must be drained.
 */
#ifndef REDFRAME_SCOUT_H
#define REDFRAME_SCOUT_H

#include "sites.h"

#define SCOUT_SPEC_SIZE 640
struct scout_want {
	u32 tgid;
	u32 family;        /* look for frames among the descendants of this process as well; 0: no */
	bool now;          /* what is mapped already has not been looked at */
	const char *frame; /* SPEC to look for; NULL: found already */
	bool unsure;       /* one was found, but it has not fired: look whether another does */
	const char *more;  /* SPEC of the frame source where further sites may come: Vulkan devices and libraries */
	bool allocs, frees;
	const char *const *alloc_fns; /* specs of --alloc-fn */
	int n_alloc_fns;
};

struct scout_find {
	u32 tgid;               /* of the process that it is about: maybe a descendant */
	struct site_list sites; /* the caller frees it; may hold sites that are known already */
	bool frame, allocs;     /* what was found among it */
	char source[256];
	char why[512];      /* about the frames, in words */
	char left_out[512]; /* allocation functions that get no probe, and why; "": none */
};

/* What `more` is for a frame source, written to spec: NULL where its sites are all there is. A game that marks begin
 * and end is not looked at for plain marks: each of its frames would be two. */
const char *scout__more(const char *source, char *spec, size_t size);

struct scout;
struct scout *scout__start(const struct scout_want *w);
/* What was found since, once: false if nothing. Never blocks. */
bool scout__take(struct scout *s, struct scout_find *out);
/* What could not be watched for, once: -errno of the counter on vkCreateDevice; 0: nothing to tell. */
int scout__blind(struct scout *s);
/* The frame source fires: no other is looked for. */
void scout__settle(struct scout *s);
/* It was left: from now on another is looked for, SPEC. */
void scout__look_anew(struct scout *s, const char *frame);
void scout__stop(struct scout *s); /* NULL is fine */

#endif
