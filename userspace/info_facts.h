/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What `redframe info` says of a recording, as text or as JSON.
 */
#ifndef REDFRAME_INFO_FACTS_H
#define REDFRAME_INFO_FACTS_H

#include "exporter.h"
#include "model.h"
#include "recording.h"
#include "strings.h"

/* An exporter that keeps what the model does not: redframe's own cost. */
struct look {
	struct exporter base;
	struct ev_cost cost; /* the last; kind 0: none */
	u64 ring_used_max, rss_max;
	struct ev_effect effect[CLASS_COUNT]; /* the last of each */
	u32 sheds;
};

/* page faults and system calls of processes that were not recorded, and what they cost those */
struct others {
	unsigned long long user_faults, kernel_faults, calls, ns;
};

struct facts {
	const struct recording *r;
	struct model *m;
	const struct look *look;
	u64 late;
};

void facts__json(struct str *s, const struct facts *f);
void facts__text(struct str *s, const struct facts *f);

/* What the session measured of itself, in the unit that the key ends in; 0 in a recording that does not have it. */
double facts__figure(const struct model *m, const char *key);
bool facts__others(const struct model *m, struct others *out); /* false: not in this recording */
const char *facts__severity(u32 severity);                     /* of a note */

#endif
