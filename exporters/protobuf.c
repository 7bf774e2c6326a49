// SPDX-License-Identifier: GPL-2.0-only
#include "protobuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

#define BATCH_BYTES (256u << 10) /* deflated together */
#define VARINT_MAX  10

static bool room(struct pb *b, size_t n)
{
	if (b->cap - b->len < n)
		b->full = true;
	return !b->full;
}

static size_t put_varint(u8 *p, u64 v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		p[n++] = (u8)v | 0x80;
	p[n++] = (u8)v;
	return n;
}

void pb__varint(struct pb *b, u64 v)
{
	if (room(b, VARINT_MAX))
		b->len += put_varint(b->buf + b->len, v);
}

static void put_tag(struct pb *b, u32 field, enum wire wire)
{
	pb__varint(b, (u64)field << 3 | wire);
}

void pb__uint(struct pb *b, u32 field, u64 v)
{
	put_tag(b, field, WIRE_VARINT);
	pb__varint(b, v);
}

void pb__int(struct pb *b, u32 field, s64 v)
{
	pb__uint(b, field, (u64)v);
}

void pb__fixed64(struct pb *b, u32 field, u64 v)
{
	put_tag(b, field, WIRE_FIXED64);
	if (!room(b, 8))
		return;
	for (int i = 0; i < 8; i++)
		b->buf[b->len++] = (u8)(v >> (8 * i));
}

void pb__double(struct pb *b, u32 field, double v)
{
	u64 bits;

	memcpy(&bits, &v, sizeof(bits));
	pb__fixed64(b, field, bits);
}

void pb__bytes(struct pb *b, u32 field, const void *bytes, size_t n)
{
	put_tag(b, field, WIRE_BYTES);
	pb__varint(b, n);
	if (!n || !room(b, n))
		return;
	memcpy(b->buf + b->len, bytes, n);
	b->len += n;
}

void pb__str(struct pb *b, u32 field, const char *s)
{
	pb__bytes(b, field, s, strlen(s));
}

size_t pb__begin(struct pb *b, u32 field)
{
	put_tag(b, field, WIRE_BYTES);
	if (room(b, 1))
		b->len++; /* the length: one byte for most; pb__end makes room for more */
	return b->len;
}

void pb__end(struct pb *b, size_t mark)
{
	u8 head[VARINT_MAX];
	size_t n, bytes;

	if (b->full)
		return;
	bytes = b->len - mark;
	n = put_varint(head, bytes);
	if (n > 1) {
		if (!room(b, n - 1))
			return;
		memmove(b->buf + mark + n - 1, b->buf + mark, bytes);
		b->len += n - 1;
	}
	memcpy(b->buf + mark - 1, head, n);
}

int pb_sink__open(struct pb_sink *s, int fd, u32 field, u32 deflated)
{
	z_stream *z = NULL;

	*s = (struct pb_sink){.fd = fd, .field = field, .deflated = deflated};
	s->pb.cap = BATCH_BYTES + PB_SINK_MAX;
	s->pb.buf = malloc(s->pb.cap);
	if (!s->pb.buf)
		goto nomem;
	if (!deflated)
		return 0;
	s->z = z = calloc(1, sizeof(*z));
	if (!z)
		goto nomem;
	if (deflateInit(z, Z_BEST_SPEED) != Z_OK) {
		free(z);
		s->z = NULL;
		goto nomem;
	}
	s->out_cap = deflateBound(z, s->pb.cap);
	s->out = malloc(s->out_cap);
	if (s->out)
		return 0;
nomem:
	pb_sink__close(s);
	return -ENOMEM;
}

void pb_sink__close(struct pb_sink *s)
{
	if (s->z)
		deflateEnd(s->z);
	free(s->z);
	free(s->out);
	free(s->pb.buf);
	*s = (struct pb_sink){.fd = -1};
}

static void write_all(struct pb_sink *s, const u8 *p, size_t n)
{
	while (n && !s->error) {
		ssize_t done = write(s->fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			s->error = done < 0 ? -errno : -EIO;
			return;
		}
		p += done;
		n -= (size_t)done;
		s->written += (u64)done;
	}
}

/* Sent as FIELD { DEFLATED: bytes }, whose two heads are written by hand before what deflate made. */
static void write_deflated(struct pb_sink *s)
{
	u8 inner[2 * VARINT_MAX], outer[2 * VARINT_MAX];
	size_t n_inner, n_outer, bytes;
	z_stream *z = s->z;

	deflateReset(z);
	z->next_in = s->pb.buf;
	z->avail_in = (uInt)s->pb.len;
	z->next_out = s->out;
	z->avail_out = (uInt)s->out_cap;
	if (deflate(z, Z_FINISH) != Z_STREAM_END) {
		s->error = -EIO;
		return;
	}
	bytes = s->out_cap - z->avail_out;
	n_inner = put_varint(inner, (u64)s->deflated << 3 | WIRE_BYTES);
	n_inner += put_varint(inner + n_inner, bytes);
	n_outer = put_varint(outer, (u64)s->field << 3 | WIRE_BYTES);
	n_outer += put_varint(outer + n_outer, n_inner + bytes);
	write_all(s, outer, n_outer);
	write_all(s, inner, n_inner);
	write_all(s, s->out, bytes);
}

int pb_sink__flush(struct pb_sink *s)
{
	if (!s->error && s->pb.len && s->z)
		write_deflated(s);
	else if (!s->error)
		write_all(s, s->pb.buf, s->pb.len);
	s->pb.len = 0;
	return s->error;
}

struct pb *pb_sink__begin(struct pb_sink *s)
{
	s->mark = pb__begin(&s->pb, s->field);
	return &s->pb;
}

int pb_sink__end(struct pb_sink *s)
{
	pb__end(&s->pb, s->mark);
	if (s->pb.full && !s->error)
		s->error = -EMSGSIZE;
	if (s->pb.len >= BATCH_BYTES && !s->error)
		pb_sink__flush(s);
	return s->error;
}
