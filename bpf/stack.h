/* SPDX-License-Identifier: GPL-2.0-only OR MIT
 *
 * A copy of a thread's registers and of the top of its stack, as it crosses the ring. It never reaches the recording:
 * userspace unwinds it and keeps the addresses. Needs events.h and struct pt_regs' size in words.
 */
#ifndef REDFRAME_STACK_H
#define REDFRAME_STACK_H

#include "events.h"

#define STACK_PIECE  1024 /* bytes read at once; a power of two, so that no piece straddles a mapping's end */
#define STACK_PIECES 17   /* copied at most: 16 KiB from the stack pointer on, and what lies before it in its piece */
#define STACK_ROOM   (STACK_PIECES * STACK_PIECE)
#define STACK_REGS   34 /* words of struct pt_regs: 21 on x86-64, 34 on arm64 */

struct stack_copy {
	struct ev_stack rec; /* what the recording keeps of it */
	__u64 base;          /* address of data[0]; the stack pointer lies in the first piece */
	__u32 bytes;         /* copied */
	__u32 more;          /* 1: the stack goes on beyond what was copied */
	__u64 regs[STACK_REGS];
	__u8 data[];
};

#endif
