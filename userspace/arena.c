/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "strings.h"
#include "verdict.h"

#define CHUNK 65536u

struct arena_chunk {
	struct arena_chunk *next;
	size_t size;
	char bytes[];
};

void *arena__get(struct arena *a, size_t bytes)
{
	struct arena_chunk *c = a->chunks;
	void *p;

	bytes = (bytes + 7) & ~(size_t)7;
	if (!c || c->size - a->used < bytes) {
		size_t size = max(bytes, (size_t)CHUNK);

		c = malloc(sizeof(*c) + size);
		if (!c)
			return NULL;
		c->next = a->chunks;
		c->size = size;
		a->chunks = c;
		a->used = 0;
	}
	p = memset(c->bytes + a->used, 0, bytes);
	a->used += bytes;
	return p;
}

char *arena__text(struct arena *a, const char *text)
{
	size_t n = strlen(text), room = n * 3 + 1; /* a bad byte becomes three */
	char *s = arena__get(a, room);

	if (s)
		utf8__sanitize(s, room, text, n);
	return s;
}

char *arena__fmt(struct arena *a, const char *fmt, ...)
{
	char buf[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	return arena__text(a, buf);
}

void arena__reset(struct arena *a)
{
	struct arena_chunk *c = a->chunks, *next;

	for (; c; c = next) {
		next = c->next;
		if (!next && c->size == CHUNK)
			break;
		free(c);
	}
	a->chunks = c;
	a->used = 0;
}

void arena__free(struct arena *a)
{
	arena__reset(a);
	free(a->chunks);
	a->chunks = NULL;
}
