/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdlib.h>
#include <string.h>

#include "intern.h"

#define INTERN_CUT 1024u

u64 hash64(u64 x)
{
	x ^= x >> 31;
	x *= 0x9e3779b97f4a7c15ULL;
	x ^= x >> 29;
	x *= 0xd6e8feb86659fd93ULL;
	return x ^ x >> 32;
}

u64 hash_bytes(const void *p, size_t n)
{
	const u8 *b = p;
	u64 h = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * 0x100000001b3ULL;
	return hash64(h);
}

static u32 *find(const struct intern *in, const char *text, size_t n)
{
	u32 i = hash_bytes(text, n) & (in->n_slots - 1);

	while (in->slots[i]) {
		const char *t = in->texts[in->slots[i]];

		if (strlen(t) == n && !memcmp(t, text, n))
			break;
		i = (i + 1) & (in->n_slots - 1);
	}
	return &in->slots[i];
}

static int grow(struct intern *in)
{
	u32 cap = in->cap ? in->cap * 2 : 64;
	char **texts = realloc(in->texts, cap * sizeof(*texts));
	u32 *slots = calloc(cap * 2, sizeof(*slots));

	if (texts)
		in->texts = texts;
	if (!texts || !slots) {
		free(slots);
		return -1;
	}
	free(in->slots);
	in->slots = slots;
	in->n_slots = cap * 2;
	in->cap = cap;
	if (!in->n) {
		in->texts[0] = NULL;
		in->n = 1;
	}
	for (u32 id = 1; id < in->n; id++)
		*find(in, in->texts[id], strlen(in->texts[id])) = id;
	return 0;
}

static u32 add(struct intern *in, u32 *slot, const char *text, size_t n)
{
	char *copy = malloc(n + 1);

	if (!copy)
		return 0;
	memcpy(copy, text, n);
	copy[n] = 0;
	in->bytes += n + 1;
	in->texts[in->n] = copy;
	return *slot = in->n++;
}

u32 intern__id(struct intern *in, const char *text)
{
	size_t n = strnlen(text, INTERN_CUT);
	u32 *slot;

	if (in->n == in->cap && grow(in))
		return 0;
	slot = find(in, text, n);
	if (*slot)
		return *slot;
	if (in->n >= INTERN_MAX_TEXTS - 1 || in->bytes + n > INTERN_MAX_BYTES) {
		text = "(one of very many names)";
		n = strlen(text);
		slot = find(in, text, n);
		if (*slot)
			return *slot;
	}
	return add(in, slot, text, n);
}

const char *intern__text(const struct intern *in, u32 id)
{
	return id && id < in->n ? in->texts[id] : NULL;
}

void intern__free(struct intern *in)
{
	for (u32 i = 1; i < in->n; i++)
		free(in->texts[i]);
	free(in->texts);
	free(in->slots);
	memset(in, 0, sizeof(*in));
}
