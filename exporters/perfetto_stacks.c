// SPDX-License-Identifier: GPL-2.0-only
/*
 * Call chains: each is sent once, when something first has it, with its frames, names and mappings; then the number of
 * the chain stands for it, until the importer has to forget what it was told.
 */
#include "perfetto.h"
#include "strings.h"
#include "where.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX 256 /* of a chain, the innermost */
#define FIRST_IID  1

struct gather {
	struct where_step steps[FRAMES_MAX];
	u32 n;
};

static bool gather(const struct where_step *s, void *arg)
{
	struct gather *g = arg;

	g->steps[g->n++] = *s;
	return g->n == FRAMES_MAX;
}

static void put_string(struct pb *b, u32 field, u64 iid, const char *s)
{
	size_t item = pb__begin(b, field);

	pb__uint(b, INTERNED_IID, iid);
	pb__str(b, INTERNED_STR, s);
	pb__end(b, item);
}

/* The iid of a mapping, sent when it is new. */
static u64 mapping_iid(struct callstacks *c, struct pb *b, const struct mapping *map)
{
	u64 start = map ? map->start : 0, iid;
	char path[1024];
	size_t item;
	u32 i;

	for (i = 0; i < c->n_mappings; i++)
		if (c->mappings[i] == start)
			return FIRST_IID + i;
	if (i == CALLSTACK_MAPPINGS)
		return FIRST_IID; /* the first one stands in */
	c->mappings[c->n_mappings++] = start;
	iid = FIRST_IID + i;
	utf8__sanitize(path, sizeof(path), map && map->path ? map->path : "", map && map->path ? strlen(map->path) : 0);
	put_string(b, INTERNED_MAPPING_PATH, iid, path);
	item = pb__begin(b, INTERNED_MAPPING);
	pb__uint(b, INTERNED_IID, iid);
	pb__uint(b, MAPPING_START, start);
	pb__uint(b, MAPPING_END, map ? map->end : 0);
	pb__uint(b, MAPPING_EXACT_OFFSET, map ? map->offset : 0);
	pb__uint(b, MAPPING_PATH_IIDS, iid);
	pb__end(b, item);
	return iid;
}

static u64 put_frame(struct callstacks *c, struct pb *b, const struct where_step *s)
{
	u64 iid = ++c->last_frame, mapping = mapping_iid(c, b, s->map);
	char text[1024];
	size_t item;

	where__name(s, text, sizeof(text));
	put_string(b, INTERNED_FUNCTION, iid, text);
	if (*s->file) {
		utf8__sanitize(text, sizeof(text), s->file, strlen(s->file));
		put_string(b, INTERNED_SOURCE_PATH, iid, text);
	}
	item = pb__begin(b, INTERNED_FRAME);
	pb__uint(b, INTERNED_IID, iid);
	pb__uint(b, FRAME_FUNCTION_IID, iid);
	pb__uint(b, FRAME_MAPPING_IID, mapping);
	pb__uint(b, FRAME_REL_PC, s->map ? s->addr - s->map->start + s->map->offset : s->addr);
	if (*s->file) {
		pb__uint(b, FRAME_SOURCE_PATH_IID, iid);
		pb__uint(b, FRAME_LINE, s->line);
	}
	pb__end(b, item);
	return iid;
}

static void put_callstack(struct callstacks *c, struct pb *b, u32 chain, const struct gather *g)
{
	u64 iids[FRAMES_MAX];
	size_t item;

	for (u32 i = 0; i < g->n; i++)
		iids[i] = put_frame(c, b, &g->steps[i]);
	item = pb__begin(b, INTERNED_CALLSTACK);
	pb__uint(b, INTERNED_IID, chain);
	for (u32 i = g->n; i-- > 0;) /* outermost first */
		pb__uint(b, CALLSTACK_FRAME_IIDS, iids[i]);
	pb__end(b, item);
}

/* room for `chain` in the table of what was sent */
static int reserve(struct callstacks *c, u32 chain)
{
	u32 cap = c->cap ? c->cap : 1024;
	u32 *sent;

	if (chain < c->cap)
		return 0;
	while (cap <= chain)
		cap *= 2;
	sent = realloc(c->sent, cap * sizeof(*sent));
	if (!sent)
		return -ENOMEM;
	memset(sent + c->cap, 0, (cap - c->cap) * sizeof(*sent));
	c->sent = sent;
	c->cap = cap;
	return 0;
}

u32 perfetto__callstack(struct perfetto *p, const struct model *m, const struct ev_hdr *rec)
{
	u32 chain = model__chain(m, rec);
	struct callstacks *c = &p->callstacks;
	bool forgets = p->clear_state || iids__nearly_full(&p->iids); /* with the next packet */
	struct gather g;
	struct pb *b;
	size_t data;

	if (!chain || p->error)
		return 0;
	p->error = reserve(c, chain);
	if (p->error)
		return 0;
	if (!forgets && c->sent[chain] == c->gen)
		return chain;
	g.n = 0;
	where__each(m, chain, gather, &g);
	b = perfetto__packet_begin(p, 0);
	data = pb__begin(b, PACKET_INTERNED_DATA);
	put_callstack(c, b, chain, &g);
	pb__end(b, data);
	perfetto__packet_end(p);
	c->sent[chain] = c->gen;
	return chain;
}

void callstacks__forget(struct callstacks *c)
{
	c->gen++;
	c->n_mappings = 0;
	c->last_frame = 0;
}

void callstacks__close(struct callstacks *c)
{
	free(c->sent);
	*c = (struct callstacks){0};
}

void perfetto__sample(struct perfetto *p, const struct model *m, const struct ev_sample *ev)
{
	u32 callstack = perfetto__callstack(p, m, &ev->hdr);
	const struct thread *t = callstack ? model__find_thread(m, ev->hdr.tid) : NULL;
	struct pb *b;
	size_t mark;

	if (!t || !t->tgid)
		return;
	b = perfetto__packet_begin(p, SEQ_NEEDS_STATE);
	pb__uint(b, PACKET_TIMESTAMP, ev->hdr.ts);
	mark = pb__begin(b, PACKET_PERF_SAMPLE);
	pb__uint(b, SAMPLE_CPU, ev->hdr.cpu);
	pb__uint(b, SAMPLE_PID, t->tgid);
	pb__uint(b, SAMPLE_TID, ev->hdr.tid);
	pb__uint(b, SAMPLE_CALLSTACK_IID, callstack);
	pb__uint(b, SAMPLE_CPU_MODE, ev->kernel ? CPU_MODE_KERNEL : CPU_MODE_USER);
	pb__end(b, mark);
	perfetto__packet_end(p);
}
