/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>

#include "explain.h"
#include "exporter.h"
#include "merge.h"
#include "model.h"
#include "recording.h"
#include "replay.h"

#define PROGRESS_RECORDS 65536

struct run {
	struct model *m;
	struct explain *x;
	struct exporter **e;
	int n;
	struct replay *opts;
};

int replay__prepare(struct recording *r, struct model *m)
{
	const struct ev_hdr *rec;
	int got, err = 0;

	while (!err && (got = recording__next(r, &rec)) == 1)
		err = model__foretell(m, rec);
	if (!err)
		err = got;
	return err ? err : recording__rewind(r);
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

static int feed(struct run *u, const struct ev_hdr *rec)
{
	int i, err = model__event(u->m, rec);

	if (!err && u->x)
		err = explain__event(u->x, u->m, rec);
	for (i = 0; i < u->n && !err; i++)
		err = u->e[i]->ops->event(u->e[i], u->m, rec);
	return err ? err : give_verdicts(u, false);
}

static int drain(struct run *u, struct merge *merge, bool flush)
{
	const struct ev_hdr *rec;
	int err = 0;

	while (!err && (rec = merge__pop(merge, flush)))
		err = feed(u, rec);
	return err;
}

static int records(struct run *u, struct recording *r, struct merge *merge)
{
	const struct ev_hdr *rec;
	u64 seen = 0;
	int got, err = 0;

	while (!err && (got = recording__next(r, &rec)) == 1) {
		err = merge__push(merge, rec);
		if (!err)
			err = drain(u, merge, false);
		if (++seen % PROGRESS_RECORDS == 0 && u->opts && u->opts->progress &&
			u->opts->progress(r->offset, r->size, u->opts->arg))
			return -EINTR;
	}
	if (!err)
		err = got;
	return err ? err : drain(u, merge, true);
}

/* frames that had their END, the verdicts still held back, and the exporters' ends */
static int finish(struct run *u)
{
	const struct ev_hdr *rec;
	int i, err = 0;

	while (!err && (rec = model__finish(u->m)))
		if (u->x)
			err = explain__event(u->x, u->m, rec);
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
	err = records(&u, r, merge);
	if (!err)
		err = finish(&u);
	if (opts)
		opts->late = merge__late(merge);
	merge__free(merge);
	return err;
}
