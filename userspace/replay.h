/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A recording through merge, model, explain and exporters: what record, explain, export and info share.
 */
#ifndef REDFRAME_REPLAY_H
#define REDFRAME_REPLAY_H

#include "common.h"

struct recording;
struct model;
struct explain;
struct explain_options;
struct exporter;
struct verdict;
struct time_index;
struct index_begin;

struct replay {
	/* Not from the recording's beginning; NULL: from there. The model was prepared with this index. */
	const struct time_index *index;
	const struct index_begin *begin;
	u64 until; /* no record later than this is wanted; 0: all are */
	bool bare; /* without an explain: exporters get frames all the same, in verdicts that say nothing else */
	/* what to do; both may be NULL */
	void (*verdict)(const struct verdict *v, const struct model *m, void *arg);
	/* now and then; returns true to stop with -EINTR */
	bool (*progress)(u64 offset, u64 size, void *arg);
	void *arg;
	/* what came of it */
	u64 late; /* records out of time order beyond merge's window */
};

/* First: tells the model what stands anywhere in the file but holds for all of it (model__foretell), and rewinds. From
 * then on model__info answers. Without it names that come late are not known early. 0 or -errno. */
int replay__prepare(struct recording *r, struct model *m);
/* The same from an index, which has all of that in one place. */
int replay__prepare_from(struct recording *r, struct model *m, const struct time_index *ix);
/* What the recording was made with ("budget.ms"), for explain__new. After replay__prepare. */
void replay__explain_options(const struct model *m, struct explain_options *o);
/* Then: the records in time order. x may be NULL: no frame is explained, and exporters get no frames and no report.
 * opts may be NULL. Calls end on every exporter. 0 or the first -errno. */
int replay__run(
	struct recording *r, struct model *m, struct explain *x, struct exporter **e, int n, struct replay *opts);
/* Replays a complete recording, open as fd for reading and writing, for its time index alone. 0 or -errno; where the
 * index could not be written there is none, after a message. */
int replay__index(int fd);

#endif
