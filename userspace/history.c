/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "history.h"

int history__init(struct history *h, size_t size, int (*leave)(void *arg, const struct ev_hdr *rec), void *arg)
{
	*h = (struct history){.ring = malloc(size), .size = size, .leave = leave, .arg = arg};
	if (!h->ring)
		return -ENOMEM;
	memset(h->ring, 0xff, size); /* what it takes it takes now */
	return 0;
}

void history__free(struct history *h)
{
	free(h->ring);
	h->ring = NULL;
}

/* A record never wraps: what is left of the ring before it is one of no length, or too short for a header. */
static u64 skip(const struct history *h, u64 at)
{
	size_t rest = h->size - at % h->size;

	if (rest < sizeof(struct ev_hdr) || !((const struct ev_hdr *)(h->ring + at % h->size))->words)
		return at + rest;
	return at;
}

static const struct ev_hdr *record_at(const struct history *h, u64 *at)
{
	if (*at >= h->tail)
		return NULL;
	*at = skip(h, *at);
	return *at < h->tail ? (const struct ev_hdr *)(h->ring + *at % h->size) : NULL;
}

static int drop_oldest(struct history *h)
{
	const struct ev_hdr *rec = record_at(h, &h->head);

	if (!rec)
		return 0;
	h->head += rec->words * 8u;
	return h->leave(h->arg, rec);
}

static int make_room(struct history *h, size_t bytes)
{
	const struct ev_hdr *rec;
	int err = 0;

	while (!err && h->tail + bytes - h->head > h->size) {
		rec = record_at(h, &h->head);
		h->cut = rec ? rec->ts : h->cut;
		err = drop_oldest(h);
	}
	return err;
}

int history__push(struct history *h, const struct ev_hdr *rec)
{
	size_t bytes = rec->words * 8u, rest = h->size - h->tail % h->size;
	int err = 0;

	if (rest < bytes) {
		err = make_room(h, rest);
		if (rest >= sizeof(*rec))
			memset(h->ring + h->tail % h->size, 0, sizeof(*rec));
		h->tail += rest;
	}
	if (!err)
		err = make_room(h, bytes);
	if (err)
		return err;
	memcpy(h->ring + h->tail % h->size, rec, bytes);
	h->tail += bytes;
	return 0;
}

int history__trim(struct history *h, u64 ts)
{
	const struct ev_hdr *rec;
	int err = 0;

	while (!err && (rec = record_at(h, &h->head)) && rec->ts < ts)
		err = drop_oldest(h);
	return err;
}

u64 history__oldest(const struct history *h)
{
	u64 at = h->head;
	const struct ev_hdr *rec = record_at(h, &at);

	return rec ? rec->ts : ~0ULL;
}

const struct ev_hdr *history__next(const struct history *h, u64 *at)
{
	const struct ev_hdr *rec;

	*at = max(*at, h->head);
	rec = record_at(h, at);
	if (rec)
		*at += rec->words * 8u;
	return rec;
}
