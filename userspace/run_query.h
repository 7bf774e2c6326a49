/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A run's figures, as the database sums them up.
 */
#ifndef REDFRAME_RUN_QUERY_H
#define REDFRAME_RUN_QUERY_H

#include "run_set.h"

/* upper bounds of the frame-time histogram: the budgets of common frame rates, and what is seen as a stutter */
#define RUN_BOUNDS 14
#define RUN_BOUNDS_NS                                                                                                  \
	{                                                                                                              \
		4000000, 6944444, 8333333, 11111111, 16666667, 20000000, 25000000, 33333333, 50000000, 66666667,       \
			100000000, 200000000, 500000000, 1000000000                                                    \
	}

struct run_scene {
	char *name;
	u64 frames, slow, unsure, lost, dur_ns, max_ns, p50_ns, p95_ns, p99_ns;
	u64 below[RUN_BOUNDS];            /* frames of at most so long, to 0.8 % */
	u64 warm_up_frames, warm_up_slow; /* beside them: counted, but in none of the figures */
	u64 over_budget_ns, cold_bytes, allocs, alloc_bytes, faults;
	u64 peak_rss, first_rss, last_rss; /* 0: not measured */
};
struct run_cause {
	char *scene, *cause;
	u64 total_ns, hitches, excess_ns;
};
struct run_hitch { /* one kind of hitch */
	char *key, *cause, *text, *scene, *sentence, *trace;
	u64 hitches, excess_ns, worst_ns, worst_frame, worst_ms, first_ms;
};
struct run_check {
	char *scene, *name, *limit, *found;
	bool failed;
};
struct run_column { /* of the plot over time */
	u64 start_ms, frames, p50_ns, p99_ns, max_ns;
	bool warm_up;
};
struct run_past {         /* an earlier run, or this one */
	char *id, *build; /* "" where it has no meta.build or meta.commit */
	u64 p50_ns, p99_ns;
};
struct run_pair {
	char *name, *value;
};

struct run_facts {
	char id[RUN_ID_SIZE];
	char *kind, *game, *path, *version, *reason;
	s64 started_ms, ended_ms;
	bool ended;
	int status;
	u64 frames;
	u64 without_cause; /* slow frames that were not explained: not kept, or not in time */
	struct run_scene *scenes;
	struct run_cause *causes;  /* by excess, largest first */
	struct run_hitch *hitches; /* the same */
	struct run_check *checks;
	struct run_column *columns;
	struct run_past *past; /* with equal game, device and options, this one last */
	struct run_pair *meta, *counters, *notes;
	int n_scenes, n_causes, n_hitches, n_checks, n_columns, n_past, n_meta, n_counters, n_notes;
};

/* -ENOENT: there is no such run; else 0 or -errno */
int run_facts__load(struct store *s, const char *run, struct run_facts *f);
void run_facts__free(struct run_facts *f);
/* "passed", "failed", "not measured", "unfinished" */
const char *run_facts__result(const struct run_facts *f);

#endif
