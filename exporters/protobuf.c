// SPDX-License-Identifier: GPL-2.0-only
#include "protobuf.h"

#include <string.h>

static bool room(struct pb *b, size_t n)
{
	if (b->cap - b->len < n)
		b->full = true;
	return !b->full;
}

size_t pb__put_varint(u8 *p, u64 v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		p[n++] = (u8)v | 0x80;
	p[n++] = (u8)v;
	return n;
}

void pb__long_varint(struct pb *b, u64 v)
{
	if (room(b, PB_VARINT_MAX))
		b->len += pb__put_varint(b->buf + b->len, v);
}

void pb__int(struct pb *b, u32 field, s64 v)
{
	pb__uint(b, field, (u64)v);
}

void pb__fixed64(struct pb *b, u32 field, u64 v)
{
	pb__tag(b, field, PB_FIXED64);
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
	pb__tag(b, field, PB_BYTES);
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
	pb__tag(b, field, PB_BYTES);
	if (room(b, 1))
		b->len++; /* the length: one byte for most; pb__end makes room for more */
	return b->len;
}

void pb__end(struct pb *b, size_t mark)
{
	u8 head[PB_VARINT_MAX];
	size_t n, bytes;

	if (b->full)
		return;
	bytes = b->len - mark;
	n = pb__put_varint(head, bytes);
	if (n > 1) {
		if (!room(b, n - 1))
			return;
		memmove(b->buf + mark + n - 1, b->buf + mark, bytes);
		b->len += n - 1;
	}
	memcpy(b->buf + mark - 1, head, n);
}
