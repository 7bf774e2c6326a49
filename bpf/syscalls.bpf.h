/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A finished system call of the game, on its way from syscalls.bpf.c to the class that records it.
 */
#ifndef REDFRAME_SYSCALLS_BPF_H
#define REDFRAME_SYSCALLS_BPF_H

#include "redframe.bpf.h"

/* ns, CLOCK_BOOTTIME: of calls that began before that the end may not have been seen. */
extern __u64 calls_since;

struct call {
	u64 ts; /* its end */
	u64 dur;
	s64 ret;
	struct task_struct *task;
	struct thread_state *st;
	u16 sys;   /* our id of it */
	bool away; /* another thread runs: neither its memory nor its stack can be read */
};

/* include/uapi/linux/futex.h */
#define FUTEX_WAIT            0
#define FUTEX_LOCK_PI         6
#define FUTEX_WAIT_BITSET     9
#define FUTEX_WAIT_REQUEUE_PI 11
#define FUTEX_LOCK_PI2        13
#define FUTEX_CMD_MASK        0x7f

static __always_inline bool futex__waits(u32 op)
{
	u32 cmd = op & FUTEX_CMD_MASK;

	return cmd == FUTEX_WAIT || cmd == FUTEX_WAIT_BITSET || cmd == FUTEX_LOCK_PI || cmd == FUTEX_LOCK_PI2 ||
	       cmd == FUTEX_WAIT_REQUEUE_PI;
}

/* The current thread leaves the CPU at ts, in a call that sleeps. */
void syscall__sleep(struct task_struct *task, struct pt_regs *regs, u8 handler, u64 ts) __hidden;
/* With THIN_CALLS: it comes back at ts. */
void syscall__wake(struct task_struct *task, u64 ts) __hidden;
void lock__begin(struct thread_state *st, struct pt_regs *regs, u8 handler) __hidden;
int lock__exit(struct call *c, struct pt_regs *regs, u8 handler) __hidden;
void file__close(struct task_struct *task, struct thread_state *st, u32 fd) __hidden;
int file__exit(struct call *c, struct pt_regs *regs, u8 handler) __hidden;
int memory__exit(struct call *c, struct pt_regs *regs, u8 handler) __hidden;
int other__exit(struct call *c, struct pt_regs *regs) __hidden;

#endif
