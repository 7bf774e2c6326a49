/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc_sites.h"
#include "baseline.h"
#include "explain.h"
#include "histogram.h"
#include "patterns.h"
#include "sentence.h"
#include "verdict.h"

#define DELAY_NS      (200 * NSEC_PER_MSEC) /* after which no record of a frame is still to come */
#define STALE_NS      (60 * NSEC_PER_SEC)   /* a stream that shows nothing for so long holds up no memory */
#define ABSURD_NS     (1ULL << 55)          /* 1.1 years */
#define PENDING_MAX   256u
#define BASELINES_MAX 32u

struct pending {
	struct frame frame;
	bool followed; /* the stream has ended another frame since */
};

struct stream {
	u32 id;
	u64 last; /* end of its latest frame */
	struct baseline *baseline;
};

struct explain {
	struct explain_options options;
	struct timeline timeline;
	struct tree tree;
	struct arena arena;
	struct str sentence;
	struct verdict verdict;
	struct pending pending[PENDING_MAX]; /* a ring */
	u32 first, n_pending;
	struct stream streams[BASELINES_MAX];
	u32 n_streams;
	u64 now;
	int err; /* out of memory in explain__next: told by the next explain__event */
	struct histogram durations;
	struct patterns patterns;
	struct alloc_sites alloc_sites;
	struct report report;
};

struct explain *explain__new(const struct explain_options *o)
{
	struct explain *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->options = *o;
	timeline__init(&x->timeline);
	if (o->timeline_bytes)
		x->timeline.limit = o->timeline_bytes;
	return x;
}

void explain__free(struct explain *x)
{
	if (!x)
		return;
	for (u32 i = 0; i < x->n_streams; i++)
		baseline__free(x->streams[i].baseline);
	timeline__free(&x->timeline);
	tree__free(&x->tree);
	arena__free(&x->arena);
	str__free(&x->sentence);
	histogram__free(&x->durations);
	patterns__free(&x->patterns);
	alloc_sites__free(&x->alloc_sites);
	free(x);
}

/* ---- frames that have ended, until no record of theirs can come any more ---- */

static struct pending *pending_at(struct explain *x, u32 i)
{
	return &x->pending[(x->first + i) % PENDING_MAX];
}

static void add_pending(struct explain *x, const struct frame *f)
{
	struct pending *p;

	for (u32 i = 0; i < x->n_pending; i++)
		if (pending_at(x, i)->frame.stream == f->stream)
			pending_at(x, i)->followed = true;
	p = pending_at(x, x->n_pending++);
	p->frame = *f;
	p->followed = false;
}

static bool is_ready(const struct explain *x, bool flush)
{
	const struct pending *p = &x->pending[x->first];

	if (!x->n_pending)
		return false;
	return flush || p->followed || x->n_pending >= PENDING_MAX - 1 ||
	       (x->now > p->frame.end && x->now - p->frame.end >= DELAY_NS);
}

/* What happened before the oldest frame that is open or pending is needed no more. */
static void forget(struct explain *x, const struct model *m)
{
	u64 horizon = x->now;
	const struct frame_stream *s;

	for (u32 id = 0; (s = model__stream(m, id)); id++)
		if (s->open_since && (x->now < s->open_since || x->now - s->open_since < STALE_NS || !id))
			horizon = min(horizon, s->open_since);
	for (u32 i = 0; i < x->n_pending; i++)
		horizon = min(horizon, pending_at(x, i)->frame.start);
	timeline__forget(&x->timeline, horizon);
}

/* Everything else only says what is typical. */
static bool is_asked_for(const struct explain *x, u64 ts)
{
	return !x->options.until || (ts > x->options.since && ts <= x->options.until);
}

int explain__event(struct explain *x, struct model *m, const struct ev_hdr *rec)
{
	const struct frame *f = model__ended_frame(m);
	int err = x->err ? x->err : timeline__event(&x->timeline, m, rec);

	if (!err && is_asked_for(x, rec->ts))
		err = alloc_sites__event(&x->alloc_sites, m, rec);
	x->now = max(x->now, x->timeline.now);
	if (f)
		add_pending(x, f); /* before anything is forgotten */
	if (rec->kind == EV_FRAME) {
		x->now = max(x->now, rec->ts);
		forget(x, m);
	} else if (!x->report.frames && !x->n_pending && !model__stream(m, 0)) {
		timeline__forget(&x->timeline, x->now); /* no frame has begun */
	}
	return err;
}

/* ---- streams ---- */

/* The least recently used one makes room: its stream has to learn again what is typical. */
static struct stream *new_stream(struct explain *x)
{
	struct stream *oldest = x->streams;

	if (x->n_streams < BASELINES_MAX)
		return &x->streams[x->n_streams++];
	for (u32 i = 1; i < BASELINES_MAX; i++)
		if (x->streams[i].last < oldest->last)
			oldest = &x->streams[i];
	baseline__free(oldest->baseline);
	return oldest;
}

static struct stream *stream_of(struct explain *x, u32 id)
{
	struct stream *s;
	struct baseline *b;

	for (u32 i = 0; i < x->n_streams; i++)
		if (x->streams[i].id == id)
			return &x->streams[i];
	b = baseline__new();
	if (!b)
		return NULL;
	s = new_stream(x);
	*s = (struct stream){.id = id, .baseline = b};
	return s;
}

/* ---- one frame ---- */

static u64 budget_of(const struct explain *x, const struct stream *s)
{
	return x->options.from == BUDGET_OPTION ? x->options.budget_ns : baseline__auto_budget(s->baseline);
}

static bool wanted(const struct explain *x, const struct verdict *v)
{
	return v->slow || x->options.every_frame || (x->options.has_frame && v->frame.number == x->options.frame);
}

static int explain_parts(struct explain *x, const struct model *m, const struct stream *s)
{
	struct verdict *v = &x->verdict;
	int err;

	baseline__excess(s->baseline, &x->tree, v->budget_ns);
	err = verdict__fill(v, &x->arena, &x->tree, m);
	if (err)
		return err;
	v->typical_allocs = baseline__alloc_calls(s->baseline);
	str__clear(&x->sentence);
	sentence__write(&x->sentence, v);
	v->sentence = x->sentence.s;
	return x->sentence.oom ? -ENOMEM : 0;
}

/* What is known of a frame without names. */
static void measure(struct verdict *v, const struct tree *tree)
{
	each_child(tree, 0, i)
	{
		const struct node *n = &tree->nodes[i];

		v->cause_ns[n->cause] += n->ns;
		v->cold_bytes += n->cold;
		v->faults += n->major + n->minor;
	}
	v->allocs = tree->alloc_calls;
	v->alloc_bytes = tree->alloc_bytes;
	v->alloc_largest = tree->alloc_largest;
}

static void add_saturated(s64 *sum, s64 excess_ns)
{
	if (excess_ns > 0 && __builtin_add_overflow(*sum, excess_ns, sum))
		*sum = INT64_MAX;
}

static int add_to_report(struct explain *x)
{
	const struct verdict *v = &x->verdict;
	struct report *r = &x->report;
	u64 duration = v->frame.end - v->frame.start;

	r->frames++;
	r->budget_ns = v->budget_ns;
	patterns__scene(&x->patterns, &v->frame);
	if (v->slow) {
		r->slow++;
		r->unsure += v->unsure;
		r->over_budget_ns += duration - v->budget_ns;
		for (u32 i = 0; i < v->n_parts; i++)
			add_saturated(&r->excess_ns[v->parts[i].cause], v->parts[i].excess_ns);
	}
	return histogram__add(&x->durations, duration) ?: v->slow ? patterns__add(&x->patterns, v) : 0;
}

/* Only a damaged recording has it: told and counted, not explained. */
static int add_absurd(struct explain *x)
{
	str__clear(&x->sentence);
	str__add(&x->sentence, "unsure, longer than a year: its times cannot be right");
	x->verdict.unsure = true;
	x->verdict.sentence = x->verdict.slow ? x->sentence.s : NULL;
	return add_to_report(x);
}

/* A frame limiter hits its mark to some microseconds only: half of a game's frames at "60fps" are longer than 16.667
 * ms, and nobody sees it. The automatic budget has its own room. */
#define JITTER_PERCENT 5

static bool is_slow(const struct explain *x, u64 duration, u64 budget)
{
	if (x->options.from == BUDGET_OPTION)
		budget += budget * JITTER_PERCENT / 100;
	return budget && duration > budget;
}

static int evaluate(struct explain *x, struct model *m, const struct frame *f)
{
	struct stream *s = stream_of(x, f->stream->id);
	struct verdict *v = &x->verdict;
	int err;

	if (!s)
		return -ENOMEM;
	arena__reset(&x->arena);
	*v = (struct verdict){.frame = *f, .budget_ns = budget_of(x, s)};
	v->slow = is_slow(x, f->end - f->start, v->budget_ns);
	memset(v->frame.lost_class, 0, sizeof(v->frame.lost_class));
	v->frame.lost = model__lost_in(m, f->start, f->end, v->frame.lost_class);
	v->frame.thinned = model__thinned_in(m, f->start, f->end);
	v->forgotten = f->start < x->timeline.cut;
	v->unsure = v->frame.lost || v->forgotten;
	v->warm_up = !baseline__warm(s->baseline);
	v->typical_ns = baseline__typical(s->baseline);
	s->last = f->end;
	if (f->end - f->start > ABSURD_NS)
		return is_asked_for(x, f->end) ? add_absurd(x) : 0;
	err = tree__build(&x->tree, &x->timeline, m, f->tid, f->start, f->end, wanted(x, v));
	if (!err)
		measure(v, &x->tree);
	if (!err && wanted(x, v) && is_asked_for(x, f->end))
		err = explain_parts(x, m, s);
	if (!err && is_asked_for(x, f->end))
		err = add_to_report(x);
	return err ? err : baseline__push(s->baseline, &x->tree, !v->slow && !v->unsure);
}

const struct verdict *explain__next(struct explain *x, struct model *m, bool flush)
{
	struct frame f;

	while (is_ready(x, flush) && !x->err) {
		f = x->pending[x->first].frame;
		x->err = evaluate(x, m, &f);
		x->first = (x->first + 1) % PENDING_MAX;
		x->n_pending--;
		if (!x->err && is_asked_for(x, f.end))
			return &x->verdict;
	}
	return NULL;
}

const struct report *explain__report(struct explain *x, const struct model *m)
{
	struct report *r = &x->report;
	double low1, low01;

	r->budget_from = x->options.from == BUDGET_OPTION ? "option" : "auto";
	r->mean_ns = r->frames ? (double)x->durations.sum / r->frames : 0;
	r->p50 = histogram__rank(&x->durations, 500);
	r->p95 = histogram__rank(&x->durations, 950);
	r->p99 = histogram__rank(&x->durations, 990);
	r->p999 = histogram__rank(&x->durations, 999);
	r->max = x->durations.max;
	low1 = histogram__mean_of_worst(&x->durations, 100);
	low01 = histogram__mean_of_worst(&x->durations, 1000);
	r->low1_fps = low1 > 0 ? 1e9 / low1 : 0;
	r->low01_fps = low01 > 0 ? 1e9 / low01 : 0;
	r->exact = histogram__exact(&x->durations);
	r->late = x->timeline.late;
	r->cut = x->timeline.cut;
	r->patterns = patterns__list(&x->patterns, &r->n_patterns);
	r->other_patterns = x->patterns.others;
	r->alloc_sites = alloc_sites__list(&x->alloc_sites, &r->n_alloc_sites);
	r->alloc_samples = x->alloc_sites.samples;
	r->alloc_period = x->alloc_sites.period;
	r->alloc_bytes = x->alloc_sites.bytes;
	return r;
}
