/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"
#include "events_desc.h"
#include "log.h"
#include "merge.h"
#include "model.h"
#include "names.h"

#define PENDING       512u /* frames that ended and are not explained yet; explain holds fewer */
#define RECENT        128u /* frames whose begin is remembered */
#define STREAMS       16u
#define FORGET_NS     (10 * NSEC_PER_SEC)   /* what ended so long ago is not asked for any more */
#define IDLE_NS       (2 * NSEC_PER_SEC)    /* without frames: a segment ends */
#define SUSPEND_NS    (100 * NSEC_PER_MSEC) /* the clocks drift apart by less while the machine is awake */
#define SHED_TELL_NS  (2 * NSEC_PER_MSEC)   /* before the frame is explained in which it happened */
#define FULL_RETRY_NS (10 * NSEC_PER_SEC)

struct ended {
	u32 stream, index;
	struct amounts did;
};

struct recent {
	u64 start;
	u32 stream;
};

struct suspend {
	u64 from, to;
};

struct engine {
	struct engine_options o;
	struct merge *merge;
	struct model *live, *past; /* up to now; up to where the history begins */
	struct explain *explain;
	struct history history;
	struct stack_cache stacks;
	struct segment segment;
	struct namer namer;
	struct kept kept;
	struct ev_clock clock;  /* the last */
	struct suspend suspend; /* the last */
	u64 now;

	struct amounts sum;             /* ever */
	u64 lock_ns[STREAMS];           /* … of each stream's thread */
	struct amounts before[STREAMS]; /* sums when its last frame ended */
	struct ended ended[PENDING];
	u32 first_ended, n_ended;
	struct recent recent[RECENT];
	u64 n_recent;
	u32 after;     /* frames since the last that is kept */
	u64 last_kept; /* its end */
	u32 exit_code; /* of the game, as wait(2) has it */
	u64 forgot, full_since;
	bool precious; /* the segment */
	u32 shed_level;
	u64 shed_since, shed_now[CLASS_COUNT];
	struct engine_stats stats;
};

static void say(struct engine *e, const char *text)
{
	if (e->o.note)
		e->o.note(e->o.arg, text);
}

/* ---- what has left the history ---- */

/* what a later record may refer to */
static bool is_definition(const struct ev_hdr *rec)
{
	const struct ev_desc *d = ev__desc(rec->kind);

	switch (rec->kind) {
	case EV_FORK:
	case EV_EXEC:
	case EV_EXIT:
	case EV_RENAME:
	case EV_MEM_CALL:
		return true;
	case EV_STACK:
	case EV_LOST:
	case EV_PATH_ARG:
	case EV_SYMBOL:
	case EV_CALL:
	case EV_SOURCE:
	case EV_IMAGE:
		return false;
	}
	return d && d->shape == SHAPE_META;
}

/* Written when a recording ends: in a replay it comes from the recording that is replayed. */
static bool is_of_code(u8 kind)
{
	return kind == EV_SYMBOL || kind == EV_CALL || kind == EV_SOURCE || kind == EV_IMAGE;
}

static int left(void *arg, const struct ev_hdr *rec)
{
	struct engine *e = arg;

	return is_definition(rec) ? model__event(e->past, rec) : 0;
}

/* ---- segments ---- */

static void namer_found(void *arg, const struct finding *f)
{
	struct engine *e = arg;

	kept__hitch(&e->kept, f->segment, f->fingerprint, f->excess_ns, f->end - f->start);
	if (e->o.hitch)
		e->o.hitch(e->o.arg, f);
}

static void namer_done(void *arg, u32 segment, u64 bytes, int err)
{
	struct engine *e = arg;

	kept__size(&e->kept, segment, bytes);
	kept__told(&e->kept, segment);
	kept__make_room(&e->kept, 0, e->segment.number);
	e->stats.not_named += err != 0;
	if (err && err != -EBUSY)
		log_debug("segment %u: %s", segment, errstr(err));
}

static int name_segment(void *arg, struct recording_writer *w, struct stacks *stacks)
{
	struct engine *e = arg;

	return e->o.name ? e->o.name(e->o.arg, w, stacks) : 0;
}

/* The disk is full, or something else is in the way: what is kept of this hitch goes, its figures stay. */
static void give_up_segment(struct engine *e, int err)
{
	char text[256];

	e->stats.not_kept += max(e->segment.n_frames, 1u);
	if (e->segment.number) {
		unlink(e->segment.path);
		kept__size(&e->kept, e->segment.number, 0);
		kept__told(&e->kept, e->segment.number);
		segment__abandon(&e->segment);
	}
	if (!e->full_since) {
		snprintf(text, sizeof(text), "slow frames are counted, but not kept: %s", errstr(err));
		say(e, text);
	}
	e->full_since = e->now;
}

static void end_segment(struct engine *e)
{
	if (!e->segment.number)
		return;
	if (recording__flush(&e->segment.w)) {
		give_up_segment(e, e->segment.w.error);
		return;
	}
	kept__size(&e->kept, e->segment.number, e->segment.w.bytes);
	namer__take(&e->namer, &e->segment);
	namer__tend(&e->namer, e->o.patient);
}

static int begin_segment(struct engine *e, u64 from)
{
	const struct ev_hdr *rec;
	u64 at = 0;
	int err;

	if (!kept__make_room(&e->kept, 1 << 20, 0))
		return -EDQUOT;
	if (history__oldest(&e->history) <= e->now)
		from = max(from, history__oldest(&e->history));
	/* what is known is stamped with the oldest moment: what was defined since comes after it */
	err = segment__open(&e->segment, e->o.dir, ++e->stats.segments, min(from, history__oldest(&e->history)));
	if (err)
		return err;
	err = kept__add(&e->kept, e->segment.number, e->precious) ?: segment__define(&e->segment, e->past);
	if (!err && e->clock.hdr.kind)
		err = segment__write(&e->segment, &e->clock.hdr, e->live, &e->stacks);
	while (!err && (rec = history__next(&e->history, &at)))
		if (rec->ts >= from || is_definition(rec))
			err = segment__write(&e->segment, rec, e->live, &e->stacks);
	return err;
}

/* where a segment begins that is for the frame which began at `start` */
static u64 context_begin(const struct engine *e, u32 stream, u64 start)
{
	u64 from = start - min(start, e->o.before_ns), seen = 0;

	for (u64 i = e->n_recent; i && e->n_recent - i < RECENT && seen < e->o.before_frames; i--) {
		const struct recent *r = &e->recent[(i - 1) % RECENT];

		if (r->stream != stream || r->start >= start)
			continue;
		from = min(from, r->start);
		seen++;
	}
	return from;
}

static void keep(struct engine *e, const struct verdict *v, u32 crossed)
{
	int err = 0;
	struct kept_frame k = {.start = v->frame.start,
		.end = v->frame.end,
		.number = v->frame.number,
		.stream = v->frame.stream->id,
		.crossed = crossed};

	e->stats.kept++;
	if (e->full_since && e->now - e->full_since < FULL_RETRY_NS) {
		e->stats.not_kept++;
		return;
	}
	if (e->segment.number && e->segment.n_frames == SEGMENT_FRAMES)
		end_segment(e);
	if (!e->segment.number)
		err = begin_segment(e, context_begin(e, k.stream, k.start));
	if (err) {
		give_up_segment(e, err);
		return;
	}
	e->full_since = 0;
	e->segment.frames[e->segment.n_frames++] = k;
	e->after = 0;
	e->last_kept = k.end;
}

static int to_segment(struct engine *e, const struct ev_hdr *rec)
{
	int err;

	if (!e->segment.number)
		return 0;
	err = segment__write(&e->segment, rec, e->live, &e->stacks);
	if (err) {
		give_up_segment(e, err);
		return err == -ENOMEM ? err : 0;
	}
	if (e->segment.w.bytes >= e->o.segment_bytes) {
		end_segment(e);
		e->after = e->o.after_frames; /* another one begins with the next frame that is kept */
	}
	return 0;
}

/* ---- frames ---- */

static bool of_game(const struct engine *e, u32 tid)
{
	const struct thread *t = model__find_thread(e->live, tid);

	return t && t->recorded;
}

static void count_lock(struct engine *e, const struct ev_lock_wait *w)
{
	const struct frame_stream *s;
	u32 owner;

	if (lock__cause(lock__classify(e->live, w, &owner)) != CAUSE_LOCK_WAIT)
		return;
	for (u32 id = 0; id < STREAMS && (s = model__stream(e->live, id)); id++)
		if (s->tid == w->hdr.tid)
			e->lock_ns[id] += w->dur;
}

static void count(struct engine *e, const struct ev_hdr *rec)
{
	u64 *sum = e->sum.of;

	switch (rec->kind) {
	case EV_ALLOC:
		sum[LIMIT_ALLOCS] += of_game(e, rec->tid);
		sum[LIMIT_ALLOC] += of_game(e, rec->tid) ? ((const struct ev_alloc *)rec)->size : 0;
		break;
	case EV_ALLOC_SUM:
		if (!of_game(e, rec->tid))
			break;
		sum[LIMIT_ALLOCS] += ((const struct ev_alloc_sum *)rec)->calls;
		sum[LIMIT_ALLOC] += ((const struct ev_alloc_sum *)rec)->bytes;
		break;
	case EV_FAULT:
		sum[LIMIT_FAULTS] += of_game(e, rec->tid);
		break;
	case EV_FILE_READ:
		sum[LIMIT_COLD] += of_game(e, rec->tid) ? ((const struct ev_file_read *)rec)->cold : 0;
		break;
	case EV_LOCK_WAIT:
		count_lock(e, (const struct ev_lock_wait *)rec);
		break;
	}
}

static void frame_ended(struct engine *e, const struct frame *f)
{
	u32 id = f->stream->id;
	struct ended *d = &e->ended[(e->first_ended + e->n_ended) % PENDING];
	struct amounts sum = e->sum;

	if (e->n_ended == PENDING)
		return; /* explain gives them out long before */
	e->n_ended++;
	*d = (struct ended){.stream = id, .index = f->index};
	d->did.of[LIMIT_FRAME] = f->end - f->start;
	if (id >= STREAMS)
		return;
	sum.of[LIMIT_LOCK] = e->lock_ns[id];
	for (int i = LIMIT_ALLOC; i < LIMIT_KINDS; i++)
		d->did.of[i] = sum.of[i] - e->before[id].of[i];
	e->before[id] = sum;
}

static struct amounts amounts_of(struct engine *e, const struct frame *f)
{
	const struct ended *d = &e->ended[e->first_ended];
	struct amounts none = {.of = {[LIMIT_FRAME] = f->end - f->start}};

	if (!e->n_ended || d->stream != f->stream->id || d->index != f->index)
		return none;
	e->first_ended = (e->first_ended + 1) % PENDING;
	e->n_ended--;
	return d->did;
}

static void after_frame(struct engine *e, const struct frame *f)
{
	u64 from, last = f->end - min(f->end, ENGINE_LAST_NS);

	e->recent[e->n_recent++ % RECENT] = (struct recent){f->start, f->stream->id};
	if (e->segment.number && e->after++ >= e->o.after_frames)
		end_segment(e);
	from = context_begin(e, f->stream->id, f->end);
	history__trim(&e->history, min(from, last));
}

static void take_verdict(struct engine *e, const struct verdict *v)
{
	struct soak_frame f = {.v = v, .did = amounts_of(e, &v->frame)};

	f.suspended = e->suspend.to > v->frame.start && e->suspend.from < v->frame.end;
	f.kept = limits__crossed(&e->o.keep, &f.did);
	f.failed = limits__crossed(&e->o.fail, &f.did);
	e->stats.frames++;
	e->stats.slow += v->slow;
	e->stats.last_frame = max(e->stats.last_frame, v->frame.end);
	if (e->o.frame)
		e->o.frame(e->o.arg, &f, e->live);
	if (e->o.dir && !f.suspended && (f.kept || f.failed || (v->slow && !e->o.keep.of[LIMIT_FRAME])))
		keep(e, v, f.kept | f.failed);
	after_frame(e, &v->frame);
}

/* ---- the stream ---- */

/* The machine sleeps: BOOTTIME goes on, MONOTONIC does not. */
static void look_at_clocks(struct engine *e, const struct ev_clock *c)
{
	u64 before = e->clock.hdr.ts - e->clock.monotonic, now = c->hdr.ts - c->monotonic;

	if (e->clock.hdr.kind && now > before && now - before >= SUSPEND_NS) {
		e->suspend = (struct suspend){e->clock.hdr.ts, c->hdr.ts};
		e->stats.suspends++;
		e->stats.suspended_ns += now - before;
	}
	e->clock = *c;
}

static int take_verdicts(struct engine *e, bool flush)
{
	const struct verdict *v;

	while ((v = explain__next(e->explain, e->live, flush)))
		take_verdict(e, v);
	return 0;
}

static void tell_record(struct engine *e, const struct ev_hdr *rec)
{
	if (rec->kind == EV_CLOCK)
		look_at_clocks(e, (const struct ev_clock *)rec);
	if (rec->kind == EV_EXIT && rec->tid == model__game(e->live))
		e->exit_code = ((const struct ev_exit *)rec)->code;
	if (!e->o.record)
		return;
	switch (rec->kind) {
	case EV_COST:
	case EV_MEMORY:
	case EV_SCENE:
	case EV_ALLOC:
	case EV_LOST:
		e->o.record(e->o.arg, rec);
	}
}

static int forget(struct engine *e)
{
	u64 ts = min(history__oldest(&e->history), e->now);

	if (e->now - e->forgot < FORGET_NS)
		return 0;
	e->forgot = e->now;
	ts -= min(ts, FORGET_NS);
	return model__forget_dead(e->live, ts) ?: model__forget_dead(e->past, ts);
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
	err = model__event(e->live, rec);
	if (!err && !is_of_code(rec->kind))
		err = history__push(&e->history, rec) ?: to_segment(e, rec);
	count(e, rec);
	f = model__ended_frame(e->live);
	if (f)
		frame_ended(e, f);
	tell_record(e, rec);
	if (!err)
		err = explain__event(e->explain, e->live, rec);
	if (!err)
		err = take_verdicts(e, false);
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

/* ---- shedding ---- */

static const u8 shed_order[] = {CLASS_SAMPLE, CLASS_IRQ, CLASS_ALLOC, CLASS_SYSCALL, CLASS_FAULT, CLASS_FILE,
	CLASS_LOCK, CLASS_RECLAIM, CLASS_SCHED};

u32 engine__shed_levels(void)
{
	return ARRAY_SIZE(shed_order);
}

enum ev_class engine__shed_class(u32 level)
{
	return shed_order[level - 1];
}

/* Threads and mappings come and go whatever is shed. */
static bool is_shed(struct engine *e, const struct ev_hdr *rec)
{
	const struct ev_desc *d = ev__desc(rec->kind);

	if (!d || d->shape == SHAPE_META || is_definition(rec))
		return false;
	for (u32 i = 0; i < e->shed_level; i++) {
		if (shed_order[i] != d->class)
			continue;
		e->shed_now[d->class]++;
		e->stats.shed[d->class]++;
		return true;
	}
	return false;
}

/* As records that the ring had no room for: the frames in which it happened are unsure, and say so. */
static void tell_shed(struct engine *e, u64 ts)
{
	for (u32 class = 0; class < CLASS_COUNT; class ++) {
		u64 since = min(e->shed_since, ts);
		struct ev_lost lost = {.hdr = {.ts = ts, .kind = EV_LOST, .words = sizeof(lost) / 8},
			.class = class,
			.count = (u32)min(e->shed_now[class], (u64)UINT32_MAX),
			.since = since};

		if (e->shed_now[class])
			merge__push(e->merge, &lost.hdr);
		e->shed_now[class] = 0;
	}
	e->shed_since = ts;
}

void engine__shed(struct engine *e, u32 level, u64 ts)
{
	tell_shed(e, ts);
	e->shed_level = min(level, (u32)ARRAY_SIZE(shed_order));
}

/* ---- in and out ---- */

static int renew(struct engine *e)
{
	e->merge = merge__new(MERGE_WINDOW_NS, MERGE_MAX_BYTES);
	e->live = model__new();
	e->past = model__new();
	e->explain = explain__new(&e->o.explain);
	memset(e->before, 0, sizeof(e->before));
	memset(e->lock_ns, 0, sizeof(e->lock_ns));
	memset(&e->sum, 0, sizeof(e->sum));
	memset(&e->clock, 0, sizeof(e->clock));
	e->n_ended = 0;
	e->n_recent = 0;
	return e->merge && e->live && e->past && e->explain ? history__init(&e->history, ENGINE_HISTORY_BYTES, left, e)
							    : -ENOMEM;
}

static void free_stream(struct engine *e)
{
	merge__free(e->merge);
	model__free(e->live);
	model__free(e->past);
	explain__free(e->explain);
	history__free(&e->history);
	e->merge = NULL;
	e->live = e->past = NULL;
	e->explain = NULL;
}

struct engine *engine__new(const struct engine_options *o)
{
	struct engine *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->o = *o;
	e->segment.w.fd = e->segment.stacks.fd = -1;
	e->namer.explain = &e->o.explain;
	e->namer.name = name_segment;
	e->namer.found = namer_found;
	e->namer.done = namer_done;
	e->namer.arg = e;
	kept__init(&e->kept, o->dir ?: "", o->max_bytes);
	if (stack_cache__init(&e->stacks, ENGINE_STACK_BYTES) || renew(e)) {
		engine__free(e);
		return NULL;
	}
	return e;
}

void engine__free(struct engine *e)
{
	if (!e)
		return;
	segment__abandon(&e->segment);
	namer__free(&e->namer);
	free_stream(e);
	stack_cache__free(&e->stacks);
	kept__free(&e->kept);
	free(e);
}

int engine__record(void *arg, const struct ev_hdr *rec)
{
	struct engine *e = arg;
	int err;

	e->stats.records++;
	if (e->shed_level && rec->ts > e->shed_since && rec->ts - e->shed_since > SHED_TELL_NS)
		tell_shed(e, rec->ts);
	if (e->shed_level && is_shed(e, rec))
		return 0;
	err = merge__push(e->merge, rec);
	return err ?: take_merged(e, false);
}

void engine__stack(void *arg, const struct stack_copy *c, size_t size)
{
	struct engine *e = arg;

	stack_cache__put(&e->stacks, c, size);
}

int engine__foretell(struct engine *e, const struct ev_hdr *rec)
{
	return model__foretell(e->live, rec);
}

void engine__tend(struct engine *e)
{
	if (e->segment.number && recording__flush(&e->segment.w))
		give_up_segment(e, e->segment.w.error);
	if (e->segment.number && e->now > e->last_kept && e->now - e->last_kept > IDLE_NS &&
		e->now - min(e->stats.last_frame, e->now) > IDLE_NS)
		end_segment(e);
	if (e->segment.number) {
		kept__size(&e->kept, e->segment.number, e->segment.w.bytes);
		if (!kept__make_room(&e->kept, 1 << 20, e->segment.number))
			end_segment(e); /* it alone is as large as all may be */
	}
	namer__tend(&e->namer, false);
}

static int finish_stream(struct engine *e)
{
	int err = take_merged(e, true);

	while (!err) {
		const struct ev_hdr *rec = model__finish(e->live);

		if (!rec)
			break;
		frame_ended(e, model__ended_frame(e->live));
		err = explain__event(e->explain, e->live, rec);
	}
	return err ?: take_verdicts(e, true);
}

int engine__game_ended(struct engine *e, bool keep_last, u32 *code)
{
	int err = finish_stream(e), kept = 0;

	*code = e->exit_code;
	e->exit_code = 0;
	keep_last |= (*code & 0x7f) != 0;
	if (!err && keep_last && e->o.dir) {
		if (!e->segment.number) {
			e->precious = true;
			kept = begin_segment(e, e->now - min(e->now, ENGINE_LAST_NS));
			e->precious = false;
		}
		if (kept)
			give_up_segment(e, kept);
	}
	end_segment(e);
	e->stats.late += merge__late(e->merge);
	namer__tend(&e->namer, true); /* its code can be named only as long as its images are known */
	free_stream(e);
	return err ?: renew(e);
}

int engine__finish(struct engine *e)
{
	int err = finish_stream(e);

	end_segment(e);
	namer__tend(&e->namer, true);
	e->stats.late += merge__late(e->merge);
	return err;
}

const struct engine_stats *engine__stats(struct engine *e)
{
	e->stats.naming_ns = e->namer.cpu_ns;
	return &e->stats;
}

const struct kept *engine__kept(const struct engine *e)
{
	return &e->kept;
}

struct model *engine__model(struct engine *e)
{
	return e->live;
}
