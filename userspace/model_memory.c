/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The game's address space as it is at the moment, and the symbols in it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model_internal.h"
#include "syscalls.h"

#define STACK_ROOM (8ULL << 20) /* how far a main stack may have grown since its mapping was read */

void memory__free(struct model *m)
{
	struct mapping *s, *next;
	u32 i;

	for (i = 0; i < m->n_maps; i++)
		free(m->maps[i]);
	for (s = m->spare_maps; s; s = next) {
		next = (struct mapping *)(uintptr_t)s->ino;
		free(s);
	}
	free(m->maps);
	free(m->symbols);
	jits__free(m);
}

/* the first mapping that ends above addr */
static u32 first_above(const struct model *m, u64 addr)
{
	u32 lo = 0, hi = m->n_maps, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (m->maps[mid]->end > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static int reserve_one(struct model *m)
{
	u32 cap = m->cap_maps ? 2 * m->cap_maps : 256;
	struct mapping **bigger;

	if (m->n_maps < m->cap_maps)
		return 0;
	bigger = realloc(m->maps, cap * sizeof(struct mapping *));
	if (!bigger)
		return -ENOMEM;
	m->maps = bigger;
	m->cap_maps = cap;
	return 0;
}

void memory__forget(struct model *m)
{
	for (u32 i = 0; i < m->n_maps; i++) {
		m->maps[i]->ino = (uintptr_t)m->spare_maps;
		m->spare_maps = m->maps[i];
	}
	m->n_maps = 0;
}

/* where the order asks for it; the range is free already */
static int insert(struct model *m, struct mapping new)
{
	struct mapping *s = m->spare_maps;
	u32 at = first_above(m, new.start);

	if (m->n_maps >= MAX_MAPPINGS)
		return 0;
	if (reserve_one(m))
		return -ENOMEM;
	if (s)
		m->spare_maps = (struct mapping *)(uintptr_t)s->ino;
	else
		s = malloc(sizeof(*s));
	if (!s)
		return -ENOMEM;
	*s = new;
	memmove(m->maps + at + 1, m->maps + at, (m->n_maps - at) * sizeof(*m->maps));
	m->maps[at] = s;
	m->n_maps++;
	return 0;
}

/* Nothing is mapped in [start, end) any more. */
static int cut(struct model *m, u64 start, u64 end)
{
	u32 first = first_above(m, start), last;
	struct mapping *s, rest;

	if (first < m->n_maps && m->maps[first]->start < start) {
		s = m->maps[first++];
		rest = *s;
		s->end = start;
		if (rest.end > end) { /* a hole in its middle */
			rest.offset += end - rest.start;
			rest.start = end;
			return insert(m, rest);
		}
	}
	for (last = first; last < m->n_maps && m->maps[last]->end <= end; last++) {
		m->maps[last]->ino = (uintptr_t)m->spare_maps;
		m->spare_maps = m->maps[last];
	}
	if (last > first) {
		memmove(m->maps + first, m->maps + last, (m->n_maps - last) * sizeof(*m->maps));
		m->n_maps -= last - first;
	}
	if (first < m->n_maps && m->maps[first]->start < end) {
		m->maps[first]->offset += end - m->maps[first]->start;
		m->maps[first]->start = end;
	}
	return 0;
}

static int replace(struct model *m, struct mapping new)
{
	int err;

	if (new.end <= new.start)
		return 0;
	err = cut(m, new.start, new.end);
	return err ? err : insert(m, new);
}

int memory__map(struct model *m, const struct ev_map *rec)
{
	char text[EV_MAX_BYTES];
	struct mapping new = {.start = rec->start,
		.end = rec->end,
		.offset = rec->offset,
		.ino = rec->ino,
		.dev = rec->dev,
		.prot = rec->prot};

	if (m->game && rec->hdr.tid != m->game)
		return 0;
	new.path = pool__intern(&m->pool, text, ev__text(&rec->hdr, text, sizeof(text)));
	return new.path ? replace(m, new) : -ENOMEM;
}

static const struct mapping *at(const struct model *m, u64 addr)
{
	u32 i = first_above(m, addr);

	return i < m->n_maps && m->maps[i]->start <= addr ? m->maps[i] : NULL;
}

/* The heap's end moves. */
static int move_brk(struct model *m, u64 was, u64 now)
{
	struct mapping heap = {.start = was, .end = now, .prot = 3, .path = "[heap]"};
	const struct mapping *old = was ? at(m, was - 1) : NULL;

	if (now < was)
		return cut(m, now, was);
	if (now == was)
		return 0;
	if (old && old->end == was && !strcmp(old->path, "[heap]"))
		heap.start = old->start;
	return replace(m, heap);
}

/* The kernel rounds lengths up to pages; they are 4 KiB at the least. */
static u64 pages(u64 len)
{
	return (len + 4095) & ~4095ULL;
}

static int move_range(struct model *m, const struct ev_mem_call *e)
{
	const struct mapping *old = at(m, e->addr);
	struct mapping moved = {.path = "", .prot = 3};
	u64 to = (u64)e->ret;
	int err;

	if (old) {
		moved = *old;
		moved.offset += e->addr - old->start;
	}
	moved.start = to;
	moved.end = to + pages(e->len);
	err = e->was ? cut(m, e->addr, e->addr + pages(e->was)) : 0;
	return err ? err : replace(m, moved);
}

int memory__call(struct model *m, const struct ev_mem_call *e)
{
	const struct mthread *t = table__get(&m->threads, key__int(e->hdr.tid));
	u64 ret = (u64)e->ret, len = pages(e->len);

	/* -4095 … -1 are errors; ranges that wrap are no ranges */
	if (ret > ~0ULL - 4095 || (t && t->t.tgid && m->game && t->t.tgid != m->game))
		return 0;
	if (len < e->len || e->addr + len < e->addr || ret + len < ret || e->addr + pages(e->was) < e->addr)
		return 0;
	switch (e->sys) {
	case SYS_ID_munmap:
		return cut(m, e->addr, e->addr + len);
	case SYS_ID_mmap: /* of a file: a MAP record follows */
		return replace(m, (struct mapping){.start = ret, .end = ret + len, .prot = 3, .path = ""});
	case SYS_ID_mremap:
		return move_range(m, e);
	case SYS_ID_brk:
		return move_brk(m, e->was, ret);
	}
	return 0;
}

const struct mapping *model__mapping(const struct model *m, u64 addr)
{
	u32 i = first_above(m, addr);
	struct mapping *s = i < m->n_maps ? m->maps[i] : NULL;
	const char *path;

	if (!s || (s->start > addr && (s->start - addr > STACK_ROOM || strcmp(s->path, "[stack]"))))
		return NULL;
	path = s->path[0] ? NULL : model__path(m, s->dev, s->ino);
	if (path)
		s->path = path;
	return s;
}

int memory__symbol(struct model *m, const struct ev_symbol *rec)
{
	char text[EV_MAX_BYTES];
	size_t len = ev__text(&rec->hdr, text, sizeof(text)), name = strlen(text);
	struct symbol s = {.addr = rec->addr, .size = rec->size}, *bigger;
	const char *kept;

	if (m->n_symbols == m->cap_symbols) {
		m->cap_symbols = m->cap_symbols ? 2 * m->cap_symbols : 256;
		bigger = realloc(m->symbols, m->cap_symbols * sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		m->symbols = bigger;
	}
	kept = pool__intern(&m->pool, text, len);
	if (!kept)
		return -ENOMEM;
	s.name = kept;
	s.object = len > name ? kept + name + 1 : kept + name;
	m->symbols[m->n_symbols++] = s;
	m->symbols_sorted = false;
	return 0;
}

static int by_addr(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return x->addr != y->addr ? (x->addr < y->addr ? -1 : 1) : (x->size < y->size) - (x->size > y->size);
}

static bool has(const struct symbol *s, u64 addr)
{
	return addr - s->addr < max(s->size, (u64)1);
}

/* In order, each once, with the symbol that it lies in (its place + 1; 0: none): one may lie in another, as
 * __read_nocancel does in older C libraries' read. */
static void sort_symbols(struct model *m)
{
	size_t i, kept = 1;

	qsort(m->symbols, m->n_symbols, sizeof(*m->symbols), by_addr);
	m->symbols[0].outer = 0;
	for (i = 1; i < m->n_symbols; i++) {
		const struct symbol *last = &m->symbols[kept - 1], *s = &m->symbols[i];
		u32 outer = (u32)kept;

		if (s->addr == last->addr && s->size == last->size && s->name == last->name)
			continue;
		while (outer && !has(&m->symbols[outer - 1], s->addr))
			outer = m->symbols[outer - 1].outer;
		m->symbols[kept] = *s;
		m->symbols[kept++].outer = outer;
	}
	m->n_symbols = kept;
	m->symbols_sorted = true;
}

#define SYMBOLS_DEEP 64 /* that lie in one another; more is damage */

const struct symbol *model__symbol(const struct model *m, u64 addr)
{
	size_t lo = 0, hi = m->n_symbols, mid;

	if (!m->symbols_sorted && m->n_symbols)
		sort_symbols((struct model *)m); /* the order is no part of what the model says */
	while (lo < hi) {                        /* the first that begins above addr */
		mid = lo + (hi - lo) / 2;
		if (m->symbols[mid].addr > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	for (int i = 0; i < SYMBOLS_DEEP && lo; i++, lo = m->symbols[lo - 1].outer)
		if (has(&m->symbols[lo - 1], addr))
			return &m->symbols[lo - 1];
	return NULL;
}
