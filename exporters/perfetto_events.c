// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any kind of record by its row in events.def: the shape says slice, instant or counter, the units say how to write
 * the fields. What follows the generic part are sums that no single record holds.
 */
#include "kernel_wait.h"
#include "perfetto.h"
#include "strings.h"

#include <stdio.h>
#include <string.h>

#define NO_VALUE (~0LL) /* FRAME_NO_NUMBER, FILE_NO_OFFSET */

/* our ids of the calls that change the address space */
enum {
#define SYSCALL(id, name, cause, handler) CALL_##name = id,
#include "syscalls.def"
#undef SYSCALL
};

static void note_field(struct perfetto *p, const struct ev_hdr *rec, const struct ev_field *f)
{
	s64 v;

	if (f->unit == UNIT_TEXT) {
		const char *text = (const char *)rec + f->offset;

		perfetto__note_text(p, f->name, text, strnlen(text, f->size));
		return;
	}
	v = ev__value(rec, f);
	switch (f->unit) {
	case UNIT_ADDR:
	case UNIT_HEX:
		perfetto__note_hex(p, f->name, (u64)v);
		break;
	case UNIT_OFFSET:
	case UNIT_COUNT:
		if (f->size < 8 || v != NO_VALUE)
			perfetto__note_uint(p, f->name, (u64)v);
		break;
	case UNIT_ERRNO:
		if (v < 0)
			perfetto__note_word(p, f->name, rec, f);
		else
			perfetto__note_int(p, f->name, v);
		break;
	case UNIT_NS:
	case UNIT_BYTES:
	case UNIT_CALLS:
	case UNIT_TID:
	case UNIT_CPU:
	case UNIT_PRIO:
	case UNIT_ID:
	case UNIT_FD:
	case UNIT_INO:
	case UNIT_IRQ:
	case UNIT_PERCENT:
		if (f->is_signed)
			perfetto__note_int(p, f->name, v);
		else
			perfetto__note_uint(p, f->name, (u64)v);
		break;
	default: /* has a table of names */
		perfetto__note_word(p, f->name, rec, f);
	}
}

static void note_fields(struct perfetto *p, const struct model *m, const struct ev_hdr *rec, const struct ev_desc *d)
{
	u32 blocked = model__blocked_chain(m, rec);
	char text[EV_MAX_BYTES];
	size_t n;

	for (int i = 0; i < d->n_fields; i++)
		if (d->fields[i].is_detail)
			note_field(p, rec, &d->fields[i]);
	if (d->has_text) {
		n = ev__text(rec, text, sizeof(text));
		perfetto__note_text(p, d->text_name, text, n);
	}
	if (model__what(m, rec, text, sizeof(text))[0])
		perfetto__note_utf8(p, "what", text);
	if (!blocked)
		return;
	kernel_wait__text(m, blocked, text, sizeof(text));
	if (text[0])
		perfetto__note_utf8(p, "blocked_in", text);
}

static void put_callstack(struct perfetto *p, u64 iid)
{
	if (iid)
		pb__uint(p->pb, EVENT_CALLSTACK_IID, iid);
}

static void put_instant(struct perfetto *p, const struct model *m, const struct ev_hdr *rec, const struct ev_desc *d)
{
	struct lane *lane = perfetto__lane(p, m, rec, d->class, true, rec->ts, rec->ts);
	u64 track = lane ? lane->track : perfetto__process_track(p, m);
	u64 callstack = perfetto__callstack(p, m, rec);

	perfetto__event_begin(p, rec->ts, TYPE_INSTANT, track);
	perfetto__event_name(p, class_names[d->class], d->name);
	put_callstack(p, callstack);
	note_fields(p, m, rec, d);
	if (ev__dur(rec)) /* a slice that found no lane */
		perfetto__note_uint(p, "dur", ev__dur(rec));
	perfetto__event_end(p);
}

static void put_slice(struct perfetto *p, const struct model *m, const struct ev_hdr *rec, const struct ev_desc *d)
{
	u64 dur = min(ev__dur(rec), rec->ts), start = perfetto__clip(p, rec->ts - dur),
	    end = perfetto__clip(p, rec->ts);
	struct lane *lane = perfetto__lane(p, m, rec, d->class, d->shape != SHAPE_ASYNC, start, end);
	u64 callstack;

	if (!lane) {
		put_instant(p, m, rec, d);
		return;
	}
	callstack = perfetto__callstack(p, m, rec);
	perfetto__event_begin(p, start, TYPE_BEGIN, lane->track);
	perfetto__event_name(p, class_names[d->class], d->name);
	put_callstack(p, callstack);
	note_fields(p, m, rec, d);
	if (end - start != dur) /* cut off at the file's end */
		perfetto__note_uint(p, "dur", dur);
	perfetto__event_end(p);
	perfetto__slice_end(p, end, lane->track);
}

static enum counter_unit counter_unit(enum ev_unit unit)
{
	return unit == UNIT_NS ? COUNTER_NS : unit == UNIT_BYTES ? COUNTER_BYTES : COUNTER_COUNT;
}

static void put_counters(struct perfetto *p, const struct model *m, const struct ev_hdr *rec, const struct ev_desc *d)
{
	u64 *first = &p->field_tracks[rec->kind];
	char name[128];

	for (int i = 0; !*first && i < d->n_fields; i++) {
		u64 track;

		snprintf(name, sizeof(name), "redframe %s %s", d->name, d->fields[i].name);
		track = perfetto__counter(p, m, name, counter_unit(d->fields[i].unit), NULL);
		if (i == d->n_fields - 1)
			*first = track - (u64)i;
	}
	for (int i = 0; i < d->n_fields; i++)
		perfetto__count(p, rec->ts, *first + (u64)i, ev__value(rec, &d->fields[i]));
}

void events__generic(struct perfetto *p, const struct model *m, const struct ev_hdr *rec, const struct ev_desc *d)
{
	switch (d->shape) {
	case SHAPE_SPAN:
	case SHAPE_WAIT:
	case SHAPE_ASYNC:
		put_slice(p, m, rec, d);
		break;
	case SHAPE_STATE: /* one that the scheduler's tracks do not show */
	case SHAPE_INSTANT:
		put_instant(p, m, rec, d);
		break;
	case SHAPE_COUNTER:
		put_counters(p, m, rec, d);
		break;
	case SHAPE_META:
		break;
	}
}

void events__lost(struct perfetto *p, const struct model *m, const struct ev_lost *ev)
{
	const char *class = ev->class < CLASS_COUNT ? class_names[ev->class] : "unknown";
	char name[96];

	if (ev->class == CLASS_SCHED)
		sched__lost(p, ev->hdr.cpu, ev->hdr.ts);
	p->lost += ev->count;
	p->clear_state = p->dropped = true; /* on the next packet: what follows it stands alone */
	snprintf(name, sizeof(name), "%u %s events lost", ev->count, class);
	perfetto__event_begin(p, ev->hdr.ts, TYPE_INSTANT, perfetto__process_track(p, m));
	perfetto__event_own_name(p, "lost", name);
	perfetto__note_str(p, "class", class);
	perfetto__note_uint(p, "count", ev->count);
	perfetto__note_uint(p, "since_ts", ev->since);
	perfetto__note_uint(p, "cpu", ev->hdr.cpu);
	perfetto__event_end(p);
	if (!p->lost_counter) {
		p->lost_counter = perfetto__counter(p, m, "lost events", COUNTER_COUNT, NULL);
		perfetto__count(p, min(ev->since, ev->hdr.ts), p->lost_counter, 0);
	}
	perfetto__count(p, ev->hdr.ts, p->lost_counter, (s64)p->lost);
}

/* The heap's end and what is mapped, both against the first that was seen. */
void events__memory(struct perfetto *p, const struct model *m, const struct ev_mem_call *ev)
{
	bool failed = ev->ret < 0 && ev->ret > -4096;

	if (failed)
		return;
	switch (ev->sys) {
	case CALL_brk:
		if (!p->heap_counter)
			p->heap_counter = perfetto__counter(p, m, "heap growth (brk)", COUNTER_BYTES, NULL);
		if (!p->heap_start)
			p->heap_start = ev->was ? ev->was : (u64)ev->ret;
		perfetto__count(p, ev->hdr.ts, p->heap_counter, (s64)((u64)ev->ret - p->heap_start));
		return;
	case CALL_mmap:
		p->mapped = (s64)((u64)p->mapped + ev->len);
		break;
	case CALL_munmap:
		p->mapped = (s64)((u64)p->mapped - ev->len);
		break;
	case CALL_mremap:
		p->mapped = (s64)((u64)p->mapped + ev->len - ev->was);
		break;
	default:
		return;
	}
	if (!p->mapped_counter)
		p->mapped_counter = perfetto__counter(p, m, "mapped memory growth (mmap)", COUNTER_BYTES, NULL);
	perfetto__count(p, ev->hdr.ts, p->mapped_counter, p->mapped);
}

void events__cost(struct perfetto *p, const struct model *m, const struct ev_cost *ev)
{
	u64 wall = ev->hdr.ts - p->cost_ts, cpu = ev->cpu_ns - p->cost_cpu_ns;

	if (!p->cpu_counter)
		p->cpu_counter = perfetto__counter(p, m, "redframe CPU", 0, "%");
	if (p->cost_ts && ev->hdr.ts > p->cost_ts && ev->cpu_ns >= p->cost_cpu_ns)
		perfetto__count_double(p, ev->hdr.ts, p->cpu_counter, 100.0 * (double)cpu / (double)wall);
	p->cost_ts = ev->hdr.ts;
	p->cost_cpu_ns = ev->cpu_ns;
}

void events__effect(struct perfetto *p, const struct model *m, const struct ev_effect *ev)
{
	u32 class = ev->class < CLASS_COUNT ? ev->class : CLASS_META;
	u64 wall = ev->hdr.ts - p->effect_ts[class], ns = ev->ns - p->effect_ns[class];
	char name[64];

	if (!p->effect_counter[class]) {
		snprintf(name, sizeof(name), "redframe probes, estimated: %s", class_names[class]);
		p->effect_counter[class] = perfetto__counter(p, m, name, 0, "%");
	}
	if (p->effect_ts[class] && ev->hdr.ts > p->effect_ts[class] && ev->ns >= p->effect_ns[class])
		perfetto__count_double(p, ev->hdr.ts, p->effect_counter[class], 100.0 * (double)ns / (double)wall);
	p->effect_ts[class] = ev->hdr.ts;
	p->effect_ns[class] = ev->ns;
}

/* a META record of which a person should see the moment */
void events__text(struct perfetto *p, const struct model *m, const struct ev_hdr *rec, const char *name)
{
	const struct ev_desc *d = ev__desc(rec->kind);

	perfetto__event_begin(p, rec->ts, TYPE_INSTANT, perfetto__process_track(p, m));
	perfetto__event_name(p, class_names[d->class], name);
	note_fields(p, m, rec, d);
	perfetto__event_end(p);
}
