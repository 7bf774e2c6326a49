/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What `explain --json` says of a recording of examples/hitches, against the truth in the game's own log.
 */
#ifndef REDFRAME_LIVE_JUDGE_H
#define REDFRAME_LIVE_JUDGE_H

#include <stdbool.h>
#include <stdio.h>

#define JUDGE_KINDS 16

/* The cause is first, and the chain reaches the truth, with its names; its time is within 1 ms or 10 % of the log's.
 *
 * Other processes may take the CPU while a hitch goes on, and that is true as well: rows that say so are passed over,
 * and the time that they took may be missing from the hitch, or be what made a wait for a thread longer. How many were
 * judged so is counted: on a quiet machine, none. */
struct judged {
	char kind[16];
	int hitches, right;
	int hidden;      /* the frame was not slow, for the hitch was over before it began: not judged */
	int disturbed;   /* of right: with time that others took */
	int where;       /* of right: the function was told, and is the right one */
	double worst_ms; /* of right: the largest difference in time */
};

struct judgement {
	struct judged kinds[JUDGE_KINDS];
	int n_kinds;
	struct judged all;
	bool busy; /* others want every CPU all the time: more than the one that the log knows have it */
	int slow_frames, intended; /* slow frames in all; those that the log has a hitch for */
};

/* log: JSON lines; explained: explain --json; both are changed. Each miss is told on `out`. 0, or -EINVAL: malformed.
 */
int judge__hitches(struct judgement *j, char *log, char *explained, bool busy, FILE *out);
void judge__print(const struct judgement *j, FILE *out);

#endif
