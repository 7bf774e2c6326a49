/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "events_desc.h"
#include "keeper.h"
#include "merge.h"
#include "model.h"
#include "shedding.h"
#include "spending.h"

#define FORGET_NS  (10 * NSEC_PER_SEC)   /* what ended so long ago is not asked for any more */
#define SUSPEND_NS (100 * NSEC_PER_MSEC) /* the clocks drift apart by less while the machine is awake */

struct suspend {
	u64 from, to;
};

struct engine {
	struct engine_options o;
	struct merge *merge;
	struct model *live; /* up to now */
	struct explain *explain;
	struct shedding shedding;
	struct spending spending;
	struct keeper keeper;
	struct suspend suspend; /* the last */
	u64 now, forgot;
	u32 exit_code; /* of the game, as wait(2) has it */
	struct engine_stats stats;
};

/* ---- frames ---- */

static void take_verdict(struct engine *e, const struct verdict *v)
{
	struct soak_frame f = {.v = v, .did = spending__take(&e->spending, &v->frame)};

	f.suspended = e->suspend.to > v->frame.start && e->suspend.from < v->frame.end;
	f.kept = limits__crossed(&e->o.keep, &f.did);
	f.failed = limits__crossed(&e->o.fail, &f.did);
	e->stats.frames++;
	e->stats.slow += v->slow;
	e->stats.forgotten += v->forgotten;
	e->stats.last_frame = max(e->stats.last_frame, v->frame.end);
	if (e->o.frame)
		e->o.frame(e->o.arg, &f, e->live);
	if (e->o.dir && !f.suspended && (f.kept || f.failed || (v->slow && !e->o.keep.of[LIMIT_FRAME])))
		keeper__keep(&e->keeper, v, f.kept | f.failed);
	keeper__passed(&e->keeper, &v->frame);
}

static void take_verdicts(struct engine *e, bool flush)
{
	const struct verdict *v;

	while ((v = explain__next(e->explain, e->live, flush)))
		take_verdict(e, v);
}

/* ---- the stream ---- */

/* The machine sleeps: BOOTTIME goes on, MONOTONIC does not. */
static void look_at_clocks(struct engine *e, const struct ev_clock *c)
{
	const struct ev_clock *last = &e->keeper.clock;
	u64 before = last->hdr.ts - last->monotonic, now = c->hdr.ts - c->monotonic;

	if (!last->hdr.kind || now <= before || now - before < SUSPEND_NS)
		return;
	e->suspend = (struct suspend){last->hdr.ts, c->hdr.ts};
	e->stats.suspends++;
	e->stats.suspended_ns += now - before;
}

static void tell_record(struct engine *e, const struct ev_hdr *rec)
{
	if (rec->kind == EV_EXIT && rec->tid == model__game(e->live))
		e->exit_code = ((const struct ev_exit *)rec)->code;
	if (!e->o.record)
		return;
	switch (rec->kind) {
	case EV_COST:
	case EV_MEMORY:
	case EV_SCENE:
	case EV_ALLOC:
	case EV_ALLOC_SAMPLE:
	case EV_FREE:
	case EV_LOST:
	case EV_SHED:
		e->o.record(e->o.arg, rec);
	}
}

static int forget(struct engine *e)
{
	u64 ts = min(keeper__oldest(&e->keeper), e->now);

	if (e->now - e->forgot < FORGET_NS)
		return 0;
	e->forgot = e->now;
	ts -= min(ts, FORGET_NS);
	return model__forget_dead(e->live, ts) ?: keeper__forget(&e->keeper, ts);
}

static int take(struct engine *e, const struct ev_hdr *rec)
{
	const struct ev_desc *d = ev__desc(rec->kind);
	const struct frame *f;
	int err;

	e->now = max(e->now, rec->ts);
	if (d && d->shape != SHAPE_META) {
		e->stats.first = e->stats.first ?: rec->ts;
		e->stats.last = e->now;
	}
	if (rec->kind == EV_CLOCK)
		look_at_clocks(e, (const struct ev_clock *)rec);
	err = model__event(e->live, rec) ?: keeper__record(&e->keeper, rec);
	spending__record(&e->spending, e->live, rec);
	f = model__ended_frame(e->live);
	if (f)
		spending__frame_ended(&e->spending, f);
	tell_record(e, rec);
	if (!err)
		err = explain__event(e->explain, e->live, rec);
	if (!err)
		take_verdicts(e, false);
	return err ?: forget(e);
}

static int take_merged(struct engine *e, bool flush)
{
	const struct ev_hdr *rec;
	int err = 0;

	while (!err && (rec = merge__pop(e->merge, flush)))
		err = take(e, rec);
	return err;
}

static int begin_stream(struct engine *e)
{
	e->merge = merge__new(MERGE_WINDOW_NS, ENGINE_MERGE_BYTES);
	e->live = model__new();
	e->explain = explain__new(&e->o.explain);
	e->spending = (struct spending){};
	return e->merge && e->live && e->explain ? keeper__begin(&e->keeper, e->live) : -ENOMEM;
}

static int finish_stream(struct engine *e)
{
	const struct frame_stream *s;
	int err = take_merged(e, true);

	while (!err) {
		const struct ev_hdr *rec = model__finish(e->live);

		if (!rec)
			break;
		spending__frame_ended(&e->spending, model__ended_frame(e->live));
		err = explain__event(e->explain, e->live, rec);
	}
	if (!err)
		take_verdicts(e, true);
	for (u32 id = 0; (s = model__stream(e->live, id)); id++) {
		e->stats.doubled += s->doubled;
		e->stats.streams++;
	}
	return err;
}

static void free_stream(struct engine *e)
{
	merge__free(e->merge);
	model__free(e->live);
	explain__free(e->explain);
	keeper__end(&e->keeper);
	e->merge = NULL;
	e->live = NULL;
	e->explain = NULL;
}

/* ---- in and out ---- */

/* The threshold that moves by itself leaves buffers which grew in a burst to the heap for ever. */
#define MMAP_BYTES (128 << 10)

struct engine *engine__new(const struct engine_options *o)
{
	struct engine *e;

	mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->o = *o;
	e->o.explain.timeline_bytes = ENGINE_TIMELINE_BYTES;
	if (keeper__init(&e->keeper, &e->o) || begin_stream(e)) {
		engine__free(e);
		return NULL;
	}
	return e;
}

void engine__free(struct engine *e)
{
	if (!e)
		return;
	free_stream(e);
	keeper__free(&e->keeper);
	free(e);
}

int engine__record(void *arg, const struct ev_hdr *rec)
{
	struct engine *e = arg;
	int err;

	e->stats.records++;
	if (shedding__drops(&e->shedding, rec, e->merge))
		return 0;
	err = merge__push(e->merge, rec);
	return err ?: take_merged(e, false);
}

void engine__stack(void *arg, const struct stack_copy *c, size_t size)
{
	struct engine *e = arg;

	stack_cache__put(&e->keeper.stacks, c, size);
}

int engine__foretell(struct engine *e, const struct ev_hdr *rec)
{
	return model__foretell(e->live, rec);
}

void engine__shed(struct engine *e, u32 level, u64 ts)
{
	shedding__set(&e->shedding, level, ts, e->merge);
}

void engine__flush(struct engine *e)
{
	keeper__flush(&e->keeper);
}

void engine__tend(struct engine *e)
{
	keeper__tend(&e->keeper, e->stats.last_frame);
}

int engine__game_ended(struct engine *e, bool keep_last, u32 *code)
{
	int err = finish_stream(e);

	*code = e->exit_code;
	e->exit_code = 0;
	if (!err && (keep_last || (*code & 0x7f)))
		keeper__keep_last(&e->keeper);
	keeper__finish(&e->keeper); /* its code can be named only as long as its images are known */
	e->stats.late += merge__late(e->merge);
	free_stream(e);
	return err ?: begin_stream(e);
}

int engine__finish(struct engine *e)
{
	int err = finish_stream(e);

	keeper__finish(&e->keeper);
	e->stats.late += merge__late(e->merge);
	return err;
}

const struct engine_stats *engine__stats(struct engine *e)
{
	const struct keeper *k = &e->keeper;

	e->stats.naming_ns = k->namer.cpu_ns;
	e->stats.kept = k->kept;
	e->stats.not_kept = k->not_kept;
	e->stats.not_named = k->not_named;
	e->stats.segments = k->segments;
	e->stats.cut = k->cut;
	memcpy(e->stats.shed, e->shedding.total, sizeof(e->stats.shed));
	return &e->stats;
}

const struct kept *engine__kept(const struct engine *e)
{
	return &e->keeper.files;
}

struct model *engine__model(struct engine *e)
{
	return e->live;
}
