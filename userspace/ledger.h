/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A run, summed up while it goes on: verdicts in, rows of the store out. Memory is fixed, whatever the run's length.
 *
 * soak feeds it from its live stream, ledger__import from a recording; both give the same rows.
 */
#ifndef REDFRAME_LEDGER_H
#define REDFRAME_LEDGER_H

#include "store.h"

struct verdict;
struct model;
struct ledger;

#define LEDGER_BLOCK_NS     (10 * NSEC_PER_SEC)
#define LEDGER_WARM_NS      (5 * NSEC_PER_SEC)
#define LEDGER_FINGERPRINTS 1024u /* told apart in a run; further ones are one kind, "other hitches" */

struct ledger_options {
	u64 block_ns;      /* 0: LEDGER_BLOCK_NS */
	u64 warm_ns;       /* of each visit to a scene: its frames are kept apart; 0: none are */
	bool no_warm;      /* frames outside of any named scene count from the first one on: the game ran before */
	bool hitches_told; /* kinds of hitches come by ledger__hitch, explained better than the stream can */
	u64 start_ns;      /* BOOTTIME at the run's start; 0: where its first frame begins */
};

/* The run is added to the store at once. NULL when out of memory or the store failed (errno). */
struct ledger *ledger__new(struct store *s, const char *run, const struct store_run *r, const struct ledger_options *o);
/* Every frame that is explained, slow or not. scene NULL: as the game says (frame.scene). trace: the kept recording
 * that has the frame; NULL. 0 or -errno. */
int ledger__verdict(
	struct ledger *l, const struct verdict *v, const struct model *m, const char *scene, const char *trace);
/* A slow frame whose explanation comes later than its verdict: it counts in the block in which the frame began, and 15
 * s later in the one that is open then. Texts may be NULL, but for text. 0 or -errno. */
struct ledger_hitch {
	u64 fingerprint; /* 0: nothing is known of it */
	enum cause cause;
	const char *text, *what, *who, *where; /* as in store_fingerprint */
	const char *sentence, *trace;
	s64 excess_ns;
	u64 start, end, number; /* of the frame */
};
int ledger__hitch(struct ledger *l, const struct ledger_hitch *h);
/* Writes the open block if it is old enough: call it now and then with the time (BOOTTIME), and with ~0 before a
 * report. */
int ledger__tend(struct ledger *l, u64 now_ns);
/* What the stream's INFO records say of machine, options and --meta, as the run's metadata: once they have come. */
int ledger__describe(struct ledger *l, const struct model *m);
int ledger__meta(struct ledger *l, const char *key, const char *value); /* as store__add_meta */
/* What the model has seen of the CPUs' time: once for each life of the game, when it has ended. */
void ledger__add_cpu_use(struct ledger *l, const struct model *m);
u64 ledger__frames(const struct ledger *l);
bool ledger__is_warm_up(const struct ledger *l); /* the last frame */
u64 ledger__measured(const struct ledger *l);    /* … of them that are no warm-up: the figures are of these */
int ledger__add_memory(struct ledger *l, u64 now_ns, u64 rss, u64 heap, u64 mapped, u64 mappings);
int ledger__note(struct ledger *l, u64 now_ns, const char *text);
/* Writes what is open and the run's end, at now (BOOTTIME). 0 or the first -errno. */
int ledger__end(struct ledger *l, u64 now_ns, int status, const char *reason);
void ledger__free(struct ledger *l);

/* A recording into the store; its UUID is the run's id, so that a second time changes nothing. One without frames is in
 * the store as not measured. enum exit_status, says what is wrong. */
int ledger__import(struct store *s, const char *path, char run[RUN_ID_SIZE]);

#endif
