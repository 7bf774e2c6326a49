/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"
#include "stack_cache.h"

int stack_cache__init(struct stack_cache *c, size_t size)
{
	*c = (struct stack_cache){.ring = malloc(size), .size = size};
	if (!c->ring)
		return -ENOMEM;
	memset(c->ring, 0xff, size); /* what it takes it takes now */
	return 0;
}

void stack_cache__free(struct stack_cache *c)
{
	free(c->ring);
	c->ring = NULL;
}

static u32 slot_of(u64 ts, u32 tid)
{
	return (u32)hash64(ts ^ (u64)tid << 40) & (STACK_CACHE_SLOTS - 1);
}

void stack_cache__put(struct stack_cache *c, const struct stack_copy *copy, size_t size)
{
	size_t bytes = (sizeof(*copy) + copy->bytes + 7) & ~(size_t)7, rest = c->size - c->tail % c->size;

	if (copy->bytes > STACK_ROOM || sizeof(*copy) + copy->bytes > size || bytes > c->size)
		return;
	if (rest < bytes)
		c->tail += rest; /* a copy never wraps */
	memcpy(c->ring + c->tail % c->size, copy, sizeof(*copy) + copy->bytes);
	c->slots[slot_of(copy->rec.hdr.ts, copy->rec.hdr.tid)] = (struct stack_slot){
		.ts = copy->rec.hdr.ts, .at = c->tail, .tid = copy->rec.hdr.tid, .bytes = (u32)bytes};
	c->tail += bytes;
}

const struct stack_copy *stack_cache__get(const struct stack_cache *c, const struct ev_stack *rec, size_t *size)
{
	const struct stack_slot *s = &c->slots[slot_of(rec->hdr.ts, rec->hdr.tid)];

	if (!s->bytes || s->ts != rec->hdr.ts || s->tid != rec->hdr.tid || c->tail - s->at > c->size)
		return NULL;
	*size = s->bytes;
	return (const struct stack_copy *)(c->ring + s->at % c->size);
}
