/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#include "events_desc.h"

const char *const cause_names[CAUSE_COUNT] = {
#define X(NAME, name) [CAUSE_##NAME] = #name,
	CAUSES(X)
#undef X
};

const char *const class_names[CLASS_COUNT] = {
#define X(NAME, name) [CLASS_##NAME] = #name,
	EV_CLASSES(X)
#undef X
};

const char *const unit_names[] = {
#define X(NAME) [UNIT_##NAME] = #NAME,
	UNITS(X)
#undef X
};

const char *const shape_names[] = {
	[SHAPE_META] = "META",
	[SHAPE_STATE] = "STATE",
	[SHAPE_INSTANT] = "INSTANT",
	[SHAPE_COUNTER] = "COUNTER",
	[SHAPE_SPAN] = "SPAN",
	[SHAPE_WAIT] = "WAIT",
	[SHAPE_ASYNC] = "ASYNC",
};

/* events.def says the class in lower case */
enum {
#define X(NAME, name) class_of_##name = CLASS_##NAME,
	EV_CLASSES(X)
#undef X
};

/* Every record is whole words without a hole: the fields' sizes add up to the struct's. */
#define EVENT(id, KIND, kind, group, shape, cause, doc)                                                                \
	_Static_assert(sizeof(struct ev_##kind) % 8 == 0, #kind " is not whole words");                                \
	_Static_assert(sizeof(struct ev_##kind) == sizeof(struct ev_hdr)
#define FIELD(type, name, unit) +sizeof(struct { type name; })
#define TEXT(name)
#define END(kind) , #kind " has a hole");
#include "events.def"
#undef EVENT
#undef FIELD
#undef TEXT
#undef END

/* What the preprocessor can say of the fields: all kinds in a row, each ended by an entry of size 0. */
#define IS_SIGNED(type) ((type)-1 < (type)1)
static struct {
	char name[20]; /* "comm[16]" at first */
	u8 size, is_signed, unit;
} raw[] = {
#define EVENT(id, KIND, kind, group, shape, cause, doc)
#define FIELD(type, name, unit) {#name, sizeof(struct { type name; }), IS_SIGNED(type), UNIT_##unit},
#define TEXT(name)
#define END(kind) {.size = 0},
#include "events.def"
#undef EVENT
#undef FIELD
#undef TEXT
#undef END
};

static struct ev_field fields[ARRAY_SIZE(raw)];

static struct {
	u8 id;
	struct ev_desc desc;
} kinds[] = {
#define EVENT(id_, KIND, kind, group, shape_, cause_, doc_)                                                            \
	{                                                                                                              \
		id_,                                                                                                   \
		{                                                                                                      \
			.name = #kind, .doc = doc_, .class = (enum ev_class)class_of_##group, .shape = SHAPE_##shape_, \
			.cause = CAUSE_##cause_, .size = sizeof(struct ev_##kind),
#define FIELD(type, name, unit)
#define TEXT(name_) .has_text = true, .text_name = #name_,
#define END(kind)                                                                                                      \
	}                                                                                                              \
	}                                                                                                              \
	,
#include "events.def"
#undef EVENT
#undef FIELD
#undef TEXT
#undef END
};

static const struct ev_desc *by_kind[256];

/* The preprocessor can neither cut "comm[16]" nor name the struct in FIELD, so names and offsets are made here, before
 * main; that records have no holes makes the offsets running sums. */
__attribute__((constructor)) static void make_tables(void)
{
	size_t f = 0, k;
	u16 offset;

	for (k = 0; k < ARRAY_SIZE(kinds); k++, f++) {
		struct ev_desc *d = &kinds[k].desc;

		d->fields = &fields[f];
		for (offset = sizeof(struct ev_hdr); raw[f].size; f++, d->n_fields++) {
			raw[f].name[strcspn(raw[f].name, "[")] = '\0';
			fields[f] = (struct ev_field){
				.name = raw[f].name,
				.offset = offset,
				.size = raw[f].size,
				.is_signed = raw[f].is_signed,
				.is_detail = strcmp(raw[f].name, "dur") && strcmp(raw[f].name, "zero"),
				.unit = raw[f].unit,
			};
			offset += raw[f].size;
		}
		by_kind[kinds[k].id] = d;
	}
}

const struct ev_desc *ev__desc(u8 kind)
{
	return by_kind[kind];
}

u64 ev__dur(const struct ev_hdr *h)
{
	const struct ev_desc *d = ev__desc(h->kind);
	u64 dur;

	/* dur is the first field of all three shapes */
	if (!d || (d->shape != SHAPE_SPAN && d->shape != SHAPE_WAIT && d->shape != SHAPE_ASYNC) ||
		ev__bytes(h) < d->size)
		return 0;
	memcpy(&dur, h + 1, sizeof(dur));
	return min(dur, h->ts); /* nothing began before time did: the begin never wraps */
}

s64 ev__value(const struct ev_hdr *h, const struct ev_field *f)
{
	const char *at = (const char *)h + f->offset;
	u64 v = 0;

	if (f->size > sizeof(v) || f->offset + f->size > ev__bytes(h))
		return 0;
	memcpy(&v, at, f->size); /* little-endian, as on disk */
	if (f->is_signed && f->size < 8 && v >> (f->size * 8 - 1))
		v |= ~0ULL << (f->size * 8);
	return (s64)v;
}

size_t ev__text(const struct ev_hdr *h, char *buf, size_t size)
{
	const struct ev_desc *d = ev__desc(h->kind);
	const char *text;
	size_t len;

	if (!size)
		return 0;
	buf[0] = '\0';
	if (!d || !d->has_text || ev__bytes(h) <= d->size)
		return 0;
	text = (const char *)h + d->size;
	len = ev__bytes(h) - d->size;
	while (len && !text[len - 1])
		len--;
	len = min(len, size - 1);
	memcpy(buf, text, len);
	buf[len] = '\0';
	return len;
}

bool ev__is_definition(u8 kind)
{
	const struct ev_desc *d = ev__desc(kind);

	switch (kind) {
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

u64 ev__count(const struct ev_hdr *h)
{
	const struct ev_desc *d = ev__desc(h->kind);

	if (!d || d->shape == SHAPE_META || ev__bytes(h) < d->size)
		return 0;
	switch (h->kind) {
	case EV_FRAME: /* the model knows better where a game has only ENDs */
		return ((const struct ev_frame *)h)->mark != FRAME_END;
	case EV_SWITCH:
		return !!(((const struct ev_switch *)h)->flags & SWITCH_GAME);
	case EV_ALLOC_SUM:
		return ((const struct ev_alloc_sum *)h)->calls;
	case EV_WAKING:
	case EV_FORK:
	case EV_EXEC:
	case EV_EXIT:
	case EV_RENAME:
	case EV_MIGRATE:
	case EV_URING_SUBMIT:
	case EV_FREE:
	case EV_ALLOC_SAMPLE: /* counted by its ALLOC or ALLOC_SUM */
	case EV_MESSAGE:
	case EV_COST:
	case EV_EFFECT:
	case EV_MEMORY:
	case EV_CPU_USE:
		return 0;
	}
	return 1;
}
