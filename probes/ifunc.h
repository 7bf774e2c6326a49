/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Which implementation of a function that is chosen at run time (IFUNC), or which of its versions, a process uses: its
 * loader has looked for it and written the answer into the tables of those who call it.
 */
#ifndef REDFRAME_IFUNC_H
#define REDFRAME_IFUNC_H

#include "objects.h"

/* Of the function that obj exports under this name: sym's address and size become those of what is bound. -ENOENT: an
 * IFUNC that nobody in the process has bound yet. Any other function stays as it is where nobody has. */
int ifunc__resolve(struct objects *o, const struct object *obj, const char *name, struct elf_symbol *sym);

#endif
