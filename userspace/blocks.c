/* SPDX-License-Identifier: GPL-2.0-only */
#include "blocks.h"
#include "intern.h"

static u32 home_of(u64 addr)
{
	return (u32)hash64(addr) & (BLOCKS_SLOTS - 1);
}

/* where it is, or the free slot where it would be */
static u32 slot_of(const struct blocks *b, u64 addr)
{
	u32 i = home_of(addr);

	while (b->slots[i].addr && b->slots[i].addr != addr)
		i = (i + 1) & (BLOCKS_SLOTS - 1);
	return i;
}

bool blocks__add(struct blocks *b, const struct block *block)
{
	struct block *slot = &b->slots[slot_of(b, block->addr)];

	if (!slot->addr && b->n == BLOCKS_MAX)
		return false;
	b->n += !slot->addr;
	*slot = *block;
	return true;
}

/* What stands behind the hole and was put there for lack of room moves up, so that every search ends rightly. */
bool blocks__take(struct blocks *b, u64 addr, struct block *out)
{
	u32 hole = slot_of(b, addr);

	if (!addr || !b->slots[hole].addr)
		return false;
	*out = b->slots[hole];
	for (u32 i = (hole + 1) & (BLOCKS_SLOTS - 1); b->slots[i].addr; i = (i + 1) & (BLOCKS_SLOTS - 1)) {
		u32 home = home_of(b->slots[i].addr);

		if (((i - home) & (BLOCKS_SLOTS - 1)) < ((i - hole) & (BLOCKS_SLOTS - 1)))
			continue;
		b->slots[hole] = b->slots[i];
		hole = i;
	}
	b->slots[hole] = (struct block){};
	b->n--;
	return true;
}
