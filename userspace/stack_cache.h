/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The copied stacks of the last moments, in memory of a fixed size, until it is known whether the frame is kept that
 * they belong to. When there is no room the oldest go.
 */
#ifndef REDFRAME_STACK_CACHE_H
#define REDFRAME_STACK_CACHE_H

#include "common.h"
#include "stack.h"

#define STACK_CACHE_SLOTS 8192u /* a power of two */

struct stack_slot {
	u64 ts, at; /* of the copy: bytes ever put in before it */
	u32 tid, bytes;
};

struct stack_cache {
	char *ring;
	size_t size;
	u64 tail; /* bytes ever put in */
	struct stack_slot slots[STACK_CACHE_SLOTS];
};

int stack_cache__init(struct stack_cache *c, size_t size); /* 0 or -ENOMEM */
void stack_cache__free(struct stack_cache *c);
void stack_cache__put(struct stack_cache *c, const struct stack_copy *copy, size_t size);
/* The copy that belongs to a STACK record; NULL: it is there no more. *size is its length. */
const struct stack_copy *stack_cache__get(const struct stack_cache *c, const struct ev_stack *rec, size_t *size);

#endif
