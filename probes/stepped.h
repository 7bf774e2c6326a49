/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Where the kernel emulates no instruction of a function's entry, every call of it is single-stepped, which costs the
 * game 14 us: only what is called rarely gets such a probe by itself.
 */
#ifndef REDFRAME_STEPPED_H
#define REDFRAME_STEPPED_H

#include "sites.h"

#define STEPPED_CALLS_PER_SEC 1000 /* 1.4 % of one CPU */
#define STEPPED_WINDOW_NS     (500 * NSEC_PER_MSEC)
#define STEPPED_WINDOWS       5 /* above it in so many in a row, 2 s at least: not the burst of a moment */

/* How often a site is called while it is recorded. */
struct stepped_rate {
	u64 begin, calls;  /* of the window */
	u64 calls_per_sec; /* in the last one that was whole */
	u32 hot;           /* windows in a row that were above the limit */
};

bool stepped__any(const struct site_list *l);
/* Counts the calls of each stepped site for a moment, and takes out those that are called more often than that or
 * cannot be counted; `why` names them. */
void stepped__drop_hot(struct site_list *l, u32 tgid, char *why, size_t why_size);
/* At ts `calls` have been counted since it began: whether there have been too many for too long. */
bool stepped_rate__look(struct stepped_rate *r, u64 ts, u64 calls);
/* Only says what the stepped sites from `first` on cost, by the calls of a moment: for what the user named. */
void stepped__tell_cost(struct site_list *l, int first, u32 tgid, char *why, size_t why_size);

#endif
