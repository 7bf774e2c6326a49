/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Building a site_list: what frame_source.c, allocators.c, sites.c and probe.c share.
 */
#ifndef REDFRAME_SITE_BUILD_H
#define REDFRAME_SITE_BUILD_H

#include "objects.h"
#include "sites.h"

/* Appends words to why, after "; " where it holds some already. */
void why__add(char *why, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A function that a probe may go on. */
struct function {
	struct object *obj;
	struct elf_symbol sym; /* name points to memory that lives as long as the objects, or is a literal */
	const char *lib;       /* for the label: "libGLX.so.0" */
	const char *scheme;    /* for the label of a function without a name, "vulkan"; NULL: "uprobe" */
};

/* What is done there: desc.what, sub, and which of the function's arguments go into desc.args (-1: none). */
struct use {
	u8 what, sub;
	signed char args[PROBE_ARGS];
	u16 follow; /* args[1] points to a structure with a pointer at this offset: what that points to is meant. 0: no
		     */
};

/* Adds a probe at the best place in the function. Returns 1; 0 if it is there already, or if it would be single-stepped
 * and allow_stepped is unset (*stepped says so); -errno. */
int sites__add_function(struct site_list *l, struct objects *o, const struct function *f, const struct use *u,
	bool allow_stepped, bool *stepped);
/* Adds a probe exactly `into` bytes behind the function's entry. -EILSEQ: within an instruction. */
int sites__add_inside(struct site_list *l, struct objects *o, const struct function *f, u64 into, const struct use *u);
/* Adds a probe at a file offset in code. -EINVAL where the file has no code there, -EILSEQ: within an instruction. */
int sites__add_offset(struct site_list *l, struct objects *o, struct object *obj, u64 offset, u8 what, u8 sub);
/* Adds every site of a USDT probe in the process's files. Frame probes take a number and a stream where the note has
 * them, the others must have their string. Returns how many, or -errno; what was left out is in why. */
int sites__add_usdt(struct site_list *l, struct objects *o, const char *provider, const char *name, u8 what, u8 sub,
	char *why, size_t why_size);
/* Moves all of `from` to the end of l. 0 or -ENOMEM. */
int sites__take(struct site_list *l, struct site_list *from);

#endif
