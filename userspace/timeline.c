/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events_desc.h"
#include "timeline_internal.h"

#define STALL_TICKS  3u    /* samples of a running thread that are missing in a row */
#define FAULT_GAP_NS 1000u /* between two faults of user code: less is theirs */

void timeline__init(struct timeline *t)
{
	memset(t, 0, sizeof(*t));
	t->limit = TIMELINE_LIMIT;
	t->losses = FIFO(struct loss, end);
	t->growths = FIFO(struct growth, ts);
}

static void line_trim(struct timeline *t, struct line *l, u64 horizon)
{
	fifo__trim(&l->offs, horizon, &t->bytes);
	fifo__trim(&l->spans, horizon, &t->bytes);
	fifo__trim(&l->samples, horizon, &t->bytes);
	fifo__trim(&l->allocs, horizon, &t->bytes);
}

static void line_free(struct timeline *t, struct line *l)
{
	fifo__free(&l->offs, &t->bytes);
	fifo__free(&l->spans, &t->bytes);
	fifo__free(&l->samples, &t->bytes);
	fifo__free(&l->allocs, &t->bytes);
	free(l);
}

void timeline__free(struct timeline *t)
{
	for (u32 i = 0; i < t->n_slots; i++)
		if (t->lines[i])
			line_free(t, t->lines[i]);
	for (u32 i = 0; i < t->n_cpus; i++)
		fifo__free(&t->cpus[i], &t->bytes);
	fifo__free(&t->losses, &t->bytes);
	fifo__free(&t->growths, &t->bytes);
	free(t->lines);
	free(t->cpus);
	intern__free(&t->names);
}

/* ---- threads ---- */

static struct line **slot_of(struct line **lines, u32 n_slots, u32 tid)
{
	u32 i = hash64(tid) & (n_slots - 1);

	while (lines[i] && lines[i]->tid != tid)
		i = (i + 1) & (n_slots - 1);
	return &lines[i];
}

/* Into a table of n_slots, leaving out (and freeing) the threads that ended before the horizon. */
int timeline__rehash(struct timeline *t, u32 n_slots)
{
	struct line **lines = calloc(n_slots, sizeof(*lines));

	if (!lines)
		return -ENOMEM;
	t->n_lines = t->n_dead = 0;
	for (u32 i = 0; i < t->n_slots; i++) {
		struct line *l = t->lines[i];

		if (l && l->dead && l->last < t->horizon) {
			line_free(t, l);
		} else if (l) {
			*slot_of(lines, n_slots, l->tid) = l;
			t->n_lines++;
			t->n_dead += l->dead;
		}
	}
	free(t->lines);
	t->lines = lines;
	t->n_slots = n_slots;
	return 0;
}

struct line *timeline__line(const struct timeline *t, u32 tid)
{
	return t->n_slots ? *slot_of(t->lines, t->n_slots, tid) : NULL;
}

static struct line *line_new(struct timeline *t, u32 tid)
{
	struct line *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->tid = tid;
	l->offs = FIFO(struct off, in);
	l->spans = FIFO(struct span, end);
	l->samples = FIFO(struct sample, ts);
	l->allocs = FIFO(struct allocation, ts);
	t->n_lines++;
	return *slot_of(t->lines, t->n_slots, tid) = l;
}

struct line *timeline__get_line(struct timeline *t, u32 tid)
{
	struct line *l = timeline__line(t, tid);

	if (l)
		return l;
	if ((t->n_lines + 1) * 2 > t->n_slots && timeline__rehash(t, t->n_slots ? t->n_slots * 2 : 256))
		return NULL;
	return line_new(t, tid);
}

/* ---- losses ---- */

static int add_loss(struct timeline *t, u64 start, u64 end)
{
	struct loss *l = fifo__last(&t->losses);

	while (l && l->end >= start) {
		start = min(start, l->start);
		end = max(end, l->end);
		t->losses.n--;
		l = fifo__last(&t->losses);
	}
	l = fifo__push(&t->losses, t->horizon, &t->bytes);
	if (!l)
		return -ENOMEM;
	*l = (struct loss){.start = start, .end = end};
	return 0;
}

static int on_lost(struct timeline *t, const struct ev_lost *e)
{
	if (e->class == CLASS_META || e->class == CLASS_FRAME || e->class == CLASS_SAMPLE || !e->count)
		return 0;
	return add_loss(t, min(e->since, e->hdr.ts), e->hdr.ts);
}

/* ---- the rest ---- */

/* A record that only a running thread makes: the switch that brought it may have been missed. A frame mark is none,
 * so that a thread may be said to present while it waits. */
static void ran(struct line *l, u64 ts)
{
	struct off *o = fifo__last(&l->offs);

	l->seen = max(l->seen, ts);
	if (l->state != LINE_OFF || !o || o->in != TIME_OPEN || ts <= o->out || (o->flags & OFF_DEAD))
		return;
	o->flags |= OFF_LOST;
	line__end_off(l, line__time(l, ts));
	l->state = LINE_ON;
}

static void settle(struct timeline *t, struct fifo *f)
{
	if (!fifo__settle(f))
		t->late++;
}

/* A fault is recorded from handler to handler. The way into it and back, and what recording it costs, lie outside: some
 * 0.6 us in which little else can happen, and in a row of faults a third of the time. */
static u64 fault_start(const struct line *l, const struct span *s)
{
	const struct span *last = fifo__last(&l->spans);

	if (s->kind != EV_FAULT || (s->flags & FAULT_KERNEL) || !last || last->kind != EV_FAULT ||
		(last->flags & FAULT_KERNEL))
		return s->start;
	return s->start > last->end && s->start - last->end < FAULT_GAP_NS ? last->end : s->start;
}

/* Two terms: what was pushed before the latter began may be forgotten once the horizon has passed that. */
static void note_length(const struct timeline *t, struct line *l, u64 ns)
{
	if (t->horizon >= l->longest_since) {
		l->longest_before = l->longest;
		l->longest = 0;
		l->longest_since = t->now;
	}
	l->longest = max(l->longest, ns);
}

static int on_span(struct timeline *t, const struct span *s, u32 tid)
{
	struct line *l = timeline__get_line(t, tid);
	u64 start = l ? fault_start(l, s) : 0;
	struct span *to = l ? fifo__push(&l->spans, t->horizon, &t->bytes) : NULL;

	if (!to)
		return -ENOMEM;
	*to = *s;
	to->start = start;
	note_length(t, l, s->end - start);
	ran(l, s->end);
	settle(t, &l->spans);
	return 0;
}

/* A running thread is sampled each period, to some microseconds. Where ticks are missing, its CPU did not run: what is
 * below this machine had it, a hypervisor as a rule. The tick that was due comes as soon as it runs again. */
static int find_stall(struct timeline *t, struct line *l, u64 ts)
{
	const struct sample *last = fifo__last(&l->samples);
	u64 since = max(l->seen, last ? last->ts : 0);
	struct span *s;

	if (!t->sample_ns || l->state != LINE_ON || !l->switched || ts <= since ||
		ts - since < STALL_TICKS * t->sample_ns)
		return 0;
	s = fifo__push(&l->spans, t->horizon, &t->bytes);
	if (!s)
		return -ENOMEM;
	*s = (struct span){
		.start = since, .end = ts, .kind = EV_SAMPLE, .blocked = CAUSE_NONE, .running = CAUSE_CPU_WAIT};
	note_length(t, l, ts - since);
	settle(t, &l->spans);
	return 0;
}

static int on_sample(struct timeline *t, const struct model *m, const struct ev_sample *e)
{
	struct line *l = timeline__get_line(t, e->hdr.tid);
	int err = l ? find_stall(t, l, e->hdr.ts) : -ENOMEM;
	struct sample *s = err ? NULL : fifo__push(&l->samples, t->horizon, &t->bytes);

	if (!s)
		return -ENOMEM;
	*s = (struct sample){.ts = e->hdr.ts, .ip = e->ip, .kernel = !!e->kernel, .chain = model__chain(m, &e->hdr)};
	ran(l, s->ts);
	settle(t, &l->samples);
	return 0;
}

static int on_allocation(struct timeline *t, const struct allocation *a, u32 tid)
{
	struct line *l = timeline__get_line(t, tid);
	struct allocation *to = l ? fifo__push(&l->allocs, t->horizon, &t->bytes) : NULL;

	if (!to)
		return -ENOMEM;
	*to = *a;
	ran(l, a->ts);
	settle(t, &l->allocs);
	return 0;
}

static int on_other(struct timeline *t, struct model *m, const struct ev_hdr *rec)
{
	struct span s;
	struct allocation a;
	struct line *l;

	if (!rec->tid)
		return 0;
	if ((rec->kind == EV_HEAP || rec->kind == EV_MEM_CALL) && heap__event(t, m, rec))
		return -ENOMEM;
	if (span__from(&s, t, m, rec))
		return on_span(t, &s, rec->tid);
	if (allocation__from(&a, t, m, rec))
		return on_allocation(t, &a, rec->tid);
	if (rec->kind != EV_FRAME)
		return 0;
	l = timeline__get_line(t, rec->tid);
	if (!l)
		return -ENOMEM;
	l->seen = max(l->seen, rec->ts);
	return 0;
}

static void learn_rate(struct timeline *t, const struct model *m)
{
	const char *text = model__info(m, "sample.hz");
	u64 hz = text ? strtoull(text, NULL, 10) : 0;

	t->sample_ns = hz && hz <= NSEC_PER_SEC ? NSEC_PER_SEC / hz : 0;
}

/* "probe.3.at=INODE+OFFSET" */
static void learn_probe(struct timeline *t, const struct ev_hdr *rec)
{
	char text[256];
	unsigned long long ino, offset;

	ev__text(rec, text, sizeof(text));
	if (t->n_probes < TIMELINE_PROBES && sscanf(text, "probe.%*u.at=%llu+%llu", &ino, &offset) == 2)
		t->probes[t->n_probes++] = (struct probed){ino, offset};
}

/* the trap is at the instruction or, once taken, behind its first byte; a nop5 becomes a call of five bytes */
#define PROBE_BYTES 5u

bool timeline__in_probe(const struct timeline *t, const struct model *m, u64 ip)
{
	const struct mapping *map = t->n_probes ? model__mapping(m, ip) : NULL;
	const struct symbol *sym = t->n_probes ? model__symbol(m, ip) : NULL;
	u64 offset = map ? ip - map->start + map->offset : 0;

	if (sym && !strcmp(sym->name, UPROBES_NAME))
		return true;
	for (u32 i = 0; map && i < t->n_probes; i++)
		if (t->probes[i].ino == map->ino && offset - t->probes[i].offset <= PROBE_BYTES)
			return true;
	return false;
}

static void trim_all(struct timeline *t)
{
	for (u32 i = 0; i < t->n_slots; i++)
		if (t->lines[i])
			line_trim(t, t->lines[i], t->horizon);
	for (u32 i = 0; i < t->n_cpus; i++)
		fifo__trim(&t->cpus[i], t->horizon, &t->bytes);
	fifo__trim(&t->growths, t->horizon, &t->bytes);
}

/* Gives up the older half of what is held, until it fits. */
static int shrink(struct timeline *t)
{
	trim_all(t);
	for (int tries = 0; t->bytes > t->limit && tries < 64 && t->horizon < t->now; tries++) {
		t->horizon += (t->now - t->horizon + 1) / 2;
		t->cut = t->horizon;
		trim_all(t);
	}
	return t->cut ? add_loss(t, 0, t->cut) : 0;
}

int timeline__event(struct timeline *t, struct model *m, const struct ev_hdr *rec)
{
	int err;

	if (rec->kind >= EV_SWITCH || rec->kind == EV_LOST)
		t->now = max(t->now, rec->ts);
	switch (rec->kind) {
	case EV_SWITCH:
		err = timeline__switch(t, m, (const struct ev_switch *)rec);
		break;
	case EV_WAKING:
		err = rec->tid ? timeline__waking(t, (const struct ev_waking *)rec) : 0;
		break;
	case EV_FORK:
		err = timeline__fork(t, (const struct ev_fork *)rec);
		break;
	case EV_EXIT:
		timeline__exit(t, (const struct ev_exit *)rec);
		err = 0;
		break;
	case EV_INFO:
		learn_rate(t, m);
		learn_probe(t, rec);
		err = 0;
		break;
	case EV_LOST:
		err = on_lost(t, (const struct ev_lost *)rec);
		break;
	case EV_URING_DONE:
		uring__done(t, (const struct ev_uring_done *)rec);
		err = 0;
		break;
	case EV_SAMPLE:
		err = on_sample(t, m, (const struct ev_sample *)rec);
		break;
	default:
		err = on_other(t, m, rec);
	}
	if (!err && t->bytes > t->limit)
		err = shrink(t);
	return err;
}

static void rename_spans(const struct intern *old, struct intern *new, struct line *l)
{
	for (u32 i = 0; i < l->spans.n; i++) {
		struct span *s = fifo__at(&l->spans, i);

		if (s->what)
			s->what = intern__id(new, intern__text(old, s->what));
	}
}

/* In days a game names more things than there is room for; few of them are in what is held. */
static void renew_names(struct timeline *t)
{
	struct intern names = {};

	trim_all(t);
	for (u32 i = 0; i < t->n_slots; i++)
		if (t->lines[i])
			rename_spans(&t->names, &names, t->lines[i]);
	intern__free(&t->names);
	t->names = names;
	t->renew_at = max(2 * names.n, INTERN_MAX_TEXTS / 2);
}

void timeline__forget(struct timeline *t, u64 horizon)
{
	t->horizon = max(t->horizon, horizon);
	if (t->names.n >= (t->renew_at ?: INTERN_MAX_TEXTS / 2) || t->names.bytes >= INTERN_MAX_BYTES / 2)
		renew_names(t);
}
