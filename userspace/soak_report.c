// SPDX-License-Identifier: GPL-2.0-only
/* What can be said of a run that still goes on, or of one that has ended. */
#include <stdio.h>

#include "log.h"
#include "soak_run.h"

void soak__report(struct soak *k)
{
	const struct engine_stats *s = engine__stats(k->engine);

	ledger__tend(k->ledger, ~0ULL);
	store__flush(k->store);
	log_info("%llu frames, %llu slow, so far; run %s", (unsigned long long)s->frames, (unsigned long long)s->slow,
		k->run);
}
