/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What a frame of a stream typically is: rolling medians over its last 120 frames, of its duration, of each cause,
 * and of what the threads it waited for did meanwhile. Formulas: docs/attribution.md.
 */
#ifndef REDFRAME_BASELINE_H
#define REDFRAME_BASELINE_H

#include "because.h"

#define BASELINE_FRAMES 120u
#define BASELINE_WARM   30u  /* frames before medians are believed */
#define BASELINE_FIRST  5u   /* frames before an automatic budget is made */
#define BASELINE_KEYS   256u /* threads and causes told apart, the most recent ones */

struct baseline_key;
struct baseline {
	u32 n, head; /* frames in the ring; where the next goes */
	u64 seq;     /* frames ever */
	u64 total[BASELINE_FRAMES];
	bool normal[BASELINE_FRAMES];
	u64 causes[BASELINE_FRAMES][CAUSE_COUNT];
	u64 alloc_calls[BASELINE_FRAMES];
	u64 sorted[BASELINE_FRAMES]; /* all of total, in order */
	struct baseline_key **keys;  /* hash table */
};

struct baseline *baseline__new(void);
void baseline__free(struct baseline *b);
/* 1.5 × the median of the last 120 frames, and at least 2 ms over it; 0 until there are 5 */
u64 baseline__auto_budget(const struct baseline *b);
/* whether there are frames enough to say what is typical */
bool baseline__warm(const struct baseline *b);
u64 baseline__typical(const struct baseline *b); /* median duration of normal frames; 0 while not warm */
u64 baseline__alloc_calls(const struct baseline *b);
/* Sets excess in every node of the tree: of those of the frame itself, the excesses of one cause sum to the time of
 * the cause minus its median. Not warm: the budget is what is typical. */
void baseline__excess(const struct baseline *b, struct tree *tree, u64 budget_ns);
/* Adds a frame; normal: neither slow nor with records lost. 0 or -ENOMEM. */
int baseline__push(struct baseline *b, const struct tree *tree, bool normal);

#endif
