// SPDX-License-Identifier: GPL-2.0-only
/* Track descriptors, track events and their annotations, as packets. */
#include "perfetto.h"
#include "strings.h"

#include <math.h>
#include <string.h>

#define TEXT_MAX 1024 /* bytes of one string from the recording */

u64 perfetto__new_track(struct perfetto *p)
{
	return ++p->last_uuid;
}

static void describe_owner(struct pb *b, const struct track_desc *d)
{
	size_t mark;

	if (d->tid) {
		mark = pb__begin(b, TRACK_THREAD);
		pb__uint(b, THREAD_DESC_PID, d->tgid);
		pb__uint(b, THREAD_DESC_TID, d->tid);
		pb__end(b, mark);
	} else if (d->tgid) {
		mark = pb__begin(b, TRACK_PROCESS);
		pb__uint(b, PROCESS_DESC_PID, d->tgid);
		if (d->process_name)
			pb__str(b, PROCESS_DESC_NAME, d->process_name);
		pb__end(b, mark);
	}
}

static void describe_counter(struct pb *b, const struct track_desc *d)
{
	size_t mark = pb__begin(b, TRACK_COUNTER);

	if (d->unit)
		pb__uint(b, COUNTER_UNIT, d->unit);
	if (d->unit_name)
		pb__str(b, COUNTER_UNIT_NAME, d->unit_name);
	pb__end(b, mark);
}

void perfetto__describe(struct perfetto *p, const struct track_desc *d)
{
	struct pb *b = perfetto__packet_begin(p, 0);
	size_t mark = pb__begin(b, PACKET_TRACK_DESCRIPTOR);

	pb__uint(b, TRACK_UUID, d->uuid);
	if (d->name)
		pb__str(b, TRACK_NAME, d->name);
	if (d->parent != TRACKS_ROOT)
		pb__uint(b, TRACK_PARENT, d->parent);
	describe_owner(b, d);
	if (d->counter)
		describe_counter(b, d);
	else
		pb__uint(b, TRACK_CHILD_ORDERING, CHILDREN_EXPLICIT);
	pb__uint(b, TRACK_RANK, d->rank);
	if (!d->tgid)
		pb__uint(b, TRACK_SIBLING_MERGE, SIBLING_MERGE_NONE);
	pb__end(b, mark);
	perfetto__packet_end(p);
}

u64 perfetto__process_track(struct perfetto *p, const struct model *m)
{
	u32 game = model__game(m);
	const struct process *process = game ? model__find_process(m, game) : NULL;

	struct track_desc d = {.tgid = game, .name = "redframe"};

	if (p->process_track)
		return p->process_track;
	if (process && process->name[0])
		d.process_name = process->name;
	d.uuid = p->process_track = perfetto__new_track(p);
	perfetto__describe(p, &d);
	return p->process_track;
}

#define RANK_COUNTERS 1000 /* after all else */

u64 perfetto__counter(
	struct perfetto *p, const struct model *m, const char *name, enum counter_unit unit, const char *unit_name)
{
	struct track_desc d = {.name = name, .counter = true, .unit = unit, .unit_name = unit_name};

	d.parent = perfetto__process_track(p, m);
	d.uuid = perfetto__new_track(p);
	d.rank = RANK_COUNTERS + (u32)d.uuid;
	perfetto__describe(p, &d);
	return d.uuid;
}

u64 perfetto__clip(const struct perfetto *p, u64 ts)
{
	ts = max(ts, p->base.from);
	return p->base.to ? min(ts, p->base.to) : ts;
}

void perfetto__event_begin(struct perfetto *p, u64 ts, enum track_event_type type, u64 track)
{
	struct pb *b = perfetto__packet_begin(p, type == TYPE_BEGIN || type == TYPE_INSTANT ? SEQ_NEEDS_STATE : 0);

	pb__uint(b, PACKET_TIMESTAMP, perfetto__clip(p, ts));
	p->mark_event = pb__begin(b, PACKET_TRACK_EVENT);
	pb__uint(b, EVENT_TYPE, type);
	pb__uint(b, EVENT_TRACK, track);
	p->annotation_field = EVENT_ANNOTATIONS;
}

void perfetto__event_end(struct perfetto *p)
{
	pb__end(p->pb, p->mark_event);
	iids__send(&p->iids, p->pb);
	perfetto__packet_end(p);
}

static void interned(struct perfetto *p, enum intern_kind kind, u32 iid_field, u32 field, const char *s, size_t n)
{
	u64 iid = iids__id(&p->iids, kind, s, n);

	if (iid)
		pb__uint(p->pb, iid_field, iid);
	else
		pb__bytes(p->pb, field, s, n);
}

static void constant(struct perfetto *p, enum intern_kind kind, u32 iid_field, u32 field, const char *s)
{
	struct iid_memo *memo = iids__memo(&p->iids, s, kind);

	if (!memo->iid)
		memo->iid = iids__id(&p->iids, kind, s, strlen(s));
	if (memo->iid)
		pb__uint(p->pb, iid_field, memo->iid);
	else
		pb__str(p->pb, field, s);
}

void perfetto__event_name(struct perfetto *p, const char *category, const char *name)
{
	constant(p, INTERN_CATEGORY, EVENT_CATEGORY_IIDS, EVENT_CATEGORIES, category);
	constant(p, INTERN_NAME, EVENT_NAME_IID, EVENT_NAME, name);
}

void perfetto__event_own_name(struct perfetto *p, const char *category, const char *name)
{
	constant(p, INTERN_CATEGORY, EVENT_CATEGORY_IIDS, EVENT_CATEGORIES, category);
	pb__str(p->pb, EVENT_NAME, name);
}

void perfetto__message(struct perfetto *p, const struct model *m, u64 ts, const char *name)
{
	perfetto__event_begin(p, ts, TYPE_INSTANT, perfetto__process_track(p, m));
	perfetto__event_own_name(p, "redframe", name);
	perfetto__event_end(p);
}

void perfetto__slice_end(struct perfetto *p, u64 ts, u64 track)
{
	perfetto__event_begin(p, ts, TYPE_END, track);
	perfetto__event_end(p);
}

void perfetto__count(struct perfetto *p, u64 ts, u64 track, s64 value)
{
	perfetto__event_begin(p, ts, TYPE_COUNTER, track);
	pb__int(p->pb, EVENT_COUNTER, value);
	perfetto__event_end(p);
}

void perfetto__count_double(struct perfetto *p, u64 ts, u64 track, double value)
{
	perfetto__event_begin(p, ts, TYPE_COUNTER, track);
	pb__double(p->pb, EVENT_DOUBLE_COUNTER, value);
	perfetto__event_end(p);
}

static size_t note_begin(struct perfetto *p, const char *name)
{
	size_t mark = pb__begin(p->pb, p->annotation_field);

	if (name)
		constant(p, INTERN_ANNOTATION, ANNOTATION_NAME_IID, ANNOTATION_NAME, name);
	return mark;
}

void perfetto__note_int(struct perfetto *p, const char *name, s64 v)
{
	size_t mark = note_begin(p, name);

	pb__int(p->pb, ANNOTATION_INT, v);
	pb__end(p->pb, mark);
}

void perfetto__note_uint(struct perfetto *p, const char *name, u64 v)
{
	size_t mark = note_begin(p, name);

	pb__uint(p->pb, ANNOTATION_UINT, v);
	pb__end(p->pb, mark);
}

void perfetto__note_hex(struct perfetto *p, const char *name, u64 v)
{
	size_t mark = note_begin(p, name);

	pb__uint(p->pb, ANNOTATION_POINTER, v);
	pb__end(p->pb, mark);
}

void perfetto__note_bool(struct perfetto *p, const char *name, bool v)
{
	size_t mark = note_begin(p, name);

	pb__uint(p->pb, ANNOTATION_BOOL, v);
	pb__end(p->pb, mark);
}

void perfetto__note_double(struct perfetto *p, const char *name, double v)
{
	size_t mark = note_begin(p, name);

	pb__double(p->pb, ANNOTATION_DOUBLE, v);
	pb__end(p->pb, mark);
}

void perfetto__note_text(struct perfetto *p, const char *name, const char *s, size_t n)
{
	size_t mark = note_begin(p, name);
	char text[TEXT_MAX];

	n = utf8__sanitize(text, sizeof(text), s, n);
	interned(p, INTERN_VALUE, ANNOTATION_STRING_IID, ANNOTATION_STRING, text, n);
	pb__end(p->pb, mark);
}

void perfetto__note_word(struct perfetto *p, const char *name, const struct ev_hdr *rec, const struct ev_field *f)
{
	struct iid_memo *memo = iids__memo(&p->iids, f, (u64)ev__value(rec, f));
	u64 iid = memo->iid;
	char buf[256];

	if (!iid) {
		ev__format(rec, f, buf, sizeof(buf));
		iid = memo->iid = iids__id(&p->iids, INTERN_VALUE, buf, strlen(buf));
	}
	if (iid) {
		size_t mark = note_begin(p, name);

		pb__uint(p->pb, ANNOTATION_STRING_IID, iid);
		pb__end(p->pb, mark);
	} else {
		perfetto__note_utf8(p, name, buf);
	}
}

void perfetto__note_utf8(struct perfetto *p, const char *name, const char *s)
{
	size_t mark = note_begin(p, name);

	interned(p, INTERN_VALUE, ANNOTATION_STRING_IID, ANNOTATION_STRING, s, strlen(s));
	pb__end(p->pb, mark);
}

void perfetto__note_str(struct perfetto *p, const char *name, const char *s)
{
	if (s)
		perfetto__note_text(p, name, s, strlen(s));
}

struct note_mark perfetto__note_open(struct perfetto *p, const char *name, bool array)
{
	struct note_mark m = {.outer = note_begin(p, name), .field = p->annotation_field};

	p->annotation_field = array ? ANNOTATION_ARRAY : ANNOTATION_DICT;
	return m;
}

void perfetto__note_close(struct perfetto *p, struct note_mark m)
{
	pb__end(p->pb, m.outer);
	p->annotation_field = m.field;
}
