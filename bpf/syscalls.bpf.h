/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A finished system call of the game, on its way from syscalls.bpf.c to the class that records it.
 */
#ifndef REDFRAME_SYSCALLS_BPF_H
#define REDFRAME_SYSCALLS_BPF_H

#include "redframe.bpf.h"

struct call {
	u64 ts; /* its end */
	u64 dur;
	s64 ret;
	struct task_struct *task;
	struct thread_state *st;
};

void lock__enter(struct thread_state *st, struct pt_regs *regs, u8 handler) __hidden;
int lock__exit(struct call *c, struct pt_regs *regs, u8 handler) __hidden;
void file__enter(struct task_struct *task, struct thread_state *st, struct pt_regs *regs, u8 handler) __hidden;
int file__exit(struct call *c, struct pt_regs *regs, u8 handler) __hidden;
int memory__exit(struct call *c, struct pt_regs *regs, u8 handler) __hidden;
int other__exit(struct call *c, struct pt_regs *regs) __hidden;

#endif
