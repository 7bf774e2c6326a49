/* SPDX-License-Identifier: GPL-2.0-only
 *
 * One run of soak: shared by soak.c (live), soak_replay.c (a recording in place of a game), soak_told.c (what the
 * engine tells), soak_leaks.c, soak_report.c and soak_end.c.
 */
#ifndef REDFRAME_SOAK_RUN_H
#define REDFRAME_SOAK_RUN_H

#include <stdarg.h>

#include "engine.h"
#include "growth.h"
#include "ledger.h"
#include "output.h"
#include "session.h"
#include "soak.h"
#include "soak_control.h"
#include "soak_limits.h"

struct soak {
	const struct soak_options *o;
	struct session s;
	struct record_options next; /* with which the game is found again */
	struct engine *engine;
	struct store *store;
	struct ledger *ledger;
	struct control control;
	struct growth growth;
	char run[RUN_ID_SIZE], dir[2048], name[64];
	u64 start, stop;    /* BOOTTIME */
	u64 away_since;     /* the game has ended, and is waited for; 0: it runs */
	u64 second, looked; /* when that was last done */
	u64 gap;            /* between the clocks */
	u32 shed_level;
	u64 shed_changed;
	u64 marks, records, lost, suspended, crashes, cpu_ns, watched_ns, rss_max;
	struct soak_limits limits;
	struct str names; /* records of the recording that is replayed: in a child that has read them */
	bool described, made_dir;
	int err;
	char reason[512];
};

/* Opens the store and the engine. enum exit_status. */
int soak__begin(struct soak *k, const char *game, s64 started_ms, u64 start_ns);
/* Said to the user, and in the store with its time. */
void soak__note(struct soak *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Appends names to a segment, in a child: engine_options.name; arg is a struct soak. 0 or -errno. */
int soak__name_segment(void *arg, struct recording_writer *w, struct stacks *stacks);
/* Notes them; while the model of the game's life is there. */
void soak__suspect_leaks(struct soak *k);
/* Everything to its end: enum exit_status. */
int soak__end(struct soak *k);
/* --replay. enum exit_status. */
int soak__replay(struct soak *k);
/* Names from the recording that is replayed, into a segment of it: in a child. 0 or -errno. */
int soak__copy_names(struct soak *k, struct recording_writer *w);
/* The files that the user asked for, as of now. */
void soak__report(struct soak *k);

#endif
