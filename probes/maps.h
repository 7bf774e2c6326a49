/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A process's address space as /proc tells it, and the files it maps, opened as the very inodes that it maps.
 */
#ifndef REDFRAME_MAPS_H
#define REDFRAME_MAPS_H

#include <sys/mman.h>
#include "common.h"

struct map {
	u64 start, end, offset, ino;
	u32 dev;      /* as the kernel keeps it: major << 20 | minor */
	u32 prot;     /* PROT_* */
	bool shared;  /* with others who map it: MAP_SHARED */
	bool deleted; /* the name is gone or means another file now */
	const char *
		path; /* unescaped, without " (deleted)"; "" for anonymous memory, "[heap]", "[stack]"; not sanitised */
};

struct maps {
	struct map *v;
	int n, cap;
	char *text; /* holds the paths */
};

/* 0 or -errno (-ESRCH where the process ended). In order of address. */
int maps__read(struct maps *m, u32 tgid);
void maps__free(struct maps *m);
/* Parses text in the format of /proc/PID/maps, taking it over; for the above and for tests. */
int maps__parse(struct maps *m, char *text, size_t len);
const struct map *maps__find(const struct maps *m, u64 addr);
/* The mapped inode itself, read-only: an fd or -errno. -ESTALE: what the path names now is another file. */
int maps__open(const struct map *map, u32 tgid);
/* Base name of a path, Windows ones included. */
const char *path__base(const char *path);

/* A small /proc file as a NUL-terminated block, malloc'ed, of at most limit bytes. NULL with errno. */
char *proc__read(const char *path, size_t limit, size_t *len);

#endif
