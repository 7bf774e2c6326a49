/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What the model is made of: a hash table that keeps the order of insertion and never removes, and a pool of strings,
 * each kept once.
 */
#ifndef REDFRAME_TABLE_H
#define REDFRAME_TABLE_H

#include "common.h"

struct key {
	u64 a, b;
};

struct table_entry {
	struct key key;
	void *value;
};

struct table {
	struct table_entry *entries; /* in order of insertion */
	u32 n, cap;
	u32 *slots; /* index + 1 into entries, 0: free; a power of two */
	u32 n_slots;
};

void table__free(struct table *t);                       /* the table, not the values */
void *table__get(const struct table *t, struct key key); /* NULL: not there */
/* Adds or replaces. value is not NULL. 0 or -ENOMEM. */
int table__put(struct table *t, struct key key, void *value);

struct pool_chunk;
struct pool {
	size_t bytes; /* of texts */
	struct pool_chunk *chunks;
	struct table known;
};

void pool__free(struct pool *p);
/* The same bytes, NUL-terminated (n does not count it), valid until pool__free; NULL when out of memory. */
const char *pool__intern(struct pool *p, const char *bytes, size_t n);
/* 128 bits of the bytes */
struct key key__of(const char *bytes, size_t n);

#endif
