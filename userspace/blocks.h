/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Sampled blocks that are not freed yet, by address.
 */
#ifndef REDFRAME_BLOCKS_H
#define REDFRAME_BLOCKS_H

#include "common.h"

#define BLOCKS_SLOTS 65536u /* a power of two */
#define BLOCKS_MAX   (BLOCKS_SLOTS / 4 * 3)

struct block {
	u64 addr; /* 0: none */
	u64 caller;
	u64 bytes; /* that it stands for */
};

struct blocks {
	struct block slots[BLOCKS_SLOTS]; /* open addressing */
	u32 n;
};

/* One at the same address is replaced: its free was not seen. False: there is no room. */
bool blocks__add(struct blocks *b, const struct block *block);
/* Takes it out; false where there is none. */
bool blocks__take(struct blocks *b, u64 addr, struct block *out);

#endif
