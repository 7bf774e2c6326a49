/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Runs and what they measured, in SQLite or a PostgreSQL server: docs/store.md has the tables.
 *
 * Rows are only ever inserted, under keys that the writer makes (run id, block number, …), and a key that is there
 * already is left alone: whatever is sent twice is there once. Statistics are kept in blocks, some seconds of one
 * scene; a run's figures are sums over its blocks, made by the database.
 *
 * A writer hardly calls this itself: ledger.h makes the rows from verdicts. Texts may be NULL or any bytes; what is no
 * UTF-8 is mended. Every verb: 0 or -errno; on PostgreSQL 0 means that the row is safe here, and will be sent.
 */
#ifndef REDFRAME_STORE_H
#define REDFRAME_STORE_H

#include "bucket.h"
#include "common.h"

#define STORE_DEFAULT "runs.db"
#define RUN_ID_SIZE   37 /* "1b4e28ba-2fa1-41d2-883f-b7d1a2c3e4f5" with its NUL */

struct store;

/* "FILE.db" (made where it is missing), "postgresql://…". Says what is wrong. What an earlier writer could not send to
 * this server is sent first. */
int store__open(const char *uri, struct store **out);
/* for reports, compare, history: a file that is not there is an error */
int store__open_read(const char *uri, struct store **out);
/* Commits what is open, and sends it. NULL is fine. -EAGAIN: the server is away, the rest is safe in store__spool. */
int store__close(struct store *s);
/* Makes what was inserted so far durable; on PostgreSQL also sends it, or tries again later. Cheap where there is
 * nothing to do: call it each second. */
int store__flush(struct store *s);
/* rows that the server does not have yet; 0 for SQLite */
u64 store__unsent(const struct store *s);
const char *store__spool(const struct store *s); /* the file they are in; NULL for SQLite */

/* a random UUID, or the one made of these 16 bytes */
void run_id__new(char id[RUN_ID_SIZE]);
void run_id__of(char id[RUN_ID_SIZE], const u64 uuid[2]);

/* ---- writing ---- */

struct store_run {
	s64 started_ms;   /* UNIX time */
	const char *kind; /* "soak", "recording" */
	const char *game; /* its name */
	const char *path; /* the directory of kept recordings, or the recording; NULL */
};
int store__add_run(struct store *s, const char *run, const struct store_run *r);
/* What the user said (--meta) has keys "meta.…"; what must be equal for runs to be compared "device.…" and
 * "option.…"; all else is for people. */
int store__add_meta(struct store *s, const char *run, const char *key, const char *value);

struct store_cause {
	u64 ns;        /* of all frames' time */
	u64 hitches;   /* slow frames whose main cause it is */
	u64 excess_ns; /* of slow frames */
};
struct store_block {
	u64 block; /* 0, 1, … in the run */
	const char *scene;
	bool warm_up;                   /* at a scene's beginning: not compared */
	u64 start_ms, dur_ns;           /* since the run started; the sum of its frames */
	u64 frames, slow, unsure, lost; /* unsure: slow, and records were lost in it; lost: records */
	u64 p50_ns, p99_ns, max_ns;     /* for plots: percentiles of several blocks come from counts */
	u64 over_budget_ns, cold_bytes, allocs, alloc_bytes, faults;
	struct store_cause causes[CAUSE_COUNT];
	const u32 *counts; /* BUCKETS frame counts by duration: bucket.h; zeroes are not stored */
};
int store__add_block(struct store *s, const char *run, const struct store_block *b);

/* A kind of hitch. Equal in every run and build: cause, thing and thread (sentence__fingerprint). */
struct store_fingerprint {
	u64 key;
	enum cause cause;
	const char *text; /* without figures */
	const char *what, *who, *where;
};
int store__add_fingerprint(struct store *s, const char *run, const struct store_fingerprint *f);
/* the hitches of one kind in one block */
struct store_hitches {
	u64 block, fingerprint, count, excess_ns;
	u64 worst_ns, worst_frame, worst_ms; /* the longest frame: duration, number, when since the run's start */
	const char *sentence;                /* its explanation */
	const char *trace;                   /* the kept recording it is in; NULL */
};
int store__add_hitches(struct store *s, const char *run, const struct store_hitches *h);

struct store_memory {
	u64 at_ms; /* since the run started */
	const char *scene;
	u64 rss, heap, mapped; /* bytes; 0: not measured */
	u64 mappings;
};
int store__add_memory(struct store *s, const char *run, const struct store_memory *m);
/* at the end: "lost.sched", "kept.dropped", … */
int store__add_counter(struct store *s, const char *run, const char *name, u64 value);
/* something said of the run, with its place in time: "the game ended and was followed anew" */
int store__add_note(struct store *s, const char *run, u64 number, u64 at_ms, const char *text);
/* a test case: one limit in one scene; scene "" is the whole run */
struct store_check {
	const char *scene, *name, *limit; /* "frame", "frame=33 ms" */
	bool failed;
	const char *text; /* what was found */
};
int store__add_check(struct store *s, const char *run, const struct store_check *c);
/* Once, last. status: enum exit_status; reason: why it was not measured or failed, NULL for EXIT_OK. A run without an
 * end is one that was killed, or goes on. */
int store__add_end(struct store *s, const char *run, s64 ended_ms, int status, const char *reason);

#endif
