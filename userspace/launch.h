/* SPDX-License-Identifier: GPL-2.0-only
 *
 * `-- CMD`: the game is started by us, held before its first instruction until we are attached.
 */
#ifndef REDFRAME_LAUNCH_H
#define REDFRAME_LAUNCH_H

#include "common.h"

struct launch {
	u32 tgid;   /* 0: nothing launched */
	int go;     /* a byte here lets it run */
	int error;  /* the exec's errno arrives here; closed when the exec succeeded */
	int status; /* of waitpid, when ended */
	bool ended;
};

struct preload;

/* Forks; the child waits, and will load the library of `preload` (NULL: none). It will run as the invoking user
 * (SUDO_UID). 0 or -errno. */
int launch__prepare(struct launch *l, char **argv, const struct preload *preload);
/* Lets it run: 0, or -errno of its exec. */
int launch__go(struct launch *l);
/* Reaps it if it has ended. */
bool launch__ended(struct launch *l);
/* Reaps whatever has ended of CMD and of what it started and left behind. */
void launch__reap(struct launch *l);
/* "exited with 3", "was killed by SIGSEGV" */
const char *launch__outcome(const struct launch *l, char *buf, size_t size);
/* Ends a child that never ran, and closes what is open. A running one is left alone. */
void launch__close(struct launch *l);

#endif
