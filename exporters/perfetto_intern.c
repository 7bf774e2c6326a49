// SPDX-License-Identifier: GPL-2.0-only
#include "perfetto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int iids__open(struct iids *in)
{
	*in = (struct iids){0};
	in->entries = calloc(INTERN_ENTRIES, sizeof(*in->entries));
	in->slots = calloc(INTERN_SLOTS, sizeof(*in->slots));
	in->bytes = malloc(INTERN_BYTES);
	if (in->entries && in->slots && in->bytes)
		return 0;
	iids__close(in);
	return -ENOMEM;
}

void iids__close(struct iids *in)
{
	free(in->entries);
	free(in->slots);
	free(in->bytes);
	*in = (struct iids){0};
}

void iids__clear(struct iids *in)
{
	memset(in->slots, 0, INTERN_SLOTS * sizeof(*in->slots));
	memset(in->memo, 0, sizeof(in->memo));
	in->n = in->sent = 0;
	in->used = 0;
}

bool iids__nearly_full(const struct iids *in)
{
	return in->n > INTERN_ENTRIES / 4 * 3 || in->used > INTERN_BYTES / 4 * 3;
}

static u32 hash_of(enum intern_kind kind, const char *s, size_t n)
{
	u32 h = 2166136261u + kind;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (u8)s[i]) * 16777619u;
	return h;
}

static bool same(
	const struct iids *in, const struct iid_entry *e, u32 hash, enum intern_kind kind, const char *s, size_t n)
{
	return e->hash == hash && e->kind == kind && e->len == n && !memcmp(in->bytes + e->offset, s, n);
}

u64 iids__id(struct iids *in, enum intern_kind kind, const char *s, size_t n)
{
	u32 hash, slot;

	if (n > INTERN_LONGEST)
		return 0;
	hash = hash_of(kind, s, n);
	for (slot = hash & (INTERN_SLOTS - 1); in->slots[slot]; slot = (slot + 1) & (INTERN_SLOTS - 1))
		if (same(in, &in->entries[in->slots[slot] - 1], hash, kind, s, n))
			return in->slots[slot];
	if (in->n == INTERN_ENTRIES || INTERN_BYTES - in->used < n)
		return 0;
	in->entries[in->n++] = (struct iid_entry){.hash = hash, .offset = (u32)in->used, .len = (u16)n, .kind = kind};
	if (n)
		memcpy(in->bytes + in->used, s, n);
	in->used += n;
	in->slots[slot] = (u16)in->n;
	return in->n;
}

struct iid_memo *iids__memo(struct iids *in, const void *who, u64 value)
{
	u64 h = ((uintptr_t)who ^ value * 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;
	struct iid_memo *memo = &in->memo[(h >> 32) % IID_MEMO];

	if (memo->who != who || memo->value != value)
		*memo = (struct iid_memo){.who = who, .value = value};
	return memo;
}

void iids__send(struct iids *in, struct pb *b)
{
	static const u32 fields[] = {
		[INTERN_CATEGORY] = INTERNED_CATEGORY,
		[INTERN_NAME] = INTERNED_NAME,
		[INTERN_ANNOTATION] = INTERNED_ANNOTATION,
		[INTERN_VALUE] = INTERNED_VALUE,
	};
	size_t data, item;

	if (in->sent == in->n)
		return;
	data = pb__begin(b, PACKET_INTERNED_DATA);
	for (; in->sent < in->n; in->sent++) {
		const struct iid_entry *e = &in->entries[in->sent];

		item = pb__begin(b, fields[e->kind]);
		pb__uint(b, INTERNED_IID, in->sent + 1);
		pb__bytes(b, INTERNED_STR, in->bytes + e->offset, e->len);
		pb__end(b, item);
	}
	pb__end(b, data);
}
