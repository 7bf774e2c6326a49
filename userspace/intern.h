/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Texts that records of the history refer to, once each. Bounded: when full, everything new is one text that says so.
 */
#ifndef REDFRAME_INTERN_H
#define REDFRAME_INTERN_H

#include "common.h"

#define INTERN_MAX_TEXTS 32768u
#define INTERN_MAX_BYTES (4u << 20)

struct intern {
	char **texts; /* [id]; texts[0] is unused */
	u32 *slots;   /* hash table of ids */
	u32 n, cap, n_slots;
	size_t bytes;
};

/* the id of a text, never 0; 0 when out of memory. Cut at 1024 bytes. */
u32 intern__id(struct intern *in, const char *text);
/* NULL for id 0 or one that was never given out */
const char *intern__text(const struct intern *in, u32 id);
void intern__free(struct intern *in);
u64 hash64(u64 x);
u64 hash_bytes(const void *p, size_t n);

#endif
