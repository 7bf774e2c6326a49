/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Which code allocates how much: exactly of large blocks, each of which is recorded with its call chain; of the small
 * ones estimated from those that were sampled.
 */
#ifndef REDFRAME_ALLOC_SITES_H
#define REDFRAME_ALLOC_SITES_H

#include "intern.h"
#include "model.h"

struct alloc_site {
	const char *where; /* "ParseMesh"; valid UTF-8 */
	u64 bytes;         /* of samples what they stand for */
	u64 samples, large;
};

struct alloc_sites {
	struct intern names;
	struct alloc_site *v; /* by id of the name less 1 */
	struct alloc_site *sorted;
	u32 n, cap;
	u64 samples, bytes; /* of all */
	u64 period;         /* bytes from sample to sample, on average; 0: none was taken */
};

/* How many bytes of small allocations a sampled one stands for. A block of that size is sampled with the probability
 * 1 - exp(-size / period), whatever came before it, so each one that is stands for size over that. */
u64 alloc_sample__bytes(const struct ev_alloc_sample *e);
/* The game's function that allocated, by the chain, else by the caller; words that say so where it has no name. */
void alloc__where(const struct model *m, u32 chain, u64 caller, u64 ts, char *buf, size_t size);

/* After model__event. 0 or -ENOMEM. */
int alloc_sites__event(struct alloc_sites *a, const struct model *m, const struct ev_hdr *rec);
/* most bytes first; valid until the next call. NULL and none where there is none, or no memory. */
const struct alloc_site *alloc_sites__list(struct alloc_sites *a, u32 *n);
void alloc_sites__free(struct alloc_sites *a);

#endif
