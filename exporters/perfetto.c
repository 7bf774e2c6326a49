// SPDX-License-Identifier: GPL-2.0-only
/* The exporter's operations, the head of the trace, and which record goes where. */
#include "perfetto.h"
#include "strings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEQUENCE_ID 1

/* Kernels that can record print task states as this one does; it stands in where a recording names none. */
#define RELEASE_UNKNOWN "5.8-unknown"

struct pb *perfetto__packet_begin(struct perfetto *p, u32 flags)
{
	struct pb *b = pb_sink__begin(&p->sink);

	if (iids__nearly_full(&p->iids))
		p->clear_state = true;
	if (p->clear_state) {
		iids__clear(&p->iids);
		callstacks__forget(&p->callstacks);
		flags |= SEQ_STATE_CLEARED;
	}
	if (p->dropped)
		pb__uint(b, PACKET_PREVIOUS_DROPPED, 1);
	pb__uint(b, PACKET_SEQUENCE_ID, SEQUENCE_ID);
	if (flags)
		pb__uint(b, PACKET_SEQUENCE_FLAGS, flags);
	p->clear_state = p->dropped = false;
	p->pb = b;
	return b;
}

void perfetto__packet_end(struct perfetto *p)
{
	pb_sink__end(&p->sink);
}

static int status(const struct perfetto *p)
{
	return p->sink.error ? p->sink.error : p->error;
}

static void put_info(struct pb *b, u32 field, const struct model *m, const char *key)
{
	const char *value = model__info(m, key);
	char text[256];

	if (!value)
		return;
	utf8__sanitize(text, sizeof(text), value, strlen(value));
	pb__str(b, field, text);
}

/* Before any switch: the importer reads task states by the kernel's release. */
static void put_system_info(struct perfetto *p, const struct model *m)
{
	struct pb *b = perfetto__packet_begin(p, 0);
	size_t info = pb__begin(b, PACKET_SYSTEM_INFO), uts = pb__begin(b, SYSTEM_INFO_UTSNAME);
	const char *cpus = model__info(m, "cpus");

	pb__str(b, UTSNAME_SYSNAME, "Linux");
	put_info(b, UTSNAME_VERSION, m, "kernel.version");
	if (model__info(m, "kernel.release"))
		put_info(b, UTSNAME_RELEASE, m, "kernel.release");
	else
		pb__str(b, UTSNAME_RELEASE, RELEASE_UNKNOWN);
	put_info(b, UTSNAME_MACHINE, m, "kernel.machine");
	pb__end(b, uts);
	if (cpus && strtoul(cpus, NULL, 10))
		pb__uint(b, SYSTEM_INFO_CPUS, (u32)strtoul(cpus, NULL, 10));
	pb__end(b, info);
	perfetto__packet_end(p);
	p->system_info = model__info(m, "kernel.release");
}

static u64 mix(u64 h, const char *s)
{
	for (; s && *s; s++)
		h = (h ^ (u8)*s) * 1099511628211ULL;
	return (h ^ h >> 29) * 0xbf58476d1ce4e5b9ULL;
}

/* from what the recording says of itself: the same recording gives the same trace, to the byte */
static void put_uuid(struct perfetto *p, const struct model *m, u64 ts)
{
	u64 msb = 14695981039346656037ULL ^ ts, lsb = ~msb;
	const char *key, *value;
	struct pb *b;
	size_t mark;

	for (int i = 0; i < model__info_count(m); i++) {
		model__info_at(m, i, &key, &value);
		msb = mix(mix(msb, key), value);
		lsb = mix(mix(lsb, value), key);
	}
	b = perfetto__packet_begin(p, 0);
	mark = pb__begin(b, PACKET_TRACE_UUID);
	pb__uint(b, UUID_MSB, msb);
	pb__uint(b, UUID_LSB, lsb);
	pb__end(b, mark);
	perfetto__packet_end(p);
}

static void put_attribute(struct pb *b, const char *key, const char *value)
{
	size_t mark = pb__begin(b, ATTRIBUTES_ATTRIBUTE);
	char text[EV_MAX_BYTES];

	utf8__sanitize(text, sizeof(text), key, strlen(key));
	pb__str(b, ATTRIBUTE_KEY, text);
	utf8__sanitize(text, sizeof(text), value, strlen(value));
	pb__str(b, ATTRIBUTE_STRING, text);
	pb__end(b, mark);
}

/* what INFO records have said since the last time */
static void put_attributes(struct perfetto *p, const struct model *m)
{
	u32 n = (u32)model__info_count(m);
	const char *key, *value;

	for (; p->attributes < n; p->attributes++) {
		struct pb *b = perfetto__packet_begin(p, 0);
		size_t mark = pb__begin(b, PACKET_TRACE_ATTRIBUTES);

		model__info_at(m, (int)p->attributes, &key, &value);
		put_attribute(b, key, value);
		pb__end(b, mark);
		perfetto__packet_end(p);
	}
}

static void put_clock(struct pb *b, enum builtin_clock id, u64 ts)
{
	size_t mark = pb__begin(b, SNAPSHOT_CLOCKS);

	pb__uint(b, CLOCK_ID, id);
	pb__uint(b, CLOCK_TIMESTAMP, ts);
	pb__end(b, mark);
}

static void put_clocks(struct perfetto *p, const struct ev_clock *ev)
{
	struct pb *b;
	size_t mark;

	/* of clocks that run backwards the importer makes an error */
	if (p->clock_ts && (ev->hdr.ts <= p->clock_ts || ev->monotonic <= p->clock_monotonic)) {
		p->unshown++;
		return;
	}
	p->clock_ts = ev->hdr.ts;
	p->clock_monotonic = ev->monotonic;
	b = perfetto__packet_begin(p, 0);
	pb__uint(b, PACKET_TIMESTAMP, ev->hdr.ts);
	mark = pb__begin(b, PACKET_CLOCK_SNAPSHOT);
	put_clock(b, BUILTIN_BOOTTIME, ev->hdr.ts);
	put_clock(b, BUILTIN_MONOTONIC, ev->monotonic);
	put_clock(b, BUILTIN_REALTIME, ev->realtime);
	pb__uint(b, SNAPSHOT_PRIMARY, BUILTIN_BOOTTIME);
	pb__end(b, mark);
	perfetto__packet_end(p);
}

/* what was said before a file that begins in the middle holds for it too */
static void put_earlier_notes(struct perfetto *p, const struct model *m)
{
	const char *text;
	u32 severity, class;
	u64 ts;

	for (u32 i = 0; p->base.from && (text = model__note(m, i, &severity, &class, &ts)); i++)
		if (ts < p->base.from)
			perfetto__message(p, m, ts, text);
}

/* Once the first record has come that is no INFO: those stand at the beginning of a recording. */
static void start(struct perfetto *p, const struct model *m, u64 ts)
{
	if (p->started)
		return;
	p->started = true;
	p->clear_state = true;
	put_system_info(p, m);
	put_uuid(p, m, ts);
	put_attributes(p, m);
	put_earlier_notes(p, m);
}

static void on_info(struct perfetto *p, const struct model *m)
{
	if (!p->started)
		return;
	if (!p->system_info && model__info(m, "kernel.release"))
		put_system_info(p, m);
	put_attributes(p, m);
}

static bool is_dead(const struct ev_switch *ev)
{
	return ev->prev_state & 0xb0; /* EXIT_DEAD, EXIT_ZOMBIE, TASK_DEAD */
}

static void on_switch(struct perfetto *p, const struct model *m, const struct ev_switch *ev)
{
	const struct thread *t;

	sched__switch(p, m, ev);
	if (!is_dead(ev))
		return;
	t = model__find_thread(m, ev->hdr.tid);
	if (t && t->exited)
		tasks__gone(p, &ev->hdr, t->name);
}

static void on_fault(struct perfetto *p, const struct model *m, const struct ev_hdr *rec)
{
	p->faults++;
	events__generic(p, m, rec, ev__desc(rec->kind));
}

/* The kinds that mean more than their row in events.def can say; all others are generic. */
static void dispatch(struct perfetto *p, const struct model *m, const struct ev_hdr *rec, const struct ev_desc *d)
{
	switch (rec->kind) {
	case EV_LOST:
		events__lost(p, m, (const void *)rec);
		return;
	case EV_CLOCK:
		put_clocks(p, (const void *)rec);
		return;
	case EV_THREAD:
		p->names_gen++;
		tasks__announce(p, m, rec->tid, rec->ts);
		return;
	case EV_PROCESS:
		return; /* told with its threads */
	case EV_NOTE:
		events__text(p, m, rec, "note");
		return;
	case EV_SHED:
		events__text(p, m, rec, ((const struct ev_shed *)rec)->out ? "left out" : "recorded again");
		return;
	case EV_SCENE:
		events__text(p, m, rec, "scene");
		return;
	case EV_FRAME:
		frame_tracks__mark(p, m, (const void *)rec);
		return;
	case EV_SWITCH:
		on_switch(p, m, (const void *)rec);
		return;
	case EV_WAKING:
		sched__waking(p, m, (const void *)rec);
		return;
	case EV_FORK:
	case EV_EXEC:
	case EV_EXIT:
	case EV_RENAME:
		tasks__event(p, m, rec);
		return;
	case EV_FAULT:
		on_fault(p, m, rec);
		return;
	case EV_SAMPLE:
		perfetto__sample(p, m, (const void *)rec);
		break;
	case EV_MEM_CALL:
		events__memory(p, m, (const void *)rec);
		break;
	case EV_COST:
		events__cost(p, m, (const void *)rec);
		break;
	case EV_EFFECT:
		events__effect(p, m, (const void *)rec);
		return;
	}
	events__generic(p, m, rec, d);
}

static int perfetto_event(struct exporter *e, const struct model *m, const struct ev_hdr *rec)
{
	struct perfetto *p = (struct perfetto *)e;
	const struct ev_desc *d = ev__desc(rec->kind);

	if (!d || ev__bytes(rec) < d->size)
		return 0; /* the reader has counted it */
	if (rec->kind == EV_INFO) {
		on_info(p, m);
		return status(p);
	}
	start(p, m, rec->ts);
	if (d->class == CLASS_SCHED && rec->cpu >= SCHED_CPUS) {
		p->unshown++; /* the importer would refuse the whole trace */
		return status(p);
	}
	if (d->shape != SHAPE_META)
		p->last_ts = perfetto__clip(p, max(p->last_ts, rec->ts));
	dispatch(p, m, rec, d);
	return status(p);
}

static int perfetto_frame(struct exporter *e, const struct model *m, const struct verdict *v)
{
	struct perfetto *p = (struct perfetto *)e;

	start(p, m, v->frame.start);
	frame_tracks__verdict(p, m, v);
	return status(p);
}

/* never a silent gap */
static void put_shortfalls(struct perfetto *p, const struct model *m)
{
	char text[96];

	if (p->gaps) {
		snprintf(text, sizeof(text), "%llu places where switches are missing", (unsigned long long)p->gaps);
		perfetto__message(p, m, p->last_ts, text);
	}
	if (p->unshown) {
		snprintf(
			text, sizeof(text), "%llu events not shown: no track for them", (unsigned long long)p->unshown);
		perfetto__message(p, m, p->last_ts, text);
	}
}

static int perfetto_end(struct exporter *e, const struct model *m, const struct report *r)
{
	struct perfetto *p = (struct perfetto *)e;

	start(p, m, 0);
	put_attributes(p, m);
	sched__flush(p);
	tasks__announce_all(p, m, p->last_ts);
	frame_tracks__end(p, m, p->last_ts);
	put_shortfalls(p, m);
	pb_sink__flush(&p->sink);
	return status(p);
}

static void perfetto_close(struct exporter *e)
{
	struct perfetto *p = (struct perfetto *)e;

	if (!p)
		return;
	pb_sink__close(&p->sink);
	iids__close(&p->iids);
	callstacks__close(&p->callstacks);
	tasks__close(&p->tasks);
	sched__close(p);
	free(p->streams);
	free(p);
}

struct exporter *perfetto__open(int fd, bool deflate)
{
	struct perfetto *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->base = (struct exporter){.ops = &exporter_perfetto, .fd = fd};
	p->names_gen = 1; /* 0 marks an empty slot of a cache */
	if (iids__open(&p->iids) || pb_sink__open(&p->sink, fd, TRACE_PACKET, deflate ? PACKET_COMPRESSED : 0)) {
		perfetto_close(&p->base);
		return NULL;
	}
	return &p->base;
}

static struct exporter *perfetto_open(int fd)
{
	return perfetto__open(fd, true);
}

const struct exporter_ops exporter_perfetto = {
	.name = "perfetto",
	.suffix = ".pftrace",
	.open = perfetto_open,
	.event = perfetto_event,
	.frame = perfetto_frame,
	.end = perfetto_end,
	.close = perfetto_close,
};
