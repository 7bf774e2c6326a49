/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Where the kernel keeps a register in struct pt_regs, as byte offsets, by the machine of the ELF file.
 */
#ifndef REDFRAME_REGS_H
#define REDFRAME_REGS_H

#include "common.h"
#include "probe_desc.h"

#define REG_NONE 0xffff

/* By its assembler name without '%': "rdi", "al", "ah" (its own byte), "r10d", "x3", "w3", "sp". *bytes: how wide. */
u16 reg__offset(u16 machine, const char *name, size_t len, int *bytes);
/* The i-th integer argument (0..5) of the C calling convention; REG_NONE where it is not in a register. */
u16 reg__argument(u16 machine, int i);

#endif
