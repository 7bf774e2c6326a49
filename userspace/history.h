/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The last records of a stream without an end, in memory of a fixed size: what comes before a slow frame, which is
 * known to be slow only afterwards.
 */
#ifndef REDFRAME_HISTORY_H
#define REDFRAME_HISTORY_H

#include "common.h"

struct history {
	char *ring;
	size_t size;
	u64 head, tail; /* bytes ever taken out and put in */
	u64 cut;        /* ts of the last record that left for lack of room; 0: none did */
	/* takes each record as it leaves: 0 or -errno */
	int (*leave)(void *arg, const struct ev_hdr *rec);
	void *arg;
};

/* 0 or -ENOMEM; size is a multiple of 8, and many times EV_MAX_BYTES */
int history__init(struct history *h, size_t size, int (*leave)(void *arg, const struct ev_hdr *rec), void *arg);
void history__free(struct history *h);
/* In order of time. Where there is no room the oldest leave. 0 or -errno of leave. */
int history__push(struct history *h, const struct ev_hdr *rec);
/* Records before ts leave. 0 or -errno of leave. */
int history__trim(struct history *h, u64 ts);
/* ts of the oldest; ~0 where there is none */
u64 history__oldest(const struct history *h);
/* Walks from the oldest: *at is 0 at first. NULL at the end. */
const struct ev_hdr *history__next(const struct history *h, u64 *at);

#endif
