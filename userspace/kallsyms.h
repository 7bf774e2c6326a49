/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The kernel's functions by address, as /proc/kallsyms lists them.
 */
#ifndef REDFRAME_KALLSYMS_H
#define REDFRAME_KALLSYMS_H

#include "common.h"

struct recording_writer;

struct kallsym {
	u64 addr;
	u32 at;    /* of its name in text: NUL-terminated, then the module's */
	u32 order; /* in the file: of several names the first is the function's */
};

struct kallsyms {
	struct kallsym *v; /* by address, each address once */
	u32 n;
	char *text;
	size_t used;
};

/* Reads the functions; takes fd over, which may be the -errno that it was not opened for. 0; -EACCES where the kernel
 * shows names without addresses; -errno. */
int kallsyms__read(struct kallsyms *k, int fd);
/* Of the function that addr lies in; NULL where none is known. */
const char *kallsyms__name(const struct kallsyms *k, u64 addr);
/* Writes a SYMBOL record for each function that one of these addresses lies in. Sorts them. 0 or -errno. */
int kallsyms__write(const struct kallsyms *k, struct recording_writer *w, u64 ts, u64 *addrs, u32 n);
void kallsyms__free(struct kallsyms *k);

#endif
