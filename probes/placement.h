/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Where in a function a probe goes. The kernel emulates a few instructions at a uprobe (push, nop, jcc, jmp, call:
 * about 0.45 µs a hit) and single-steps all others (about 14 µs), and the first byte of a function is rarely one of the
 * few. So the straight-line entry is decoded for the first such instruction at which
 *   - every needed argument is still in a register: its own, or one that it was copied to,
 *   - control arrives exactly once per call: nothing branched away before it, and no branch of the function, of its
 *     out-of-line parts or of the code around it leads to an instruction after the entry up to and including it,
 *   - the distance from the stack pointer to the return address is known.
 */
#ifndef REDFRAME_PLACEMENT_H
#define REDFRAME_PLACEMENT_H

#include "elf_file.h"

#define PLACEMENT_REACH  64         /* bytes from the entry: further than this is no longer "at the call" */
#define PLACEMENT_MAX    (1u << 20) /* bytes of a function that are searched for branches back to its entry */
#define PLACEMENT_NO_RET (~0u)
#define PLACEMENT_ARGS   6 /* integer arguments in registers */

struct placement {
	u32 offset;              /* bytes from the function's entry */
	bool stepped;            /* no such place: byte 0, where every hit is single-stepped */
	u32 ret;                 /* offset from the stack pointer to the return address, at the probe */
	u16 reg[PLACEMENT_ARGS]; /* where each argument is, as its register's offset in struct pt_regs; REG_NONE: lost
				  */
};

#define ARG_BIT(i) (1u << (i)) /* the i-th integer argument (0..5) must still be in a register */

/* code holds the function's first size bytes (all of it, or it is cut at PLACEMENT_MAX); outside() reads bytes
 * elsewhere in the file, for parts that the compiler moved out of line (NULL: those are not looked at). */
struct placement_code {
	u16 machine;
	const u8 *code;
	size_t size;
	bool whole; /* size is the symbol's: the function ends there */
	u64 vaddr;
	size_t (*outside)(void *arg, u64 vaddr, void *buf, size_t n);
	void *arg;
};

struct placement placement__choose(const struct placement_code *c, u32 need);
/* The same for a place that is given: ret is PLACEMENT_NO_RET unless control comes straight from the entry; *live tells
 * which arguments are still in their registers there. */
struct placement placement__at(const struct placement_code *c, u32 offset, u32 *live);
/* Whether the kernel emulates the instruction at code. */
bool placement__emulated(u16 machine, const u8 *code, size_t size);
/* Whether `offset` is within an instruction of the function whose code this is, not at its beginning: a probe there
 * would make it another instruction. False also where that cannot be told. */
bool placement__splits(u16 machine, const u8 *code, size_t size, size_t offset);
/* Reads the function from the file and chooses. */
int placement__of_symbol(struct elf_file *e, const struct elf_symbol *s, u32 need, struct placement *out);

#endif
