// SPDX-License-Identifier: GPL-2.0-only
/*
 * Call chains: each is sent once, when something first has it, with its frames, names and mappings; then the number of
 * the chain stands for it, until the importer has to forget what it was told.
 */
#include "perfetto.h"
#include "strings.h"
#include "where.h"

#include <stdio.h>
#include <string.h>

#define FRAMES_MAX 256 /* of a chain, the innermost */
#define FIRST_IID  1

#define KERNEL_MAPPING 1 /* stands for where the kernel's code is mapped, which no trace needs to tell */

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

/* raw bytes of hex digits; how many */
static size_t build_id_of(const struct code_image *im, u8 *id, size_t size)
{
	const char *hex = im ? im->build_id : "";
	size_t n = 0;

	while (n < size && sscanf(hex + 2 * n, "%2hhx", &id[n]) == 1 && hex[2 * n + 1])
		n++;
	return n;
}

static void put_build_id(struct pb *b, u64 iid, const u8 *id, size_t n)
{
	size_t item = pb__begin(b, INTERNED_BUILD_ID);

	pb__uint(b, INTERNED_IID, iid);
	pb__bytes(b, INTERNED_STR, id, n);
	pb__end(b, item);
}

/* The iid of a mapping, sent when it is new. */
static u64 mapping_iid(struct callstacks *c, struct pb *b, const struct model *m, const struct where_step *s)
{
	const struct mapping *map = s->map;
	const struct code_image *im = model__image(m, s->addr);
	u64 start = map ? map->start : s->kernel ? KERNEL_MAPPING : 0, iid;
	const char *name = map && map->path ? map->path : s->kernel ? "[kernel]" : "";
	u8 id[32];
	size_t n_id = build_id_of(im, id, sizeof(id));
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
	utf8__sanitize(path, sizeof(path), name, strlen(name));
	put_string(b, INTERNED_MAPPING_PATH, iid, path);
	if (n_id)
		put_build_id(b, iid, id, n_id);
	item = pb__begin(b, INTERNED_MAPPING);
	pb__uint(b, INTERNED_IID, iid);
	if (n_id)
		pb__uint(b, MAPPING_BUILD_ID, iid);
	pb__uint(b, MAPPING_START, map ? start : 0);
	pb__uint(b, MAPPING_END, map ? map->end : 0);
	pb__uint(b, MAPPING_EXACT_OFFSET, map ? map->offset : 0);
	if (im && map) /* its first address in the file, less where that lies in it */
		pb__uint(b, MAPPING_LOAD_BIAS, map->start - im->bias - map->offset);
	pb__uint(b, MAPPING_PATH_IIDS, iid);
	pb__end(b, item);
	return iid;
}

/* as the debug information of its file counts, where that is known */
static u64 address_in_file(const struct model *m, const struct where_step *s)
{
	const struct code_image *im = model__image(m, s->addr);

	if (im)
		return s->addr - im->bias;
	return s->map ? s->addr - s->map->start + s->map->offset : s->addr;
}

static u64 put_frame(struct callstacks *c, struct pb *b, const struct model *m, const struct where_step *s)
{
	u64 iid = ++c->last_frame, mapping = mapping_iid(c, b, m, s);
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
	pb__uint(b, FRAME_REL_PC, address_in_file(m, s));
	if (*s->file) {
		pb__uint(b, FRAME_SOURCE_PATH_IID, iid);
		pb__uint(b, FRAME_LINE, s->line);
	}
	pb__end(b, item);
	return iid;
}

static void put_callstack(struct callstacks *c, struct pb *b, const struct model *m, u64 iid, const struct gather *g)
{
	u64 iids[FRAMES_MAX];
	size_t item;

	for (u32 i = 0; i < g->n; i++)
		iids[i] = put_frame(c, b, m, &g->steps[i]);
	item = pb__begin(b, INTERNED_CALLSTACK);
	pb__uint(b, INTERNED_IID, iid);
	for (u32 i = g->n; i-- > 0;) /* outermost first */
		pb__uint(b, CALLSTACK_FRAME_IIDS, iids[i]);
	pb__end(b, item);
}

/* The iid of the chain that is `kernel` and then `user`, either of which may be 0. */
static u64 send(struct perfetto *p, const struct model *m, u32 user, u32 kernel)
{
	struct callstacks *c = &p->callstacks;
	struct key key = {user, kernel};
	u64 iid = (u64)(uintptr_t)table__get(&c->sent, key);
	struct gather g = {};
	struct pb *b;
	size_t data;

	if (iid)
		return iid;
	iid = FIRST_IID + c->sent.n;
	where__each(m, kernel, gather, &g);
	if (g.n < FRAMES_MAX)
		where__each(m, user, gather, &g);
	b = perfetto__packet_begin(p, 0);
	data = pb__begin(b, PACKET_INTERNED_DATA);
	put_callstack(c, b, m, iid, &g);
	pb__end(b, data);
	perfetto__packet_end(p);
	p->error = table__put(&c->sent, key, (void *)(uintptr_t)iid);
	return iid;
}

u64 perfetto__callstack(struct perfetto *p, const struct model *m, const struct ev_hdr *rec)
{
	u32 user = model__chain(m, rec), kernel = model__blocked_chain(m, rec);

	if ((!user && !kernel) || p->error)
		return 0;
	if (p->clear_state || iids__nearly_full(&p->iids)) /* as the next packet will */
		callstacks__forget(&p->callstacks);
	return send(p, m, user, kernel);
}

void callstacks__forget(struct callstacks *c)
{
	table__free(&c->sent);
	c->n_mappings = 0;
	c->last_frame = 0;
}

void callstacks__close(struct callstacks *c)
{
	table__free(&c->sent);
	*c = (struct callstacks){0};
}

void perfetto__sample(struct perfetto *p, const struct model *m, const struct ev_sample *ev)
{
	u64 callstack = perfetto__callstack(p, m, &ev->hdr);
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
