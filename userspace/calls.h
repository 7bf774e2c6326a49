/* SPDX-License-Identifier: GPL-2.0-only
 *
 * When a recording ends: the copied stacks become call chains. Writes a CALL record for each place in a chain that no
 * chain had before, and puts the chain's number into its STACK record.
 */
#ifndef REDFRAME_CALLS_H
#define REDFRAME_CALLS_H

#include "common.h"

struct recording_writer;
struct stacks;
struct kernel_stacks;
struct unwinder;
struct jit;

struct calls_result {
	u64 stacks, truncated, failed; /* unwound; of these not to their end; with no chain at all */
	u32 calls;                     /* CALL records */
	u64 beyond;                    /* stacks left out: too many different calls */
	u64 ns;
};

/* The kernel's chains as well: a KSTACK record says which one a SWITCH means. u: NULL only where there are no stacks.
 * 0 or -errno */
int calls__write(struct recording_writer *w, struct stacks *s, const struct kernel_stacks *kernel, struct unwinder *u,
	struct jit *jit, u64 ts, struct calls_result *out);

#endif
