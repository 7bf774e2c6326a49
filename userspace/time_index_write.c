/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Writing a time index while the recording is replayed: now and then, the state of that moment as records, so that
 * another replay can begin there. What the model knows it tells itself; what explain knows is told by the records that
 * it was learnt from.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "events_desc.h"
#include "exporter.h"
#include "explain.h"
#include "log.h"
#include "names.h"
#include "output.h"
#include "recording.h"
#include "strings.h"
#include "table.h"
#include "timeline.h"
#include "time_index.h"

#define POINT_BYTES  (1u << 20) /* of records from point to point, at least … */
#define POINT_SHARE  100        /* … and so many times as much as the states take */
#define POINTS_MAX   16384u     /* so that the index of a huge recording stays small */
#define SAMPLE_BYTES (64u << 10)
#define SAMPLES      4096u /* 256 MiB: more than merge holds back */
#define MARKS        34u   /* of a stream, the latest: all that the model makes of earlier ones */
#define SHEDS        64u
#define CPUS_MAX     1024u
#define CONDVARS     TIMELINE_CONDVARS
#define CONDVAR_WORD 40 /* its futex word, in it */

/* No record before this offset is younger than `newest`. */
struct seen {
	u64 offset, newest;
};

/* a thread that is off the CPU */
struct away {
	struct ev_switch leave;
	struct ev_waking wake; /* kind 0: it sleeps */
};

static struct away gone; /* stands for one that is on a CPU, or has ended */

struct marks {
	struct ev_frame last[MARKS]; /* a ring */
	u32 n;
};

struct writer {
	struct exporter base;
	const struct recording *r;
	struct output out;
	u64 from, at; /* in the file: where it begins, and where the next byte goes */
	bool failed;

	struct seen samples[SAMPLES]; /* a ring */
	u64 n_samples;
	u64 next_point; /* record offset before which none is made */
	u64 step;       /* from point to point, at least */
	u64 ts;
	u32 same;

	struct index_list list;
	struct index_point *points;
	struct index_frame *frames;
	u64 cap_points, cap_frames;

	struct table threads; /* tid → struct away */
	struct ev_switch cpus[CPUS_MAX];
	struct ev_lock_wait condvars[CONDVARS];
	u64 sheds[SHEDS][EV_MAX_BYTES / 8]; /* those that are not taken back */
	u32 n_sheds;
	struct marks *streams[INDEX_STREAMS];
	struct str code; /* records of code, as they are */
};

static struct writer *writer_of(struct exporter *e)
{
	return (struct writer *)e;
}

static void fail(struct writer *w, int err)
{
	if (!w->failed)
		log_warn("no time index is written: %s", errstr(err));
	w->failed = true;
}

static void put(struct writer *w, const void *data, size_t n)
{
	int err = w->failed ? 0 : output__write(&w->out, data, n);

	w->at += n;
	if (err)
		fail(w, err);
}

/* NULL when out of memory */
static void *grow(void *v, u64 n, u64 *cap, size_t size)
{
	if (n < *cap)
		return v;
	*cap = max(256ULL, 2 * *cap);
	return realloc(v, *cap * size);
}

/* ---- what explain has learnt ---- */

static struct away *away_of(const struct writer *w, u32 tid)
{
	return table__get(&w->threads, (struct key){tid, 0});
}

static int set_away(struct writer *w, u32 tid, struct away *a)
{
	struct away *old = away_of(w, tid);

	if (old != &gone && old != a)
		free(old);
	return table__put(&w->threads, (struct key){tid, 0}, a);
}

static int note_switch(struct writer *w, const struct ev_switch *e)
{
	struct away *a;
	int err = 0;

	if (e->hdr.cpu < CPUS_MAX)
		w->cpus[e->hdr.cpu] = *e;
	if (e->next_tid && away_of(w, e->next_tid) && away_of(w, e->next_tid) != &gone)
		err = set_away(w, e->next_tid, &gone);
	if (err || !e->hdr.tid || (e->prev_state & TASK_GONE))
		return err;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->leave = *e;
	return set_away(w, e->hdr.tid, a);
}

static void note_waking(struct writer *w, const struct ev_waking *e)
{
	struct away *a = away_of(w, e->hdr.tid);

	if (a && a != &gone && !a->wake.hdr.kind)
		a->wake = *e;
}

static void note_shed(struct writer *w, const struct ev_shed *e)
{
	if (e->out && w->n_sheds < SHEDS)
		memcpy(w->sheds[w->n_sheds++], e, ev__bytes(&e->hdr));
	for (u32 i = w->n_sheds; !e->out && i-- > 0;) {
		const struct ev_shed *k = (const struct ev_shed *)w->sheds[i];

		if (k->class != e->class)
			continue;
		w->n_sheds--;
		memmove(w->sheds[i], w->sheds[i + 1], (w->n_sheds - i) * sizeof(w->sheds[0]));
		return;
	}
}

/* as the timeline learns them */
static void note_condvar(struct writer *w, const struct model *m, const struct ev_lock_wait *e)
{
	u32 owner;
	enum lock_kind kind = lock__classify(m, e, &owner);
	struct ev_lock_wait *slot;

	if (kind != LOCK_CONDVAR && kind != LOCK_CONDVAR_ODD)
		return;
	slot = &w->condvars[hash64(lock__object(kind, e->addr)) & (CONDVARS - 1)];
	if (slot->hdr.kind)
		return;
	/* as a wait that is one for certain without the call chain and the symbols that told it of this one */
	*slot = *e;
	slot->addr = lock__object(kind, e->addr) + CONDVAR_WORD;
	slot->op = FUTEX_WAIT_REQUEUE_PI;
	slot->dur = slot->owner = slot->owner16 = slot->waker = 0;
}

static int note_mark(struct writer *w, const struct model *m, const struct ev_frame *e)
{
	const struct frame_stream *s = model__stream_of(m, e);
	struct marks *k;

	if (!s)
		return 0;
	if (s->id >= INDEX_STREAMS)
		return -E2BIG;
	k = w->streams[s->id] = w->streams[s->id] ?: calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->last[k->n++ % MARKS] = *e;
	return 0;
}

static int note(struct writer *w, const struct model *m, const struct ev_hdr *rec)
{
	switch (rec->kind) {
	case EV_SWITCH:
		return note_switch(w, (const struct ev_switch *)rec);
	case EV_WAKING:
		note_waking(w, (const struct ev_waking *)rec);
		return 0;
	case EV_SHED:
		note_shed(w, (const struct ev_shed *)rec);
		return 0;
	case EV_LOCK_WAIT:
		note_condvar(w, m, (const struct ev_lock_wait *)rec);
		return 0;
	case EV_FRAME:
		return note_mark(w, m, (const struct ev_frame *)rec);
	}
	if (!model__is_of_code(rec->kind))
		return 0;
	str__add_n(&w->code, (const char *)rec, ev__bytes(rec));
	return w->code.oom ? -ENOMEM : 0;
}

/* ---- a point ---- */

static int put_record(void *arg, const struct ev_hdr *rec)
{
	put(arg, rec, ev__bytes(rec));
	return 0;
}

static int put_told(void *arg, const void *fixed, size_t bytes, const char *text, size_t len)
{
	struct recording_writer to;

	recording__to(&to, put_record, arg);
	return recording__append_text(&to, fixed, bytes, text, len);
}

static int by_time(const void *a, const void *b)
{
	const struct ev_hdr *x = *(const struct ev_hdr *const *)a, *y = *(const struct ev_hdr *const *)b;

	return x->ts != y->ts ? (x->ts < y->ts ? -1 : 1) : (x->kind > y->kind) - (x->kind < y->kind);
}

/* What the timeline is to learn again, in time order: the caller frees the list. */
static const struct ev_hdr **learnt(const struct writer *w, u32 *n)
{
	const struct ev_hdr **v = malloc((2 * (size_t)w->threads.n + CPUS_MAX + CONDVARS) * sizeof(*v));

	*n = 0;
	if (!v)
		return NULL;
	for (u32 i = 0; i < w->threads.n; i++) {
		const struct away *a = w->threads.entries[i].value;

		if (a != &gone)
			v[(*n)++] = &a->leave.hdr;
		if (a != &gone && a->wake.hdr.kind)
			v[(*n)++] = &a->wake.hdr;
	}
	for (u32 i = 0; i < CPUS_MAX; i++) {
		const struct away *a = w->cpus[i].hdr.kind ? away_of(w, w->cpus[i].hdr.tid) : &gone;

		/* the switch by which one left is the switch by which the other came */
		if (w->cpus[i].hdr.kind && (!a || a == &gone || a->leave.hdr.ts != w->cpus[i].hdr.ts))
			v[(*n)++] = &w->cpus[i].hdr;
	}
	for (u32 i = 0; i < CONDVARS; i++)
		if (w->condvars[i].hdr.kind)
			v[(*n)++] = &w->condvars[i].hdr;
	qsort(v, *n, sizeof(*v), by_time);
	return v;
}

static int put_state(struct writer *w, const struct model *m)
{
	int err = model__tell(m, w->ts, put_told, w);
	const struct ev_hdr **v;
	u32 n;

	for (u32 i = 0; i < w->n_sheds && !err; i++)
		err = put_record(w, (const struct ev_hdr *)w->sheds[i]);
	v = err ? NULL : learnt(w, &n);
	if (!v)
		return err ?: -ENOMEM;
	for (u32 i = 0; i < n; i++)
		put_record(w, v[i]);
	free(v);
	for (u32 id = 0; id < INDEX_STREAMS && w->streams[id]; id++) {
		const struct marks *k = w->streams[id];

		for (u32 i = k->n - min(k->n, MARKS); i < k->n; i++)
			put_record(w, &k->last[i % MARKS].hdr);
	}
	return 0;
}

/* The offset from which on all younger records lie; 0: not known. */
static u64 offset_of(const struct writer *w, u64 ts)
{
	for (u64 i = w->n_samples; i && w->n_samples - i < SAMPLES; i--)
		if (w->samples[(i - 1) % SAMPLES].newest < ts)
			return w->samples[(i - 1) % SAMPLES].offset;
	return 0;
}

static int make_point(struct writer *w, const struct model *m)
{
	u64 offset = offset_of(w, w->ts);
	struct index_point *p;
	int err;

	if (offset < w->next_point)
		return 0;
	w->points = grow(w->points, w->list.n_points, &w->cap_points, sizeof(*p));
	if (!w->points)
		return -ENOMEM;
	p = &w->points[w->list.n_points++];
	*p = (struct index_point){.ts = w->ts, .offset = offset, .state_from = w->at, .same = w->same};
	err = put_state(w, m);
	p->state_to = w->at;
	w->next_point = offset + max(w->step, POINT_SHARE * (p->state_to - p->state_from));
	return err;
}

/* ---- as an exporter: what fails here fails the index, not the replay ---- */

static int writer_event(struct exporter *e, const struct model *m, const struct ev_hdr *rec)
{
	struct writer *w = writer_of(e);
	u64 last = w->n_samples ? w->samples[(w->n_samples - 1) % SAMPLES].offset : 0;
	const struct ev_desc *d = ev__desc(rec->kind);
	int err;

	if (w->failed || !d || ev__bytes(rec) < d->size)
		return 0;
	if (rec->ts > w->ts) {
		w->ts = rec->ts;
		w->same = 0;
	}
	w->same += rec->ts == w->ts;
	err = note(w, m, rec);
	if (!err && w->r->offset - last >= SAMPLE_BYTES) {
		w->samples[w->n_samples++ % SAMPLES] = (struct seen){w->r->offset, w->r->newest};
		err = make_point(w, m);
	}
	if (err)
		fail(w, err);
	return 0;
}

static int writer_frame(struct exporter *e, const struct model *m, const struct verdict *v)
{
	struct writer *w = writer_of(e);

	if (w->failed)
		return 0;
	w->frames = grow(w->frames, w->list.n_frames, &w->cap_frames, sizeof(*w->frames));
	if (!w->frames)
		fail(w, -ENOMEM);
	else
		w->frames[w->list.n_frames++] =
			(struct index_frame){v->frame.start, v->frame.end, v->frame.number, v->frame.stream->id, 0};
	return 0;
}

static int put_names(void *arg, const void *fixed, size_t bytes, const char *text, size_t len)
{
	u8 kind = ((const struct ev_hdr *)fixed)->kind;

	return kind == EV_INFO || kind == EV_LOCK_NAME ? put_told(arg, fixed, bytes, text, len) : 0;
}

static void put_list(struct writer *w)
{
	const struct recording_hdr *h = &w->r->hdr;
	struct index_tail t = {.magic = INDEX_MAGIC,
		.uuid = h->uuid[0],
		.records_end = recording__records_end(w->r),
		.list_offset = w->at};
	const struct {
		const void *data;
		size_t n;
	} parts[] = {{&w->list, sizeof(w->list)}, {w->points, w->list.n_points * sizeof(*w->points)},
		{w->frames, w->list.n_frames * sizeof(*w->frames)}};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (!parts[i].n)
			continue;
		t.list_crc = (u32)crc32_z(t.list_crc, parts[i].data, parts[i].n);
		t.list_bytes += parts[i].n;
		put(w, parts[i].data, parts[i].n);
	}
	put(w, &t, sizeof(t));
}

static int writer_end(struct exporter *e, const struct model *m, const struct report *r)
{
	struct writer *w = writer_of(e);
	int err;

	if (w->failed)
		return 0;
	w->list.names_from = w->at;
	err = model__tell(m, w->ts, put_names, w) ?: model__tell_paths(m, w->ts, put_told, w);
	if (!err && w->code.len)
		put(w, w->code.s, w->code.len);
	w->list.names_to = w->at;
	if (!err) {
		put_list(w);
		err = output__flush(&w->out);
	}
	if (err)
		fail(w, err);
	w->base.fd = w->failed ? w->base.fd : -1;
	return 0;
}

static void writer_close(struct exporter *e)
{
	struct writer *w = writer_of(e);

	if (w->base.fd >= 0 && ftruncate(w->base.fd, (off_t)w->from))
		log_debug("half a time index stays behind the recording: %s", errstr(errno));
	for (u32 i = 0; i < w->threads.n; i++)
		if (w->threads.entries[i].value != &gone)
			free(w->threads.entries[i].value);
	table__free(&w->threads);
	for (u32 i = 0; i < INDEX_STREAMS; i++)
		free(w->streams[i]);
	str__free(&w->code);
	free(w->points);
	free(w->frames);
	free(w);
}

static const struct exporter_ops writing = {
	.name = "time index",
	.event = writer_event,
	.frame = writer_frame,
	.end = writer_end,
	.close = writer_close,
};

bool time_index__written(const struct exporter *writer)
{
	return writer->fd < 0;
}

struct exporter *time_index__writer(int fd, u64 at, const struct recording *r)
{
	struct writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->base = (struct exporter){.ops = &writing, .fd = fd};
	w->r = r;
	w->from = w->at = at;
	w->out.fd = fd;
	w->step = max((u64)POINT_BYTES, r->size / POINTS_MAX);
	w->next_point = r->hdr.header_bytes + w->step;
	if (lseek(fd, (off_t)at, SEEK_SET) < 0)
		fail(w, -errno);
	return &w->base;
}
