/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Which call of a game ends a frame. docs/frame-sources.md tells the user.
 */
#ifndef REDFRAME_FRAME_SOURCE_H
#define REDFRAME_FRAME_SOURCE_H

#include "site_build.h"

#define FRAME_CANDIDATES 20

struct frame_candidate {
	char source_text[80]; /* "uprobe:libGLX.so.0:glXSwapBuffers" */
	struct site_list list;
	bool driver; /* its driver is mapped too */
	bool vulkan; /* found through the loader's tables; it is v[0] then */
	bool last_resort;
	u64 hits; /* in the trial */
	bool hot; /* single-stepped, and called too often for that: not taken */
};

struct frame_choice {
	struct frame_candidate v[FRAME_CANDIDATES];
	int n;
	int chosen;          /* index, -1: none */
	bool tried;          /* the candidates were counted for a while */
	bool sure;           /* it fired, or the game marks its frames itself */
	bool vulkan;         /* libvulkan is mapped */
	char no_vulkan[320]; /* … and why its present function was not found */
	char reason[480];    /* why this one, in words */
};

/* With tgid 0 (a file, no process) nothing is tried out. Of sources that were `left`, one a line, none is taken again,
 * and no other on suspicion: it must fire; NULL: none was. 0 or -errno. */
int frame_source__auto(struct frame_choice *c, struct objects *o, const char *left, char *why, size_t why_size);
/* Whether the source stands among those lines. */
bool frame_source__is_among(const char *source, const char *lines);
/* What the process may present through, in words ("vulkan:…, uprobe:libEGL.so.1:eglSwapBuffers"), the last resorts left
 * out, nothing tried. Returns how many there are. */
int frame_source__candidates(struct objects *o, char *out, size_t size);
void frame_choice__free(struct frame_choice *c);

/* The known present function of that name: which argument is the swapchain (or holds it), -1 where unknown. */
int present__stream_arg(const char *symbol);
/* Frames at that function: a known one has its stream. */
struct use present__use(const char *symbol);
/* The present functions of the process's Vulkan devices: how many, or -errno. */
int frame_source__vulkan(
	struct site_list *l, struct objects *o, char *source, size_t source_size, char *why, size_t why_size);
/* "usdt:redframe:frame", or its begin and end. */
int frame_source__usdt(
	struct site_list *l, struct objects *o, const char *provider, const char *name, char *why, size_t why_size);
/* "uprobe:…" without its "uprobe:" */
/* What comes after uprobe:, taken apart. */
struct uprobe_spec {
	char object[4352];
	const char *symbol; /* in object; NULL: a place in the file */
	bool has_offset;
	u64 offset;
};

int uprobe_spec__parse(struct uprobe_spec *u, const char *spec); /* 0 or -errno */
int frame_source__uprobe(struct site_list *l, struct objects *o, const char *spec, char *why, size_t why_size);

#endif
