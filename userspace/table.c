/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

#define CHUNK_BYTES (32u << 10)
#define TABLE_MAX   (1u << 28)

struct pool_chunk {
	struct pool_chunk *next;
	size_t used, size;
	char bytes[];
};

/* finalizer of MurmurHash3: every input bit reaches every output bit */
static u64 mix(u64 x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	return x ^ x >> 33;
}

static u32 slot_of(const struct table *t, struct key key)
{
	u32 i = (u32)mix(key.a ^ mix(key.b)) & (t->n_slots - 1);

	while (t->slots[i]) {
		const struct table_entry *e = &t->entries[t->slots[i] - 1];

		if (e->key.a == key.a && e->key.b == key.b)
			break;
		i = (i + 1) & (t->n_slots - 1);
	}
	return i;
}

void table__free(struct table *t)
{
	free(t->entries);
	free(t->slots);
	*t = (struct table){0};
}

void *table__get(const struct table *t, struct key key)
{
	u32 at;

	if (!t->n)
		return NULL;
	at = t->slots[slot_of(t, key)];
	return at ? t->entries[at - 1].value : NULL;
}

/* twice the room, at most half full */
static int grow(struct table *t)
{
	u32 cap = t->cap ? 2 * t->cap : 16, i;
	struct table_entry *entries;
	u32 *slots;

	if (cap > TABLE_MAX)
		return -ENOMEM;
	entries = realloc(t->entries, cap * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	t->entries = entries;
	slots = calloc(2 * (size_t)cap, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->n_slots = 2 * cap;
	t->cap = cap;
	for (i = 0; i < t->n; i++)
		t->slots[slot_of(t, t->entries[i].key)] = i + 1;
	return 0;
}

int table__put(struct table *t, struct key key, void *value)
{
	u32 slot;

	if (t->n == t->cap && grow(t))
		return -ENOMEM;
	slot = slot_of(t, key);
	if (!t->slots[slot]) {
		t->entries[t->n].key = key;
		t->slots[slot] = ++t->n;
	}
	t->entries[t->slots[slot] - 1].value = value;
	return 0;
}

struct key key__of(const char *bytes, size_t n)
{
	struct key k = {0xcbf29ce484222325ULL, n};
	size_t i;

	for (i = 0; i < n; i++) {
		k.a = (k.a ^ (unsigned char)bytes[i]) * 0x100000001b3ULL;
		k.b = mix(k.b ^ k.a);
	}
	return k;
}

void pool__free(struct pool *p)
{
	struct pool_chunk *c, *next;

	for (c = p->chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	table__free(&p->known);
	p->chunks = NULL;
	p->bytes = 0;
}

static char *room(struct pool *p, size_t n)
{
	struct pool_chunk *c = p->chunks;
	char *at;

	if (!c || c->size - c->used < n) {
		size_t size = max(n, (size_t)CHUNK_BYTES);

		c = malloc(sizeof(*c) + size);
		if (!c)
			return NULL;
		*c = (struct pool_chunk){.next = p->chunks, .size = size};
		p->chunks = c;
	}
	at = c->bytes + c->used;
	c->used += n;
	return at;
}

const char *pool__intern(struct pool *p, const char *bytes, size_t n)
{
	struct key key = key__of(bytes, n);
	char *s = table__get(&p->known, key);

	if (s)
		return s;
	s = room(p, n + 1);
	if (!s)
		return NULL;
	if (n)
		memcpy(s, bytes, n);
	s[n] = '\0';
	p->bytes += n + 1;
	return table__put(&p->known, key, s) ? NULL : s;
}
