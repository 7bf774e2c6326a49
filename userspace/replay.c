/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "explain.h"
#include "exporter.h"
#include "merge.h"
#include "model.h"
#include "recording.h"
#include "replay.h"
#include "time_index.h"

#define PROGRESS_RECORDS 65536

struct run {
	struct model *m;
	struct explain *x;
	struct exporter **e;
	int n;
	struct replay *opts;
	/* records that the state knows which it began with: the older ones, and so many of this very ts */
	u64 known_ts;
	u32 known_same;
	bool done;
};

static int foretell(struct recording *r, struct model *m)
{
	const struct ev_hdr *rec;
	int got = 0, err = 0;

	while (!err && (got = recording__next(r, &rec)) == 1)
		err = model__foretell(m, rec);
	return err ? err : got;
}

int replay__prepare(struct recording *r, struct model *m)
{
	return foretell(r, m) ?: recording__rewind(r);
}

int replay__prepare_from(struct recording *r, struct model *m, const struct time_index *ix)
{
	return recording__seek(ix->told, ix->list.names_from, ix->list.names_to)
		       ?: foretell(ix->told, m) ?: recording__rewind(r);
}

void replay__explain_options(const struct model *m, struct explain_options *o)
{
	const char *text = model__info(m, "budget.ms");
	double ms = text ? strtod(text, NULL) : 0;

	*o = (struct explain_options){.from = BUDGET_AUTO};
	if (ms > 0 && ms < 1e9) {
		o->from = BUDGET_OPTION;
		o->budget_ns = (u64)(ms * 1e6 + 0.5);
	}
}

static int give_verdicts(struct run *u, bool flush)
{
	const struct verdict *v;
	int i, err = 0;

	while (u->x && !err && (v = explain__next(u->x, u->m, flush))) {
		if (u->opts && u->opts->verdict)
			u->opts->verdict(v, u->m, u->opts->arg);
		for (i = 0; i < u->n && !err; i++)
			err = u->e[i]->ops->frame(u->e[i], u->m, v);
	}
	return err;
}

static int give_bare(struct run *u)
{
	const struct frame *f = model__ended_frame(u->m);
	int err = 0;

	if (!f || !u->opts || !u->opts->bare)
		return 0;
	for (int i = 0; i < u->n && !err; i++)
		err = u->e[i]->ops->frame(u->e[i], u->m, &(struct verdict){.frame = *f});
	return err;
}

static int feed(struct run *u, const struct ev_hdr *rec)
{
	int i, err = model__event(u->m, rec);

	if (!err && u->x)
		err = explain__event(u->x, u->m, rec);
	for (i = 0; i < u->n && !err; i++)
		err = u->e[i]->ops->event(u->e[i], u->m, rec);
	return err ?: give_bare(u) ?: give_verdicts(u, false);
}

static bool is_known(struct run *u, u64 ts)
{
	if (ts > u->known_ts)
		u->known_ts = 0;
	if (!u->known_ts || ts > u->known_ts || (ts == u->known_ts && !u->known_same))
		return false;
	u->known_same -= ts == u->known_ts;
	return true;
}

static int drain(struct run *u, struct merge *merge, bool flush)
{
	const struct ev_hdr *rec;
	int err = 0;

	while (!err && !u->done && (rec = merge__pop(merge, flush))) {
		u->done = u->opts && u->opts->until && rec->ts > u->opts->until;
		if (!u->done && !is_known(u, rec->ts))
			err = feed(u, rec);
	}
	return err;
}

static int records(struct run *u, struct recording *r, struct merge *merge)
{
	const struct ev_hdr *rec;
	u64 seen = 0;
	int got = 0, err = 0;

	while (!err && !u->done && (got = recording__next(r, &rec)) == 1) {
		err = merge__push(merge, rec);
		if (!err)
			err = drain(u, merge, false);
		if (++seen % PROGRESS_RECORDS == 0 && u->opts && u->opts->progress &&
			u->opts->progress(r->offset, r->size, u->opts->arg))
			return -EINTR;
	}
	if (!err)
		err = min(got, 0);
	return err ? err : drain(u, merge, true);
}

/* ---- beginning in the middle ---- */

static int give_names(struct run *u, struct recording *r)
{
	const struct ev_hdr *rec;
	int got = 0, err = 0;

	while (u->n && !err && (got = recording__next(r, &rec)) == 1)
		for (int i = 0; i < u->n && !err; i++)
			err = u->e[i]->ops->event(u->e[i], u->m, rec);
	return err ? err : min(got, 0);
}

/* Frames that ended before are the model's alone: they have no parts any more. */
static int give_state(struct run *u, struct recording *r)
{
	const struct ev_hdr *rec;
	int got = 0, err = 0;

	while (!err && (got = recording__next(r, &rec)) == 1)
		err = rec->kind == EV_FRAME ? model__event(u->m, rec) : feed(u, rec);
	return err ? err : min(got, 0);
}

/* The open frame of each stream begins where the last one that ended did so. */
static void count_frames(struct run *u)
{
	u64 since[INDEX_STREAMS] = {};
	u32 counts[INDEX_STREAMS];
	const struct frame_stream *s;

	for (u32 id = 0; id < INDEX_STREAMS && (s = model__stream(u->m, id)); id++)
		since[id] = s->open_since;
	time_index__count(u->opts->index, since, counts);
	for (u32 id = 0; id < INDEX_STREAMS; id++)
		model__frames_before(u->m, id, counts[id]);
}

static int begin_at(struct run *u, struct recording *r)
{
	const struct index_list *l = &u->opts->index->list;
	const struct index_begin *b = u->opts->begin;
	struct recording *told = u->opts->index->told;
	int err = recording__seek(told, l->names_from, l->names_to) ?: give_names(u, told);

	if (!b->point)
		return err ?: recording__rewind(r);
	if (!err)
		err = recording__seek(told, b->point->state_from, b->point->state_to) ?: give_state(u, told);
	count_frames(u);
	u->known_ts = b->point->ts;
	u->known_same = b->point->same;
	return err ? err : recording__seek(r, b->point->offset, r->end);
}

/* frames that had their END, the verdicts still held back, and the exporters' ends */
static int finish(struct run *u)
{
	const struct ev_hdr *rec;
	int i, err = 0;

	while (!err && (rec = model__finish(u->m)))
		err = u->x ? explain__event(u->x, u->m, rec) : give_bare(u);
	if (!err)
		err = give_verdicts(u, true);
	for (i = 0; i < u->n && !err; i++)
		err = u->e[i]->ops->end(u->e[i], u->m, u->x ? explain__report(u->x, u->m) : NULL);
	return err;
}

int replay__run(
	struct recording *r, struct model *m, struct explain *x, struct exporter **e, int n, struct replay *opts)
{
	struct run u = {.m = m, .x = x, .e = e, .n = n, .opts = opts};
	struct merge *merge = merge__new(MERGE_WINDOW_NS, MERGE_MAX_BYTES);
	int err;

	if (!merge)
		return -ENOMEM;
	err = opts && opts->begin ? begin_at(&u, r) : 0;
	if (!err)
		err = records(&u, r, merge);
	if (!err)
		err = finish(&u);
	if (opts)
		opts->late = merge__late(merge);
	merge__free(merge);
	return err;
}

int replay__index(int fd)
{
	struct explain_options options;
	struct recording r;
	struct model *m = model__new();
	struct exporter *writer = NULL;
	struct explain *x = NULL;
	int again = fcntl(fd, F_DUPFD_CLOEXEC, 0), err = !m          ? -ENOMEM
							 : again < 0 ? -errno
								     : recording__open_fd(&r, again);

	if (err) {
		model__free(m);
		return err;
	}
	err = replay__prepare(&r, m);
	if (!err) {
		replay__explain_options(m, &options);
		x = explain__new(&options);
		writer = time_index__writer(fd, r.end, &r);
		err = x && writer ? replay__run(&r, m, x, &writer, 1, NULL) : -ENOMEM;
	}
	if (writer)
		writer->ops->close(writer);
	explain__free(x);
	model__free(m);
	recording__close(&r);
	return err;
}
