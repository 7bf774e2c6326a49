/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Which implementation of a function that is chosen at run time (IFUNC) a process uses: its loader has asked the
 * resolver and written the answer into the tables of those who call it.
 */
#ifndef REDFRAME_IFUNC_H
#define REDFRAME_IFUNC_H

#include "objects.h"

/* Of the function that obj exports under this name: sym's address and size become those of the implementation.
 * -ENOENT: nobody in the process has it bound. */
int ifunc__resolve(struct objects *o, const struct object *obj, const char *name, struct elf_symbol *sym);

#endif
