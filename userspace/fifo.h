/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Things of one size in the order in which they end; the oldest are dropped from the front. No allocation per push
 * once it has grown to what the longest open frame needs.
 */
#ifndef REDFRAME_FIFO_H
#define REDFRAME_FIFO_H

#include "common.h"

#define TIME_OPEN (~0ULL) /* the end of what has not ended yet */

struct fifo {
	char *buf;
	u32 first, n, cap; /* in elements: buf[first … first + n) */
	u16 size;          /* of an element */
	u16 end;           /* offset of the u64 that says when it is over, ns */
};

#define FIFO(type, field) ((struct fifo){.size = sizeof(type), .end = offsetof(type, field)})

static inline void *fifo__at(const struct fifo *f, u32 i)
{
	return f->buf + (size_t)(f->first + i) * f->size;
}

static inline u64 fifo__end(const struct fifo *f, u32 i)
{
	return *(const u64 *)((const char *)fifo__at(f, i) + f->end);
}

static inline void *fifo__last(const struct fifo *f)
{
	return f->n ? fifo__at(f, f->n - 1) : NULL;
}

/* Room for one more at the back, not cleared; NULL when out of memory. What ended at or before `horizon` may be
 * dropped to make room. *bytes is kept up to date with what is allocated. */
void *fifo__push(struct fifo *f, u64 horizon, size_t *bytes);
/* Moves the last element to where its end belongs. False if that is further back than a late record may be: it is
 * removed then. */
bool fifo__settle(struct fifo *f);
/* index of the first that ends after t; n where none does */
u32 fifo__after(const struct fifo *f, u64 t);
/* drops what ended at or before horizon, and gives memory back where much is unused */
void fifo__trim(struct fifo *f, u64 horizon, size_t *bytes);
void fifo__free(struct fifo *f, size_t *bytes);

#endif
