/* SPDX-License-Identifier: GPL-2.0-only
 *
 * From a copied stack to its chain of calls, by the images' call frame information; by frame pointers where there is
 * none.
 */
#ifndef REDFRAME_UNWIND_H
#define REDFRAME_UNWIND_H

#include <elfutils/libdwfl.h>

#include "common.h"
#include "stack.h"

#define UNWIND_CALLS_MAX 512

struct unwinder;
struct jit;

/* One for a dwfl, which lives as long. 0 or -errno: -ENOSYS where libdwfl cannot unwind this machine's code. */
int unwinder__new(struct unwinder **out, Dwfl *dwfl);
/* Addresses within the instructions that were executing, innermost first, at most UNWIND_CALLS_MAX: returns how many.
 * *truncated: the outermost one was called from somewhere that is not known. */
int unwinder__walk(
	struct unwinder *u, const struct jit *jit, const struct stack_copy *stack, u64 *addrs, bool *truncated);
void unwinder__free(struct unwinder *u);

#endif
