/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdlib.h>
#include <string.h>

#include "fifo.h"

#define FIFO_FIRST_CAP 8u
#define FIFO_LATE      64 /* places that a late record may move forward */

static int resize(struct fifo *f, u32 cap, size_t *bytes)
{
	char *buf;

	if (f->n) /* to the front, so that realloc need not hold it twice */
		memmove(f->buf, fifo__at(f, 0), (size_t)f->n * f->size);
	f->first = 0;
	buf = realloc(f->buf, (size_t)cap * f->size);
	if (!buf)
		return -1;
	*bytes += (size_t)cap * f->size;
	*bytes -= (size_t)f->cap * f->size;
	f->buf = buf;
	f->cap = cap;
	return 0;
}

static void drop_old(struct fifo *f, u64 horizon)
{
	u32 old = horizon ? fifo__after(f, horizon) : 0;

	f->first += old;
	f->n -= old;
}

static int make_room(struct fifo *f, u64 horizon, size_t *bytes)
{
	drop_old(f, horizon);
	if (f->n <= f->cap / 2 && f->cap) {
		memmove(f->buf, fifo__at(f, 0), (size_t)f->n * f->size);
		f->first = 0;
		return 0;
	}
	if (f->cap > UINT32_MAX / 4)
		return -1;
	return resize(f, max(f->cap * 2, FIFO_FIRST_CAP), bytes);
}

void *fifo__push(struct fifo *f, u64 horizon, size_t *bytes)
{
	if (f->first + f->n == f->cap && make_room(f, horizon, bytes))
		return NULL;
	return fifo__at(f, f->n++);
}

bool fifo__settle(struct fifo *f)
{
	u32 i = f->n - 1, moved = 0;
	u64 end = fifo__end(f, i);
	char tmp[256];

	if (!i || fifo__end(f, i - 1) <= end)
		return true;
	while (i && fifo__end(f, i - 1) > end && ++moved <= FIFO_LATE)
		i--;
	if (moved > FIFO_LATE) {
		f->n--;
		return false;
	}
	memcpy(tmp, fifo__at(f, f->n - 1), f->size);
	memmove(fifo__at(f, i + 1), fifo__at(f, i), (size_t)(f->n - 1 - i) * f->size);
	memcpy(fifo__at(f, i), tmp, f->size);
	return true;
}

u32 fifo__after(const struct fifo *f, u64 t)
{
	u32 lo = 0, hi = f->n;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (fifo__end(f, mid) > t)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

void fifo__trim(struct fifo *f, u64 horizon, size_t *bytes)
{
	drop_old(f, horizon);
	if (!f->n)
		fifo__free(f, bytes);
	else if (f->cap / 4 > f->n && f->cap > FIFO_FIRST_CAP)
		resize(f, max(f->n * 2, FIFO_FIRST_CAP), bytes);
}

void fifo__free(struct fifo *f, size_t *bytes)
{
	free(f->buf);
	*bytes -= (size_t)f->cap * f->size;
	f->buf = NULL;
	f->first = f->n = f->cap = 0;
}
