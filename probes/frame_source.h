/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Which call of a game ends a frame. docs/frame-sources.md tells the user.
 */
#ifndef REDFRAME_FRAME_SOURCE_H
#define REDFRAME_FRAME_SOURCE_H

#include "site_build.h"

#define FRAME_CANDIDATES 12

struct frame_candidate {
	char source_text[80]; /* "uprobe:libGLX.so.0:glXSwapBuffers" */
	struct site_list list;
	bool driver; /* its driver is mapped too */
	u64 hits;    /* in the trial */
};

struct frame_choice {
	struct frame_candidate v[FRAME_CANDIDATES];
	int n;
	int chosen;       /* index, -1: none */
	bool tried;       /* the candidates were counted for a while */
	bool vulkan;      /* libvulkan is mapped */
	char reason[480]; /* why this one, in words */
};

/* With tgid 0 (a file, no process) nothing is tried out. 0 or -errno. */
int frame_source__auto(struct frame_choice *c, struct objects *o, char *why, size_t why_size);
void frame_choice__free(struct frame_choice *c);

/* The known present function of that name: which argument is the swapchain, -1 where unknown. */
int present__stream_arg(const char *symbol);
/* "usdt:redframe:frame", or its begin and end. */
int frame_source__usdt(
	struct site_list *l, struct objects *o, const char *provider, const char *name, char *why, size_t why_size);
/* "uprobe:…" without its "uprobe:" */
int frame_source__uprobe(struct site_list *l, struct objects *o, const char *spec, char *why, size_t why_size);

#endif
