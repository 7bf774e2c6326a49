// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache_dir.h"
#include "events_desc.h"
#include "log.h"
#include "name_cache.h"
#include "recording.h"
#include "symbols.h"

#define FILE_BYTES  (64u << 20) /* a larger one begins anew */
#define ALL_BYTES   (256u << 20)
#define DEBUG_LABEL "cache.debug=1"

struct name_cache {
	Dwfl_Module *mod;
	int dir;              /* -1: nothing more is kept */
	char name[160];       /* of the file in it */
	u64 bias, start, end; /* of the module */
	bool debug;           /* it was read from debug data, so that there is no more to be had */
	char *records;        /* SYMBOLs and SOURCEs */
	size_t bytes, cap;
	u64 *known; /* what was asked for, sorted */
	u32 n_known, cap_known;
};

/* ---- what is there ---- */

static int keep(struct name_cache *c, const struct ev_hdr *rec)
{
	size_t n = ev__bytes(rec);
	char *bigger;

	if (c->bytes + n > c->cap) {
		size_t cap = max(2 * c->cap, (size_t)1 << 16);

		bigger = realloc(c->records, cap);
		if (!bigger)
			return -ENOMEM;
		c->records = bigger;
		c->cap = cap;
	}
	memcpy(c->records + c->bytes, rec, n);
	c->bytes += n;
	return 0;
}

static int by_value(const void *x, const void *y)
{
	u64 a = *(const u64 *)x, b = *(const u64 *)y;

	return a < b ? -1 : a > b;
}

static int know(struct name_cache *c, u64 addr)
{
	if (c->n_known == c->cap_known) {
		u32 cap = c->cap_known ? 2 * c->cap_known : 256;
		u64 *bigger = realloc(c->known, cap * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		c->known = bigger;
		c->cap_known = cap;
	}
	c->known[c->n_known++] = addr;
	return 0;
}

static int take(struct name_cache *c, const struct ev_hdr *h)
{
	const struct ev_call *call = (const struct ev_call *)h;
	char text[EV_MAX_BYTES];

	switch (h->kind) {
	case EV_INFO:
		ev__text(h, text, sizeof(text));
		c->debug |= !strcmp(text, DEBUG_LABEL);
		return 0;
	case EV_CALL:
		return know(c, call->addr);
	case EV_SYMBOL:
	case EV_SOURCE:
		return keep(c, h);
	}
	return 0;
}

static void forget(struct name_cache *c)
{
	c->bytes = c->n_known = 0;
	c->debug = false;
}

/* A file that is damaged, or ends early, is as good as none. */
static void load(struct name_cache *c)
{
	int fd = openat(c->dir, c->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), err;
	const struct ev_hdr *h;
	struct recording r;

	if (fd < 0)
		return;
	if (!cache_dir__is_safe(fd, S_IFREG)) {
		close(fd);
		return;
	}
	futimens(fd, NULL); /* it is in use */
	err = recording__open_fd(&r, fd);
	if (err)
		return;
	if (r.size > FILE_BYTES)
		err = 0;
	else
		while (!err && (err = recording__next(&r, &h)) > 0)
			err = take(c, h);
	if (err || r.truncated || r.malformed || r.unknown || r.cut_bytes)
		forget(c);
	if (c->n_known)
		qsort(c->known, c->n_known, sizeof(*c->known), by_value);
	recording__close(&r);
}

struct name_cache *name_cache__open(Dwfl_Module *mod)
{
	struct name_cache *c = calloc(1, sizeof(*c));
	const unsigned char *id = NULL;
	Dwarf_Addr start, end, bias, vaddr;
	int n, at = 0;

	if (!c)
		return NULL;
	c->mod = mod;
	dwfl_module_info(mod, NULL, &start, &end, NULL, NULL, NULL, NULL);
	n = dwfl_module_getelf(mod, &bias) ? dwfl_module_build_id(mod, &id, &vaddr) : 0;
	for (int i = 0; i < n && i < 64; i++)
		at += snprintf(c->name + at, sizeof(c->name) - (size_t)at, "%02x", id[i]);
	c->bias = bias;
	c->start = start;
	c->end = end;
	c->dir = n > 0 ? cache_dir__open(NULL) : -1;
	if (c->dir < 0) {
		free(c);
		return NULL;
	}
	load(c);
	/* a debug file may have come since */
	if (!c->debug && c->n_known && dwfl_module_getdwarf(mod, &bias))
		forget(c);
	return c;
}

/* ---- telling ---- */

/* one record after the other; NULL: the first */
static struct ev_hdr *next_record(const struct name_cache *c, struct ev_hdr *h)
{
	char *at = h ? (char *)h + ev__bytes(h) : c->records;

	return at && at < c->records + c->bytes ? (struct ev_hdr *)at : NULL;
}

static int copy_out(struct recording_writer *w, const struct ev_hdr *h, u64 ts, u64 addr)
{
	union {
		struct ev_hdr h;
		struct ev_symbol symbol;
		struct ev_source source;
		char bytes[EV_MAX_BYTES];
	} r;

	memcpy(&r, h, ev__bytes(h));
	r.h.ts = ts;
	if (h->kind == EV_SYMBOL)
		r.symbol.addr = addr;
	else
		r.source.addr = addr;
	return recording__append(w, &r, ev__bytes(h));
}

/* Nothing that another module's addresses could fall into. */
static int tell_symbol(const struct name_cache *c, struct recording_writer *w, u64 ts, const struct ev_symbol *s,
	const u64 *addrs, u32 n, u8 *found)
{
	u64 start = s->addr + c->bias;
	bool wanted = false;

	if (start < c->start || start >= c->end || s->size > c->end - start)
		return 0;
	for (u32 i = addrs__first(addrs, 0, n, start); i < n && addrs[i] < start + s->size; i++)
		if (found[i]) {
			found[i] |= CACHED_NAME;
			wanted = true;
		}
	return wanted ? copy_out(w, &s->hdr, ts, start) : 0;
}

static int tell_source(const struct name_cache *c, struct recording_writer *w, u64 ts, const struct ev_source *s,
	const u64 *addrs, u32 n, u8 *found)
{
	u64 addr = s->addr + c->bias;
	u32 i = addrs__first(addrs, 0, n, addr);

	if (i == n || addrs[i] != addr || !found[i])
		return 0;
	if (s->level == 0 && s->line)
		found[i] |= CACHED_LINE;
	return copy_out(w, &s->hdr, ts, addr);
}

int name_cache__tell(const struct name_cache *c, struct recording_writer *w, u64 ts, const u64 *addrs, u32 n, u8 *found)
{
	struct ev_hdr *h = NULL;
	int err = 0;

	for (u32 i = 0, k = 0; i < n; i++) {
		k = addrs__first(c->known, k, c->n_known, addrs[i] - c->bias);
		found[i] = k < c->n_known && c->known[k] == addrs[i] - c->bias ? CACHED : 0;
	}
	while (!err && (h = next_record(c, h)))
		err = h->kind == EV_SYMBOL ? tell_symbol(c, w, ts, (struct ev_symbol *)h, addrs, n, found)
					   : tell_source(c, w, ts, (struct ev_source *)h, addrs, n, found);
	return err;
}

/* ---- keeping ---- */

void name_cache__add(struct name_cache *c, const struct ev_hdr *rec)
{
	size_t at = c->bytes;
	struct ev_hdr *h;

	if (c->dir < 0)
		return;
	if (keep(c, rec)) {
		close(c->dir); /* half of them would be taken for all */
		c->dir = -1;
		return;
	}
	h = (struct ev_hdr *)(c->records + at);
	h->ts = 0;
	if (h->kind == EV_SYMBOL)
		((struct ev_symbol *)h)->addr -= c->bias;
	else
		((struct ev_source *)h)->addr -= c->bias;
}

static int write_all(struct name_cache *c, int fd, const u64 *addrs, u32 n)
{
	struct ev_info info = {.hdr = {.kind = EV_INFO}};
	struct recording_writer w;
	struct ev_hdr *h = NULL;
	int err = recording__create(&w, fd, 0);

	if (!err && c->debug)
		err = recording__append_text(&w, &info, sizeof(info), DEBUG_LABEL, strlen(DEBUG_LABEL));
	for (u32 i = 0; i < c->n_known + n && !err; i++) {
		struct ev_call e = {.hdr = {.kind = EV_CALL, .words = sizeof(e) / 8},
			.addr = i < c->n_known ? c->known[i] : addrs[i - c->n_known] - c->bias};

		err = recording__append(&w, &e, sizeof(e));
	}
	while (!err && (h = next_record(c, h)))
		err = recording__append(&w, h, ev__bytes(h));
	return recording__finish(&w, !err) ?: err;
}

/* Whoever reads meanwhile has the old one, and of two that write the last one stays. */
static void replace(struct name_cache *c, const u64 *addrs, u32 n)
{
	char new[sizeof(c->name) + 32];
	int fd;

	snprintf(new, sizeof(new), "%s.%d", c->name, getpid());
	fd = openat(c->dir, new, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (write_all(c, fd, addrs, n) || renameat(c->dir, new, c->dir, c->name))
		unlinkat(c->dir, new, 0);
	cache_dir__make_room(c->dir, ALL_BYTES);
}

void name_cache__close(struct name_cache *c, const u64 *addrs, u32 n)
{
	Dwarf_Addr bias;
	bool debug;

	if (!c)
		return;
	if (c->dir >= 0 && n) {
		debug = dwfl_module_getdwarf(c->mod, &bias);
		if (debug || !c->debug) { /* else a debug file has gone: what it said is more than what was found now */
			c->debug = debug;
			replace(c, addrs, n);
		}
	}
	if (c->dir >= 0)
		close(c->dir);
	free(c->records);
	free(c->known);
	free(c);
}
