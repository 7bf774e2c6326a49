/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Protobuf wire format into a fixed buffer, and a sink that writes what gathers in it to an fd, deflated or not.
 * Nothing is allocated after pb_sink__open.
 */
#ifndef REDFRAME_PROTOBUF_H
#define REDFRAME_PROTOBUF_H

#include "common.h"

enum pb_wire { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2 };
#define PB_VARINT_MAX 10 /* bytes */

struct pb {
	u8 *buf;
	size_t len, cap;
	bool full; /* something did not fit: what the buffer holds is no whole message */
};

size_t pb__put_varint(u8 *p, u64 v); /* no check of room; returns its length */
void pb__long_varint(struct pb *b, u64 v);

/* Here, since most are one byte long, and a trace is made of them. */
static inline void pb__varint(struct pb *b, u64 v)
{
	if (v < 0x80 && b->len < b->cap)
		b->buf[b->len++] = (u8)v;
	else
		pb__long_varint(b, v);
}

static inline void pb__tag(struct pb *b, u32 field, enum pb_wire wire)
{
	pb__varint(b, (u64)field << 3 | wire);
}

static inline void pb__uint(struct pb *b, u32 field, u64 v)
{
	pb__tag(b, field, PB_VARINT);
	pb__varint(b, v);
}

void pb__int(struct pb *b, u32 field, s64 v); /* int32 and int64: a negative one takes ten bytes */
void pb__fixed64(struct pb *b, u32 field, u64 v);
void pb__double(struct pb *b, u32 field, double v);
void pb__bytes(struct pb *b, u32 field, const void *bytes, size_t n);
void pb__str(struct pb *b, u32 field, const char *s);

/* A message, or a packed array, inside another: give what begin returned to end. */
size_t pb__begin(struct pb *b, u32 field);
void pb__end(struct pb *b, size_t mark);

/* Messages of one repeated field on their way to a file. Deflating and writing is a thread's work: it costs as much as
 * making the messages. While it works on one batch, the next one fills. */
struct pb_sink {
	struct pb pb;
	int error; /* the first -errno that is known of; nothing is written after it */
	u32 field; /* the file's repeated field */
	size_t mark;
	struct pb_writer *writer;
};

/* Does not take over fd. deflated: the field in such a message that holds many of them, deflated; 0: they are written
 * as they are. 0 or -ENOMEM. */
int pb_sink__open(struct pb_sink *s, int fd, u32 field, u32 deflated);
void pb_sink__close(struct pb_sink *s); /* what was not flushed may be missing */
/* One message, at most PB_SINK_MAX bytes. Returns where its fields go; end returns s->error. */
#define PB_SINK_MAX (512u << 10)
struct pb *pb_sink__begin(struct pb_sink *s);
int pb_sink__end(struct pb_sink *s);
int pb_sink__flush(struct pb_sink *s);
u64 pb_sink__written(const struct pb_sink *s); /* bytes in the file, after a flush */

#endif
