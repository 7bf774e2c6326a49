// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apart.h"
#include "demangle.h"
#include "events_desc.h"
#include "jit.h"
#include "name_cache.h"
#include "recording.h"
#include "sources.h"
#include "symbolize.h"
#include "pe_modules.h"
#include "symbols.h"

/* ---- the addresses ---- */

#define ADDRESSES_MAX (1u << 18)

/* Open addressing; 0 is free. */
struct addresses {
	u64 *slots; /* 2 * ADDRESSES_MAX */
	u32 n, beyond;
	struct jit *jit;
};

static void want(struct addresses *a, u64 addr)
{
	u32 mask = 2 * ADDRESSES_MAX - 1, i = (addr * 0x9e3779b97f4a7c15ULL) >> 32 & mask;

	if (!addr)
		return;
	for (; a->slots[i]; i = (i + 1) & mask)
		if (a->slots[i] == addr)
			return;
	if (a->n == ADDRESSES_MAX) {
		a->beyond++;
		return;
	}
	a->slots[i] = addr;
	a->n++;
}

/* code that ran at ts */
static void want_code(struct addresses *a, u64 addr, u64 ts)
{
	if (a->jit)
		jit__id(a->jit, addr, ts);
	want(a, addr);
}

/* Fields by what they mean: code addresses and lock words are named ip, caller, and addr of a lock. */
static void want_of(struct addresses *a, const struct ev_hdr *h)
{
	switch (h->kind) {
	case EV_SAMPLE:
		want_code(a, ((const struct ev_sample *)h)->ip, h->ts);
		break;
	case EV_LOCK_WAIT:
		want(a, ((const struct ev_lock_wait *)h)->addr);
		want_code(a, ((const struct ev_lock_wait *)h)->ip, h->ts);
		break;
	case EV_FAULT:
		want_code(a, ((const struct ev_fault *)h)->ip, h->ts);
		break;
	case EV_CALL:
		if (!(((const struct ev_call *)h)->flags & CALL_KERNEL)) /* those are named from kallsyms */
			want(a, ((const struct ev_call *)h)->addr);
		break;
	case EV_ALLOC_SAMPLE:
		want(a, ((const struct ev_alloc_sample *)h)->caller);
		break;
	case EV_ALLOC:
		want_code(a, ((const struct ev_alloc *)h)->caller, h->ts);
		break;
	}
}

static int collect(struct addresses *a, int fd)
{
	const struct ev_hdr *h;
	struct recording r;
	char path[64];
	int err;

	a->slots = calloc(2 * ADDRESSES_MAX, sizeof(*a->slots));
	if (!a->slots)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = open(path, O_RDONLY | O_CLOEXEC);
	if (err < 0)
		return -errno;
	err = recording__open_fd(&r, err);
	if (err)
		return err;
	while ((err = recording__next(&r, &h)) > 0)
		want_of(a, h);
	recording__close(&r);
	return err;
}

static int by_value(const void *x, const void *y)
{
	u64 a = *(const u64 *)x, b = *(const u64 *)y;

	return a < b ? -1 : a > b;
}

/* the slots become a sorted array of n */
static void sort(struct addresses *a)
{
	u32 n = 0;

	for (u32 i = 0; i < 2 * ADDRESSES_MAX; i++)
		if (a->slots[i])
			a->slots[n++] = a->slots[i];
	qsort(a->slots, n, sizeof(*a->slots), by_value);
}

/* ---- the symbols ---- */

static int write_symbol(struct recording_writer *w, u64 ts, u64 start, u64 size, const char *name, const char *object)
{
	struct ev_symbol e = {.hdr = {.ts = ts, .kind = EV_SYMBOL}, .addr = start, .size = size};
	char *plain = demangle(name);
	char text[1024];
	size_t n;
	int err;

	n = snprintf(text, sizeof(text) / 2, "%s", plain ? plain : name);
	n = min(n, sizeof(text) / 2 - 1) + 1;
	n += snprintf(text + n, sizeof(text) / 2, "%.500s", object);
	err = recording__append_text(w, &e, sizeof(e), text, n);
	free(plain);
	return err;
}

static int write_hits(struct recording_writer *w, u64 ts, Dwfl_Module *mod, const struct symbol_hit *hits, u32 n,
	struct symbolize_result *out)
{
	const char *object = dwfl_module_info(mod, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
	const struct symbol_hit *last = NULL;
	int err = 0;

	for (u32 i = 0; i < n && !err; i++) {
		const struct symbol_hit *h = &hits[i], *next = h + 1;

		if (!h->name)
			continue;
		out->named++;
		/* of a label the last address of it that is asked for tells how far it reaches */
		if (i + 1 < n && next->name == h->name && next->start == h->start && next->end > h->end)
			continue;
		if (!last || last->name != h->name || last->start != h->start)
			err = write_symbol(w, ts, h->start, h->end - h->start, h->name, object);
		last = h;
	}
	return err;
}

/* of a Windows module, none of which libdwfl knows; *end: where the symbol ends, 0: there is none */
static int write_pe_symbol(struct recording_writer *w, const struct pe_modules *pe, u64 ts, u64 addr, u64 *end)
{
	char name[PE_MAX_NAME];
	const char *object;
	u64 start;

	*end = 0;
	if (!pe || !pe_modules__symbol(pe, addr, &start, end, name, sizeof(name), &object))
		return 0;
	return write_symbol(w, ts, start, *end - start, name, object);
}

/* ---- of a module ---- */

struct naming {
	struct recording_writer *w;
	Dwfl *dwfl;
	u64 ts;
	struct symbol_hit *hits; /* room for all addresses, as the others have */
	u64 *unknown;
	u8 *found; /* enum cached */
	struct name_cache *cache;
	struct symbolize_result *out;
};

static int to_both(void *arg, const struct ev_hdr *rec)
{
	struct naming *n = arg;

	if (n->cache)
		name_cache__add(n->cache, rec);
	return recording__append(n->w, rec, ev__bytes(rec));
}

/* from the files */
static int look_up(struct naming *n, Dwfl_Module *mod, u32 count)
{
	struct recording_writer both;
	u32 lines = 0;
	int err = symbols__find(mod, n->unknown, count, n->hits);

	recording__to(&both, to_both, n);
	if (!err)
		err = write_hits(&both, n->ts, mod, n->hits, count, n->out);
	if (!err)
		err = sources__write(&both, n->dwfl, n->ts, n->unknown, count, &lines);
	n->out->lines += lines;
	return err;
}

static int name_module(struct naming *n, Dwfl_Module *mod, const u64 *addrs, u32 count)
{
	u32 unknown = 0;
	int err = 0;

	apart__at(addrs[0]);
	memset(n->found, 0, count);
	n->cache = name_cache__open(mod);
	if (n->cache)
		err = name_cache__tell(n->cache, n->w, n->ts, addrs, count, n->found);
	for (u32 i = 0; i < count; i++) {
		n->out->named += !!(n->found[i] & CACHED_NAME);
		n->out->lines += !!(n->found[i] & CACHED_LINE);
		if (!n->found[i])
			n->unknown[unknown++] = addrs[i];
	}
	if (!err && unknown)
		err = look_up(n, mod, unknown);
	name_cache__close(n->cache, n->unknown, err ? 0 : unknown);
	return err;
}

static int name_all(struct naming *n, const struct pe_modules *pe, const struct addresses *a)
{
	int err = 0;
	u32 next;

	for (u32 i = 0; i < a->n && !err; i = next) {
		Dwfl_Module *mod = dwfl_addrmodule(n->dwfl, a->slots[i]);
		u64 end = 0;

		next = i + 1;
		if (mod && dwfl_module_info(mod, NULL, NULL, &end, NULL, NULL, NULL, NULL)) {
			next = max(addrs__first(a->slots, next, a->n, end), next);
			err = name_module(n, mod, a->slots + i, next - i);
			continue;
		}
		err = write_pe_symbol(n->w, pe, n->ts, a->slots[i], &end);
		if (end) {
			next = max(addrs__first(a->slots, next, a->n, end), next);
			n->out->named += next - i;
		}
	}
	return err;
}

int symbolize__write(struct recording_writer *w, Dwfl *dwfl, const struct pe_modules *pe, struct jit *jit, u64 ts,
	struct symbolize_result *out)
{
	struct addresses a = {.jit = jit};
	struct naming n = {.w = w, .dwfl = dwfl, .ts = ts, .out = out};
	int err;

	*out = (struct symbolize_result){};
	err = recording__flush(w);
	if (!err)
		err = collect(&a, w->fd);
	if (!err) {
		sort(&a);
		n.hits = malloc((a.n ?: 1) * sizeof(*n.hits));
		n.unknown = malloc((a.n ?: 1) * sizeof(*n.unknown));
		n.found = malloc(a.n ?: 1);
		err = n.hits && n.unknown && n.found ? name_all(&n, pe, &a) : -ENOMEM;
	}
	out->addresses = a.n;
	out->beyond = a.beyond;
	free(n.hits);
	free(n.unknown);
	free(n.found);
	free(a.slots);
	return err;
}
