/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A short count of how often candidate sites are hit by one process, to choose among them.
 */
#ifndef REDFRAME_TRIAL_H
#define REDFRAME_TRIAL_H

#include "sites.h"

#define TRIAL_MAX 24

struct trial {
	u32 tgid;
	int map; /* one u64 per candidate */
	int n;
	int progs[TRIAL_MAX];
	int events[64];
	int n_events;
};

int trial__open(struct trial *t, u32 tgid); /* 0 or -errno */
/* Counts hits of all the sites of l as one candidate. Returns its index or -errno. */
int trial__add(struct trial *t, const struct site_list *l);
u64 trial__count(const struct trial *t, int candidate);
void trial__close(struct trial *t);

#endif
