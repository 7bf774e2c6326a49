/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The kernel's call chains at blocking switches, as the map of the kernel side has them when a recording ends.
 */
#ifndef REDFRAME_KERNEL_STACKS_H
#define REDFRAME_KERNEL_STACKS_H

#include "bpf_options.h"
#include "common.h"

struct capture;
struct kallsyms;

struct kernel_stack {
	u32 id; /* SWITCH.kstack */
	u32 n;
	u64 addrs[KERNEL_STACK_CALLS]; /* innermost first, within the instructions that were executing */
};

struct kernel_stacks {
	struct kernel_stack *v;
	u32 n;
};

/* 0 or -errno */
int kernel_stacks__read(struct kernel_stacks *s, const struct capture *c);
/* Leaves out the scheduler's own functions, which are the same in all, and what a probe adds to them. */
void kernel_stacks__trim(struct kernel_stacks *s, const struct kallsyms *k);
/* every address in a stack, to be freed; NULL where there is none or no memory */
u64 *kernel_stacks__addresses(const struct kernel_stacks *s, u32 *n);
void kernel_stacks__free(struct kernel_stacks *s);

#endif
