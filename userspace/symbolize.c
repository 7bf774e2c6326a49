// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demangle.h"
#include "recording.h"
#include "sources.h"
#include "symbolize.h"

/* ---- the addresses ---- */

#define ADDRESSES_MAX (1u << 18)

/* Open addressing; 0 is free. */
struct addresses {
	u64 *slots; /* 2 * ADDRESSES_MAX */
	u32 n, beyond;
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

/* Fields by what they mean: code addresses and lock words are named ip, caller, and addr of a lock. */
static void want_of(struct addresses *a, const struct ev_hdr *h)
{
	switch (h->kind) {
	case EV_SAMPLE:
		want(a, ((const struct ev_sample *)h)->ip);
		break;
	case EV_LOCK_WAIT:
		want(a, ((const struct ev_lock_wait *)h)->addr);
		want(a, ((const struct ev_lock_wait *)h)->ip);
		break;
	case EV_FAULT:
		want(a, ((const struct ev_fault *)h)->ip);
		break;
	case EV_CALL:
		want(a, ((const struct ev_call *)h)->addr);
		break;
	case EV_ALLOC:
		want(a, ((const struct ev_alloc *)h)->caller);
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

static int write_symbols(
	struct recording_writer *w, Dwfl *dwfl, u64 ts, const struct addresses *a, struct symbolize_result *out)
{
	u64 last_end = 0;
	int err = 0;

	for (u32 i = 0; i < a->n && !err; i++) {
		Dwfl_Module *mod = dwfl_addrmodule(dwfl, a->slots[i]);
		const char *name;
		GElf_Off off;
		GElf_Sym sym;

		if (a->slots[i] < last_end) { /* within the symbol just written */
			out->named++;
			continue;
		}
		name = mod ? dwfl_module_addrinfo(mod, a->slots[i], &off, &sym, NULL, NULL, NULL) : NULL;
		if (!name)
			continue;
		out->named++;
		last_end = a->slots[i] - off + max(sym.st_size, off + 1);
		err = write_symbol(w, ts, a->slots[i] - off, last_end - (a->slots[i] - off), name,
			dwfl_module_info(mod, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
	}
	return err;
}

int symbolize__write(struct recording_writer *w, Dwfl *dwfl, u64 ts, struct symbolize_result *out)
{
	struct addresses a = {};
	int err;

	*out = (struct symbolize_result){};
	err = recording__flush(w);
	if (!err)
		err = collect(&a, w->fd);
	if (!err) {
		sort(&a);
		err = write_symbols(w, dwfl, ts, &a, out);
	}
	if (!err)
		err = sources__write(w, dwfl, ts, a.slots, a.n, &out->lines);
	out->addresses = a.n;
	out->beyond = a.beyond;
	free(a.slots);
	return err;
}
