/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The files whose code the game runs, held open as the inodes that it maps: their symbols can be read when the
 * recording ends, though the game may be gone by then.
 */
#ifndef REDFRAME_IMAGES_H
#define REDFRAME_IMAGES_H

#include "common.h"

#define IMAGES_MAX 1024

struct image {
	u64 start;  /* of its first mapping */
	u64 offset; /* in the file, of that mapping */
	u64 ino;
	u32 dev;
	int fd;       /* -1: could not be opened */
	char *path;   /* as mapped; not sanitised */
	bool refused; /* reading it failed in a way that must not happen again */
};

struct images {
	struct image *v;
	int n;
	int mappings; /* when it was last looked */
	u64 vdso;     /* where the kernel's own code for games is mapped; 0: not seen */
	u64 uprobes;  /* where the kernel runs the instructions under probes that it cannot emulate; 0: nowhere yet */
	u32 beyond;   /* files that did not fit */
};

/* Adds what is mapped now and was not before. 0 or -errno. */
int images__refresh(struct images *im, u32 tgid);
void images__free(struct images *im);

#endif
