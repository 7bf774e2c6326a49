// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tracks that answer the question: a slice per frame, under it the stretches that its time was made of, and the
 * counters that go with frames.
 */
#include "perfetto.h"
#include "strings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BECAUSE_DEPTH 4
#define PARTS_MAX     64

static void name_tracks(struct perfetto *p, const struct model *m, struct frame_tracks *s, u64 stream)
{
	struct track_desc frames = {.rank = (u32)(s - p->streams)}, why = {.name = "why"};
	char name[80];

	/* Ranks do not count among a process's own tracks, which are shown in the order of their names: the capital
	 * puts frames before all the others. */
	snprintf(name, sizeof(name), stream ? "Frames of 0x%llx" : "Frames", (unsigned long long)stream);
	s->named = true;
	frames.name = name;
	frames.parent = perfetto__process_track(p, m);
	frames.uuid = s->frames.track = perfetto__new_track(p);
	perfetto__describe(p, &frames);
	why.parent = frames.uuid;
	why.uuid = s->why.track = perfetto__new_track(p);
	perfetto__describe(p, &why);
	s->time_counter = perfetto__counter(p, m, "frame time", 0, "ms");
}

/* NULL: too many, or no memory */
static struct frame_tracks *tracks_of(struct perfetto *p, const struct model *m, const struct frame_stream *stream)
{
	struct frame_tracks *s;

	if (!p->streams)
		p->streams = calloc(FRAME_STREAMS, sizeof(*p->streams));
	if (!p->streams)
		p->error = -ENOMEM;
	if (!p->streams || stream->id >= FRAME_STREAMS)
		return NULL;
	s = &p->streams[stream->id];
	if (!s->named)
		name_tracks(p, m, s, stream->stream);
	return s;
}

static void count_faults(struct perfetto *p, const struct model *m, u64 ts)
{
	if (!p->faults_counter)
		p->faults_counter = perfetto__counter(p, m, "faults per frame", COUNTER_COUNT, NULL);
	perfetto__count(p, ts, p->faults_counter, (s64)p->faults);
	p->faults = 0;
}

static const struct frame_stream *stream_of(const struct model *m, const struct ev_frame *ev)
{
	const struct frame *ended = model__ended_frame(m);
	const struct frame_stream *s;

	if (ended)
		return ended->stream;
	for (u32 i = 0; (s = model__stream(m, i)); i++)
		if (s->stream == ev->stream && s->site == ev->site)
			return s;
	return NULL;
}

void frame_tracks__mark(struct perfetto *p, const struct model *m, const struct ev_frame *ev)
{
	const struct frame_stream *stream = stream_of(m, ev);
	struct frame_tracks *s = stream ? tracks_of(p, m, stream) : NULL;
	const struct frame *ended = model__ended_frame(m);

	if (!s)
		return;
	if (ended) {
		s->begun = ended->end;
		s->next_number = ended->number + 1;
		s->open = true;
		if (!ended->stream->id)
			count_faults(p, m, ended->end);
	} else if (ev->mark == FRAME_END) {
		s->open = false;
	} else if (!s->begun) {
		s->begun = ev->hdr.ts;
		s->next_number = ev->number == FRAME_NO_NUMBER ? 0 : ev->number;
		s->open = true;
		if (!stream->id)
			p->faults = 0;
	}
}

static double ms(s64 ns)
{
	return (double)ns / 1e6;
}

static void note_part(struct perfetto *p, const struct part *part, int depth);

static void note_parts(struct perfetto *p, const char *name, const struct part *parts, u32 n, int depth)
{
	struct note_mark array;

	if (!parts || !n || depth > BECAUSE_DEPTH)
		return;
	array = perfetto__note_open(p, name, true);
	for (u32 i = 0; i < min(n, (u32)PARTS_MAX); i++)
		note_part(p, &parts[i], depth);
	perfetto__note_close(p, array);
}

static const char *cause_word(enum cause cause)
{
	return cause > CAUSE_NONE && cause < CAUSE_COUNT ? cause_names[cause] : "unexplained";
}

static void note_part_fields(struct perfetto *p, const struct part *part)
{
	perfetto__note_str(p, "cause", cause_word(part->cause));
	perfetto__note_double(p, "ms", ms((s64)part->ns));
	perfetto__note_double(p, "excess_ms", ms(part->excess_ns));
	perfetto__note_uint(p, "count", part->count);
	perfetto__note_str(p, "what", part->what);
	if (part->bytes)
		perfetto__note_uint(p, "bytes", part->bytes);
	if (part->cold_bytes)
		perfetto__note_uint(p, "cold_bytes", part->cold_bytes);
	if (part->major || part->minor) {
		perfetto__note_uint(p, "major", part->major);
		perfetto__note_uint(p, "minor", part->minor);
	}
	if (part->samples)
		perfetto__note_uint(p, "samples", part->samples);
	perfetto__note_str(p, "who", part->who);
	if (part->who_tid)
		perfetto__note_uint(p, "who_tid", part->who_tid);
	perfetto__note_str(p, "through", part->through);
	perfetto__note_str(p, "detail", part->detail);
}

static void note_part(struct perfetto *p, const struct part *part, int depth)
{
	struct note_mark dict = perfetto__note_open(p, NULL, false);

	note_part_fields(p, part);
	note_parts(p, "because", part->because, part->n_because, depth + 1);
	perfetto__note_close(p, dict);
}

static void note_verdict(struct perfetto *p, const struct model *m, const struct verdict *v)
{
	const struct frame *f = &v->frame;
	const struct thread *t = model__find_thread(m, f->tid);

	perfetto__note_str(p, "verdict", v->sentence);
	perfetto__note_double(p, "ms", ms((s64)(f->end - f->start)));
	if (v->typical_ns)
		perfetto__note_double(p, "typical_ms", ms((s64)v->typical_ns));
	if (v->budget_ns)
		perfetto__note_double(p, "budget_ms", ms((s64)v->budget_ns));
	if (v->unsure)
		perfetto__note_bool(p, "unsure", true);
	if (f->lost)
		perfetto__note_uint(p, "lost_events", f->lost);
	for (int c = 0; c < CLASS_COUNT; c++)
		if (f->thinned >> c & 1)
			perfetto__note_str(p, "thinned", class_names[c]);
	perfetto__note_uint(p, "tid", f->tid);
	if (t && t->name[0])
		perfetto__note_str(p, "thread", t->name);
	if (f->scene[0])
		perfetto__note_str(p, "scene", f->scene);
	note_parts(p, "causes", v->parts, v->n_parts, 0);
}

static void put_frame(struct perfetto *p, const struct model *m, struct frame_tracks *s, const struct verdict *v)
{
	unsigned long long number = v->frame.number;
	char name[64];

	snprintf(name, sizeof(name), v->slow ? "SLOW frame %llu" : "frame %llu", number);
	perfetto__event_begin(p, v->frame.start, TYPE_BEGIN, s->frames.track);
	perfetto__event_own_name(p, v->slow ? "slow_frame" : "frame", name);
	note_verdict(p, m, v);
	perfetto__event_end(p);
	perfetto__slice_end(p, v->frame.end, s->frames.track);
}

/* The moment a thread was woken, on the lane of the one that woke it: where a wait's arrow ends. */
static void put_wake(struct perfetto *p, const struct model *m, const struct stretch *st, u32 woken, u64 flow)
{
	struct ev_hdr at = {.ts = st->waker_ts, .tid = st->waker_tid};
	const struct thread *t = model__find_thread(m, woken);
	struct lane *lane = perfetto__lane(p, m, &at, CLASS_SCHED, true, at.ts, at.ts);
	char name[96];

	snprintf(name, sizeof(name), "woke %s", t && t->name[0] ? t->name : "the frame's thread");
	perfetto__event_begin(p, at.ts, TYPE_INSTANT, lane ? lane->track : perfetto__process_track(p, m));
	perfetto__event_own_name(p, class_names[CLASS_SCHED], name);
	pb__fixed64(p->pb, EVENT_TERMINATING_FLOWS, flow);
	perfetto__note_uint(p, "woken_tid", woken);
	perfetto__event_end(p);
}

static void put_stretch(struct perfetto *p, const struct model *m, struct frame_tracks *s, const struct verdict *v,
	const struct stretch *st)
{
	static const struct part unknown = {.cause = CAUSE_UNEXPLAINED};
	const struct part *part = v->parts && st->part < v->n_parts ? &v->parts[st->part] : &unknown;
	u64 start = perfetto__clip(p, st->start);
	bool woken = st->waker_tid && st->waker_ts >= start && st->waker_ts <= st->end;
	char name[320];

	if (st->end <= p->base.from) /* of the frame's part before the file begins */
		return;
	if (st->end < st->start || !lane__fits(&s->why, true, start, st->end)) {
		p->unshown++;
		return;
	}
	lane__add(&s->why, true, start, st->end);
	snprintf(name, sizeof(name), part->what ? "%s %.256s" : "%s", cause_word(part->cause), part->what);
	utf8__sanitize(name, sizeof(name), name, strlen(name));
	perfetto__event_begin(p, st->start, TYPE_BEGIN, s->why.track);
	perfetto__event_own_name(p, cause_word(part->cause), name);
	if (woken)
		pb__fixed64(p->pb, EVENT_FLOWS, ++p->last_flow);
	note_part_fields(p, part);
	if (st->waker_tid)
		perfetto__note_uint(p, "waker_tid", st->waker_tid);
	perfetto__event_end(p);
	if (woken)
		put_wake(p, m, st, v->frame.tid, p->last_flow);
	perfetto__slice_end(p, st->end, s->why.track);
}

void frame_tracks__verdict(struct perfetto *p, const struct model *m, const struct verdict *v)
{
	const struct frame *f = &v->frame;
	struct frame_tracks *s = tracks_of(p, m, f->stream);

	if (!s || f->end < f->start || f->end < p->base.from ||
		!lane__fits(&s->frames, true, perfetto__clip(p, f->start), f->end)) {
		p->unshown++;
		return;
	}
	lane__add(&s->frames, true, perfetto__clip(p, f->start), f->end);
	put_frame(p, m, s, v);
	perfetto__count_double(p, f->end, s->time_counter, ms((s64)(f->end - f->start)));
	for (u32 i = 0; v->stretches && i < v->n_stretches; i++)
		put_stretch(p, m, s, v, &v->stretches[i]);
}

/* A frame that began and did not end in the recording: its slice stays open, and says so. */
void frame_tracks__end(struct perfetto *p, const struct model *m, u64 ts)
{
	char name[64];

	for (u32 i = 0; p->streams && i < FRAME_STREAMS; i++) {
		const struct frame_stream *stream = model__stream(m, i);
		struct frame_tracks *s = &p->streams[i];

		if (stream && !stream->open_since)
			continue; /* its source was left */
		/* one that an END closed after all came as a verdict */
		if (!s->open || s->begun >= ts || !lane__fits(&s->frames, true, s->begun, ts))
			continue;
		snprintf(name, sizeof(name), "frame %llu (unfinished)", (unsigned long long)s->next_number);
		perfetto__event_begin(p, s->begun, TYPE_BEGIN, s->frames.track);
		perfetto__event_own_name(p, "unfinished_frame", name);
		perfetto__note_bool(p, "unfinished", true);
		perfetto__event_end(p);
	}
}
