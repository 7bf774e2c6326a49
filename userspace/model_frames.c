/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Frames and losses. What a frame is: model.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_internal.h"
#include "strings.h"

#define DOUBLED_NS NSEC_PER_MSEC
#define GAPS_LEAST 4 /* before which nothing is usual */

/* All USDT sites of one provider are one source, and so are all of Vulkan: a layer's function calls the driver's for
 * the same swapchain. Every other site is its own. */
static u64 source_of(const struct model *m, u32 site, bool *usdt)
{
	char key[24];
	const char *label, *colon;

	snprintf(key, sizeof(key), "probe.%u", site);
	label = model__info(m, key);
	*usdt = label && !strncmp(label, "usdt:", 5);
	if (label && !strncmp(label, "vulkan:", 7))
		return 1ULL << 62;
	if (!*usdt)
		return site;
	colon = strchr(label + 5, ':');
	return key__of(label, colon ? (size_t)(colon - label) : strlen(label)).a | 1ULL << 63;
}

/* Beyond MAX_STREAMS, all that comes is one stream: its frames are wrong, its count is not. */
static struct key stream_key(const struct model *m, const struct ev_frame *rec, bool *usdt)
{
	const struct mthread *t = table__get(&m->threads, key__int(rec->hdr.tid));
	u32 tgid = t ? t->t.tgid : 0;
	struct key key;

	key.a = source_of(m, rec->site, usdt);
	key.b = key__of((const char *)&rec->stream, sizeof(rec->stream)).b ^ tgid;
	if (m->streams.n >= MAX_STREAMS && !table__get(&m->streams, key))
		key = m->streams.entries[MAX_STREAMS - 1].key;
	return key;
}

const struct frame_stream *model__stream_of(const struct model *m, const struct ev_frame *rec)
{
	bool usdt;
	const struct mstream *s = table__get(&m->streams, stream_key(m, rec, &usdt));

	return s ? &s->s : NULL;
}

void model__frames_before(struct model *m, u32 id, u32 count)
{
	if (id < m->streams.n)
		((struct mstream *)m->streams.entries[id].value)->s.count = count;
}

/* NULL when out of memory. */
static struct mstream *stream_of(struct model *m, const struct ev_frame *rec)
{
	bool usdt;
	struct key key = stream_key(m, rec, &usdt);
	struct mstream *s = table__get(&m->streams, key);

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->s = (struct frame_stream){.id = m->streams.n, .site = rec->site, .stream = rec->stream};
	s->usdt = usdt;
	if (table__put(&m->streams, key, s)) {
		free(s);
		return NULL;
	}
	return s;
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* Upper quartile: where every frame is seen twice, half of the gaps are tiny. 0 where there are too few. */
static u64 usual_gap(const struct mstream *s)
{
	u32 n = min(s->n_gaps, (u32)GAPS);
	u64 sorted[GAPS];

	if (n < GAPS_LEAST)
		return 0;
	memcpy(sorted, s->gaps, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_value);
	return sorted[(3 * n + 3) / 4 - 1];
}

/* A swapchain is presented through one function: one that fires at another site as well is called by the first (a layer
 * calls the driver), unless the first has fallen silent, as when the handle is used again. */
static bool is_inner(struct mstream *s, const struct ev_frame *rec)
{
	if (rec->site == s->s.site)
		return false;
	if (s->seen && rec->hdr.ts - s->seen < NSEC_PER_SEC)
		return true;
	s->s.site = rec->site;
	return false;
}

static bool is_doubled(struct mstream *s, const struct ev_frame *rec)
{
	u64 ts = rec->hdr.ts, gap = ts - s->seen;
	bool first = !s->seen, doubled;

	if (ts <= s->seen || is_inner(s, rec))
		return true;
	doubled = !first && gap < DOUBLED_NS && gap < usual_gap(s) / 8;
	s->seen = ts;
	if (!first)
		s->gaps[s->n_gaps++ % GAPS] = gap;
	return doubled;
}

u64 model__lost_in(const struct model *m, u64 start, u64 end, u64 lost_class[CLASS_COUNT])
{
	u64 all = 0, from, to, n;
	u32 i;

	for (i = m->n_losses; i && m->n_losses - i < LOST_KEPT; i--) {
		const struct loss *l = &m->losses[(i - 1) % LOST_KEPT];

		if (l->ts < start)
			break; /* they are in order of ts */
		from = max(l->since, start);
		to = min(l->ts, end);
		if (from >= to && !(l->since == l->ts && l->ts >= start && l->ts < end))
			continue;
		/* rounded up: a frame that may have lost something says so */
		n = l->since == l->ts ? l->count
				      : (u64)(((unsigned __int128)l->count * (to - from) + (l->ts - l->since) - 1) /
						(l->ts - l->since));
		all += n;
		if (lost_class)
			lost_class[l->class] += n;
	}
	return all;
}

u32 model__thinned_in(const struct model *m, u64 start, u64 end)
{
	u32 classes = 0;

	for (u32 i = m->n_thinnings; i && m->n_thinnings - i < THINNINGS_KEPT; i--) {
		const struct thinning *t = &m->thinnings[(i - 1) % THINNINGS_KEPT];

		if (t->ts < end)
			classes |= t->classes;
		if (t->ts <= start)
			break; /* they are in order of ts */
	}
	return classes;
}

int frames__shed(struct model *m, const struct ev_shed *rec)
{
	u32 class = rec->class < CLASS_COUNT ? rec->class : CLASS_META, classes = 0;
	struct thinning *t;

	if (rec->out)
		m->shed[class]++;
	else if (m->shed[class])
		m->shed[class]--;
	for (int i = 0; i < CLASS_COUNT; i++)
		classes |= m->shed[i] ? 1u << i : 0;
	if (!m->thinnings)
		m->thinnings = malloc(THINNINGS_KEPT * sizeof(*m->thinnings));
	if (!m->thinnings)
		return -ENOMEM;
	t = &m->thinnings[m->n_thinnings++ % THINNINGS_KEPT];
	*t = (struct thinning){.ts = rec->hdr.ts, .classes = classes};
	return 0;
}

int frames__lost(struct model *m, const struct ev_lost *rec)
{
	u32 class = rec->class < CLASS_COUNT ? rec->class : CLASS_META;

	if (model__counts(m, rec->hdr.ts))
		m->stats.lost[class] += rec->count;
	if (!m->losses)
		m->losses = malloc(LOST_KEPT * sizeof(*m->losses));
	if (!m->losses)
		return -ENOMEM;
	m->losses[m->n_losses++ % LOST_KEPT] = (struct loss){
		.since = min(rec->since, rec->hdr.ts), .ts = rec->hdr.ts, .class = class, .count = rec->count};
	return 0;
}

/* "nearly all": three quarters within 3 %, which is what a 60 Hz display's jitter stays below */
static void track_pace(struct mstream *s, u64 dur)
{
	u32 near = 0;
	u64 median;

	if (dur >= FRAME_SILENCE_NS) {
		s->s.silences++;
		s->s.silent_ns += dur;
		return;
	}
	s->pace[s->n_pace++] = dur;
	if (s->n_pace < PACE)
		return;
	s->n_pace = 0;
	qsort(s->pace, PACE, sizeof(*s->pace), by_value);
	median = s->pace[PACE / 2];
	for (u32 i = 0; i < PACE; i++)
		near += s->pace[i] >= median - median * 3 / 100 && s->pace[i] <= median + median * 3 / 100;
	s->windows++;
	if (near >= PACE * 3 / 4) {
		s->steady++;
		s->steady_ns = median;
	}
	s->s.steady_ns = 2 * s->steady > s->windows ? s->steady_ns : 0;
}

static void close_frame(struct model *m, struct mstream *s, const struct ev_frame *rec, u64 number)
{
	struct frame *f = &m->frame;

	*f = (struct frame){.index = s->s.count++,
		.number = number,
		.stream = &s->s,
		.tid = rec->hdr.tid,
		.start = s->start,
		.end = rec->hdr.ts};
	if (f->number == FRAME_NO_NUMBER)
		f->number = f->index;
	f->lost = model__lost_in(m, f->start, f->end, f->lost_class);
	f->thinned = model__thinned_in(m, f->start, f->end);
	memcpy(f->scene, m->scene, sizeof(f->scene));
	track_pace(s, f->end - f->start);
	m->stats.frames++;
	m->frame_ended = true;
}

/* Marks and ENDs carry the number of the frame that they end, a BEGIN that of the one it begins. */
static void boundary(struct model *m, struct mstream *s, const struct ev_frame *rec)
{
	if (s->open)
		close_frame(m, s, rec, rec->mark == FRAME_BEGIN ? s->number : rec->number);
	m->stats.counts[CLASS_FRAME]++;
	s->open = true;
	s->start = s->s.open_since = rec->hdr.ts;
	s->number = rec->number;
	s->s.moves += s->s.tid && s->s.tid != rec->hdr.tid;
	s->s.tid = rec->hdr.tid;
}

static void begin(struct model *m, struct mstream *s, const struct ev_frame *rec)
{
	if (!s->begins)
		s->open = false; /* what an END or a mark had opened before was no frame */
	s->begins = true;
	s->last_end.hdr.kind = 0;
	boundary(m, s, rec);
}

int frames__event(struct model *m, const struct ev_frame *rec)
{
	struct mstream *s = stream_of(m, rec);

	if (!s)
		return -ENOMEM;
	if ((s->open && rec->hdr.ts <= s->start) || (!s->usdt && is_doubled(s, rec)))
		s->s.doubled++;
	else if (rec->mark == FRAME_BEGIN)
		begin(m, s, rec);
	else if (!s->begins)
		boundary(m, s, rec);
	else if (rec->mark == FRAME_END)
		memcpy(&s->last_end, rec, sizeof(s->last_end));
	return 0;
}

const struct ev_hdr *model__finish(struct model *m)
{
	u32 i;

	m->frame_ended = false;
	for (i = 0; i < m->streams.n; i++) {
		struct mstream *s = m->streams.entries[i].value;

		if (!s->open || !s->last_end.hdr.kind)
			continue;
		m->finish_rec = s->last_end;
		s->last_end.hdr.kind = 0;
		s->open = false;
		close_frame(m, s, &m->finish_rec, s->number);
		return &m->finish_rec.hdr;
	}
	return NULL;
}

const struct frame_stream *model__stream(const struct model *m, u32 id)
{
	return id < m->streams.n ? &((const struct mstream *)m->streams.entries[id].value)->s : NULL;
}

/* The frame source was left: no frame reaches over that, whatever marks frames then. */
void frames__left(struct model *m)
{
	for (u32 i = 0; i < m->streams.n; i++) {
		struct mstream *s = m->streams.entries[i].value;

		s->open = false;
		s->s.open_since = s->seen = 0;
	}
}

void frames__scene(struct model *m, const struct ev_hdr *rec)
{
	char text[EV_MAX_BYTES];

	utf8__sanitize(m->scene, sizeof(m->scene), text, ev__text(rec, text, sizeof(text)));
}
