/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What events.def says of each kind, as data: for dumps, exporters, counts and the kind list in a recording.
 */
#ifndef REDFRAME_EVENTS_DESC_H
#define REDFRAME_EVENTS_DESC_H

#include "common.h"

enum ev_shape { SHAPE_META, SHAPE_STATE, SHAPE_INSTANT, SHAPE_COUNTER, SHAPE_SPAN, SHAPE_WAIT, SHAPE_ASYNC };
extern const char *const shape_names[];

/* clang-format off */
#define UNITS(X) \
	X(NS) X(BYTES) X(COUNT) X(CALLS) X(ADDR) X(HEX) X(TID) X(CPU) X(PRIO) X(ID) X(OFFSET) X(ERRNO) X(FD) X(INO) \
	X(DEV) X(STATE) X(SYSCALL) X(FUTEX_OP) X(FAULT_FLAGS) X(SWITCH_FLAGS) X(WAKE_FLAGS) X(FRAME_MARK) X(CLASS) \
	X(URING_OP) X(ALLOC_FN) X(IRQ) X(SOFTIRQ) X(SEVERITY) X(PROT) X(PERCENT) X(FLAGS) X(STACK_REASON) X(CALL_FLAGS) X(TEXT)
enum ev_unit {
#define X(NAME) UNIT_##NAME,
	UNITS(X)
#undef X
};
/* clang-format on */
extern const char *const unit_names[];

struct ev_field {
	const char *name;
	u16 offset; /* from the start of the record */
	u8 size;    /* bytes; 1, 2, 4, 8, or the array's length for TEXT */
	bool is_signed;
	bool is_detail; /* not the duration, which an event has anyway, and not mere padding */
	enum ev_unit unit;
};

struct ev_desc {
	const char *name; /* "file_read" */
	const char *doc;
	enum ev_class class;
	enum ev_shape shape;
	enum cause cause;
	u16 size;      /* of the fixed part, header included; a multiple of 8 */
	bool has_text; /* bytes follow the fixed part */
	const char *text_name;
	const struct ev_field *fields;
	int n_fields;
};

extern const char *const class_names[CLASS_COUNT];

/* NULL for a kind this build does not know */
const struct ev_desc *ev__desc(u8 kind);

/* Whether later records may refer to what this kind tells: what begins in the midst of a stream needs it. */
bool ev__is_definition(u8 kind);

static inline size_t ev__bytes(const struct ev_hdr *h)
{
	return h->words * 8u;
}

/* duration of a SPAN, WAIT or ASYNC in ns; 0 for the others. ts - dur is the begin. */
u64 ev__dur(const struct ev_hdr *h);

/* a field's value; signed ones sign-extended. Not for TEXT. */
s64 ev__value(const struct ev_hdr *h, const struct ev_field *f);

/* The text of a record, NUL-terminated for certain: copies at most size - 1 bytes, returns the length copied.
 * Bytes after the first NUL are kept (PATH and PROCESS use NUL as a separator): the length says where it ends,
 * without the padding. Not sanitised: comes from the game. */
size_t ev__text(const struct ev_hdr *h, char *buf, size_t size);

/* How many calls, faults, waits, switches this record stands for in `info`'s counts: design in interface.md.
 * Switches count only where SWITCH_GAME is set. */
u64 ev__count(const struct ev_hdr *h);

/* A value as text by its unit: "preadv2", "FUTEX_WAIT|PRIVATE", "0x7f…", "1.234 ms" is not made here: NS are plain.
 * Returns buf. */
const char *ev__format(const struct ev_hdr *h, const struct ev_field *f, char *buf, size_t size);

/* One line, "ts tid cpu kind field=value …", escaped for a terminal. Returns the length. */
size_t ev__dump(const struct ev_hdr *h, char *buf, size_t size);

#endif
