/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Did it get worse? Two sets of runs, scene by scene and metric by metric. docs/store.md has the formulas.
 */
#ifndef REDFRAME_COMPARE_H
#define REDFRAME_COMPARE_H

#include <stdio.h>

#include "run_set.h"

/* ---- compare_stat.c: numbers only ---- */

/* Consecutive blocks of one run in one scene: what is drawn again and again. */
struct group {
	int run; /* in its set */
	u64 frames, dur_ns, slow, cold_bytes, allocs;
	u64 cause_ns[CAUSE_COUNT], hitches[CAUSE_COUNT];
	u32 *counts; /* of frames, one for each of sample.buckets */
};
struct sample {
	struct group *groups; /* those of a run stand together */
	int n, runs;
	u64 rss[RUN_SET_MAX]; /* the peak of each run; 0: not measured */
};

enum metric_id {
	METRIC_P50,
	METRIC_P95,
	METRIC_P99,
	METRIC_LOW1,
	METRIC_HITCHES,
	METRIC_COLD,
	METRIC_ALLOCS,
	METRIC_MEMORY,
	METRIC_CAUSES, /* hitches per minute by cause: one for each */
	METRIC_COUNT = METRIC_CAUSES + CAUSE_COUNT
};

struct metric {
	bool measured;
	double base, new; /* ms, hitches per minute, bytes per frame, calls per frame, bytes */
	double low, high; /* 95 % confidence interval of new - base; both 0 for memory: it has none */
	double p;         /* that it is not worse, before the correction; memory: 1 */
	double needed;    /* what new - base must exceed to count */
	double noise;     /* of that: what runs of the base differ by; 0 where there is one run only */
	bool worse, better;
};

struct scene_stats {
	const u32 *buckets; /* numbers of those in use, ascending */
	int n_buckets;
	struct sample base, new;
	double threshold;
	struct metric metrics[METRIC_COUNT];
};
/* Fills metrics but for worse and better. 0 or -ENOMEM. */
int scene_stats__compute(struct scene_stats *s);
/* Sets worse and better, with all metrics of all scenes corrected for each other (Benjamini-Hochberg, 5 %). */
int scene_stats__decide(struct scene_stats **scenes, int n);

/* ---- compare.c ---- */

#define COMPARE_THRESHOLD 0.03 /* a smaller change is never worse, unless the user says otherwise */
#define COMPARE_BUSIER    10   /* percent of all CPU time: as much more for others may make a game slower */
#define COMPARE_BUSY      25   /* as much for others: what got worse by waiting for a CPU is theirs */

struct fingerprint_change {
	char *key, *cause, *text;
	u64 base, new;              /* hitches */
	double base_rate, new_rate; /* per minute */
	double base_ms, new_ms;     /* excess, per minute */
	u64 worst_ns;               /* in new, or in base where it is gone */
	enum { CHANGE_NONE, CHANGE_NEW, CHANGE_GONE, CHANGE_MORE, CHANGE_LESS } change;
	char first[96]; /* the build that had it first: of those that are new or more */
};
struct scene_comparison {
	char *name;
	const char *why_not; /* not measured; NULL: it is */
	struct scene_stats stats;
	u32 *buckets;
	u64 base_frames, new_frames, base_ns, new_ns;
	struct fingerprint_change *changes; /* by what they add, most first */
	int n_changes;
	char *answer; /* in one sentence; NULL: nothing got worse */
};
struct comparison {
	struct run_set base, new;
	char base_name[96], new_name[96];
	struct scene_comparison *scenes;
	int n_scenes;
	bool worse, better;
	double base_others,
		new_others;       /* percent of all CPU time that neither the game had nor nobody; below 0: not known */
	bool disturbed;           /* by others: says nothing of the build; docs/store.md has the rule */
	bool confirming, refuted; /* --confirm; what seemed worse was not so in that run */
};

struct compare_options {
	const char *scene; /* NULL: all */
	double threshold;
};
/* 0 or -errno */
int compare__run(struct store *s, const struct compare_options *o, struct comparison *c);
void compare__free(struct comparison *c);
/* what was worse stays so only where it is in `again` too */
void compare__confirm(struct comparison *c, const struct comparison *again);

/* compare_print.c */
extern const char *const metric_words[METRIC_CAUSES];                      /* "p50_ms", …, as in JSON */
const char *metric__label(enum metric_id id, char *buf, size_t size);      /* "p99", "file_read hitches" */
void metric__value(struct str *s, enum metric_id id, double v, bool sign); /* "+1.8 ms" */
void compare__text(struct str *s, const struct comparison *c);
void compare__markdown(struct str *s, const struct comparison *c);
void compare__json(struct str *s, const struct comparison *c);

#endif
