/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The kind list in a recording's header: what the writer's events.def said, so that a reader of another version, or of
 * another hand, finds its way. docs/format.md describes the bytes.
 */
#ifndef REDFRAME_RECORDING_KINDS_H
#define REDFRAME_RECORDING_KINDS_H

#include "strings.h"

#define RECORDING_HEADER_MAX (1u << 20)

/* One kind, followed by n_fields × struct kind_field, then NUL-terminated strings: name, class, shape, cause, doc, the
 * text's name ("" where there is none); and for each field its name and unit. Zeroes up to `bytes`. */
struct kind_entry {
	u32 bytes; /* of the whole entry, a multiple of 8 */
	u8 id;
	u8 n_fields;
	u16 size; /* of the record's fixed part, header included */
};

struct kind_field {
	u16 offset;
	u8 size;
	u8 is_signed;
};

/* Appends the list to out; returns the number of kinds. out->oom where memory ran out. */
u32 kinds__encode(struct str *out);
/* Checks n entries in len bytes and notes each kind's fixed size. 0 or -EBADMSG. */
int kinds__decode(const char *list, size_t len, u32 n, u16 sizes[256]);

#endif
