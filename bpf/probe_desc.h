/* SPDX-License-Identifier: GPL-2.0-only OR MIT
 *
 * A place in the game's code where a program runs, as the kernel side sees it: what it means and where its arguments
 * are. Filled by probes/, indexed by the attach cookie.
 */
#ifndef REDFRAME_PROBE_DESC_H
#define REDFRAME_PROBE_DESC_H

enum probe_what {
	PROBE_FRAME,     /* args: number, stream; sub: enum frame_mark or PROBE_COMMIT */
	PROBE_SCENE,     /* args: string */
	PROBE_LOCK_NAME, /* args: address, string */
	PROBE_MESSAGE,   /* args: string */
	PROBE_ALLOC,     /* args: size, count (calloc) or alignment, old block or the block freed; sub: enum alloc_fn */
	PROBE_SAMPLED,   /* the interposer samples an allocation; args: size, enum alloc_fn, who called */
};

/* PROBE_FRAME.sub: a mark, where Wayland request args[0] of object args[1] commits a surface */
#define PROBE_COMMIT 0x80

enum arg_from {
	ARG_NONE,
	ARG_CONST,
	ARG_REG,
	ARG_MEM,
	ARG_MEM_MEM, /* at the address that is at the place that ARG_MEM would read */
};

struct probe_arg {
	__s64 value; /* the constant, or the displacement */
	__u16 reg;   /* offset of the (base) register in struct pt_regs, in bytes */
	__u16 index; /* ARG_MEM: of the index register; 0xffff: none */
	__u8 scale;  /* ARG_MEM: 1, 2, 4, 8 */
	__u8 from;   /* enum arg_from */
	__u8 size;   /* bytes: 1, 2, 4, 8 */
	__u8 is_signed;
};

#define PROBE_ARGS 3
struct probe_desc {
	__u8 what;
	__u8 sub;
	__u16 site; /* id in the records */
	__u32 ret;  /* offset from the stack pointer to the return address at the probe point, in bytes; ~0: unknown */
	struct probe_arg args[PROBE_ARGS];
	__u64 stepped; /* 1: each hit is single-stepped */
};

#define PROBE_MAX 8192 /* sites of one recording */

#endif
