/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"
#include "ledger.h"
#include "sentence.h"
#include "strings.h"

/* Kinds of hitches by block: of the open one, and of those before it whose hitches may still be told. */
struct kind {
	struct store_hitches h;
	char *sentence, *trace;
};

#define PAST_BLOCKS 64u                 /* whose hitches may still be told, */
#define PAST_NS     (15 * NSEC_PER_SEC) /* for so long */

struct past_block {
	u64 block, start, end;
	u64 slow, told; /* slow frames, and those of them of which was told */
};

struct ledger {
	struct store *store;
	char run[RUN_ID_SIZE];
	struct ledger_options o;
	struct store_block block;                  /* the open one; no frames: none */
	char scene[64];                            /* of the open block */
	u64 block_start, scene_start, first, last; /* BOOTTIME; 0: not yet */
	u64 frames, measured;
	u32 notes;
	u64 told; /* slow frames of the open block */
	u32 counts[BUCKETS];
	struct kind *kinds;
	u32 n_kinds, cap_kinds;
	struct past_block past[PAST_BLOCKS]; /* the oldest first */
	u32 n_past;
	u64 known[LEDGER_FINGERPRINTS]; /* fingerprints that the store has */
	u32 n_known;
	s64 started_ms; /* UNIX */
	struct cpu_use cpus;
	int err; /* the first */
};

#define OTHER_HITCHES 0 /* the fingerprint of those that are not told apart */

struct ledger *ledger__new(struct store *s, const char *run, const struct store_run *r, const struct ledger_options *o)
{
	struct ledger *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->store = s;
	l->o = *o;
	l->o.block_ns = o->block_ns ?: LEDGER_BLOCK_NS;
	l->first = o->start_ns;
	l->started_ms = r->started_ms;
	memcpy(l->run, run, RUN_ID_SIZE);
	if (store__add_run(s, run, r)) {
		free(l);
		errno = ENOMEM;
		return NULL;
	}
	return l;
}

static int fail(struct ledger *l, int err)
{
	l->err = l->err ?: err;
	return err;
}

static u64 since_start_ms(const struct ledger *l, u64 ns)
{
	return (ns > l->first ? ns - l->first : 0) / NSEC_PER_MSEC;
}

/* ---- a block's end ---- */

static u64 rank(const struct ledger *l, u32 permille)
{
	u64 want = (l->block.frames * permille + 999) / 1000, seen = 0;

	for (u32 b = bucket__of(0); b < BUCKETS; b++) {
		seen += l->counts[b];
		if (seen >= want)
			return min(bucket__middle(b), l->block.max_ns);
	}
	return l->block.max_ns;
}

/* those of blocks before this one */
static int write_kinds(struct ledger *l, u64 before)
{
	u32 left = 0;
	int err = 0;

	for (u32 i = 0; i < l->n_kinds; i++) {
		struct kind *k = &l->kinds[i];

		if (k->h.block >= before) {
			l->kinds[left++] = *k;
			continue;
		}
		k->h.sentence = k->sentence;
		k->h.trace = k->trace;
		if (!err)
			err = store__add_hitches(l->store, l->run, &k->h);
		free(k->sentence);
		free(k->trace);
	}
	l->n_kinds = left;
	return err;
}

/* Of what ended long before now nothing more is told; ~0: of nothing that has ended. Where all is told, it does not
 * wait: what is not in the store is lost if we are killed. */
static int write_past(struct ledger *l, u64 now)
{
	const struct past_block *p = l->past;
	u32 n = 0;

	for (; n < l->n_past &&
		(p->told >= p->slow || now - min(now, p->end) > PAST_NS || l->n_past - n == PAST_BLOCKS);
		p++)
		n++;
	l->n_past -= n;
	memmove(l->past, l->past + n, l->n_past * sizeof(*l->past));
	return write_kinds(l, l->n_past ? l->past[0].block : l->block.block);
}

static int close_block(struct ledger *l)
{
	u64 next = l->block.block + 1;
	int err;

	if (!l->block.frames)
		return 0;
	l->block.scene = l->scene;
	l->block.counts = l->counts;
	l->block.p50_ns = rank(l, 500);
	l->block.p99_ns = rank(l, 990);
	err = store__add_block(l->store, l->run, &l->block);
	l->past[l->n_past++] = (struct past_block){l->block.block, l->block_start, l->last, l->block.slow, l->told};
	l->told = 0;
	l->block = (struct store_block){.block = next};
	memset(l->counts, 0, sizeof(l->counts));
	err = write_past(l, l->last) ?: err;
	return err ? fail(l, err) : 0;
}

/* ---- a frame ---- */

static bool is_warm(const struct ledger *l, u64 ns)
{
	if (l->o.no_warm && !l->scene[0])
		return true;
	return ns >= l->scene_start && ns - l->scene_start >= l->o.warm_ns;
}

/* A block ends with its scene, with the scene's warm-up, and when it is old enough. */
static int turn(struct ledger *l, const struct frame *f, const char *scene)
{
	bool new_scene = !l->frames || strncmp(scene, l->scene, sizeof(l->scene) - 1);
	int err = 0;

	if (new_scene || (l->block.warm_up && is_warm(l, f->start)) ||
		(l->block.frames && f->end > l->block_start && f->end - l->block_start > l->o.block_ns))
		err = close_block(l);
	if (new_scene) {
		l->scene_start = f->start;
		snprintf(l->scene, sizeof(l->scene), "%s", scene);
	}
	if (!l->block.frames) {
		l->block_start = f->start;
		l->block.start_ms = since_start_ms(l, f->start);
		l->block.warm_up = !is_warm(l, f->start);
	}
	return err;
}

static void add_frame(struct ledger *l, const struct verdict *v)
{
	struct store_block *b = &l->block;
	u64 dur = v->frame.end - v->frame.start;

	b->frames++;
	b->dur_ns += dur;
	b->max_ns = max(b->max_ns, dur);
	l->counts[bucket__of(dur)]++;
	b->lost += v->frame.lost;
	b->cold_bytes += v->cold_bytes;
	b->allocs += v->allocs;
	b->alloc_bytes += v->alloc_bytes;
	b->faults += v->faults;
	for (int c = 0; c < CAUSE_COUNT; c++)
		b->causes[c].ns += v->cause_ns[c];
}

/* A slow frame that is told: its block is the one in which it began, or the open one if nothing more is told of that.
 */
static u64 block_told(struct ledger *l, u64 start)
{
	for (u32 i = 0; i < l->n_past; i++)
		if (start >= l->past[i].start && start < l->past[i].end) {
			l->past[i].told++;
			return l->past[i].block;
		}
	l->told += l->block.frames && start >= l->block_start;
	return l->block.block;
}

static struct kind *kind_of(struct ledger *l, u64 key, u64 block)
{
	for (u32 i = 0; i < l->n_kinds; i++)
		if (l->kinds[i].h.fingerprint == key && l->kinds[i].h.block == block)
			return &l->kinds[i];
	if (l->n_kinds == l->cap_kinds) {
		u32 cap = l->cap_kinds ? l->cap_kinds * 2 : 16;
		struct kind *more = realloc(l->kinds, cap * sizeof(*more));

		if (!more)
			return NULL;
		l->kinds = more;
		l->cap_kinds = cap;
	}
	l->kinds[l->n_kinds] = (struct kind){.h.fingerprint = key, .h.block = block};
	return &l->kinds[l->n_kinds++];
}

/* The fingerprint as the store knows it; a new one is told to it, until there are too many. */
static u64 known(struct ledger *l, const struct ledger_hitch *h)
{
	struct store_fingerprint f = {.key = OTHER_HITCHES, .cause = CAUSE_NONE, .text = "other hitches"};

	for (u32 i = 0; i < l->n_known; i++)
		if (l->known[i] == h->fingerprint)
			return h->fingerprint;
	if (h->fingerprint != OTHER_HITCHES && l->n_known < LEDGER_FINGERPRINTS - 1)
		f = (struct store_fingerprint){.key = h->fingerprint,
			.cause = h->cause,
			.text = h->text,
			.what = h->what,
			.who = h->who,
			.where = h->where};
	fail(l, store__add_fingerprint(l->store, l->run, &f)); /* of the others once more: it is there once */
	if (l->n_known < LEDGER_FINGERPRINTS)
		l->known[l->n_known++] = f.key;
	return f.key;
}

static int keep_worst(struct ledger *l, struct kind *k, const struct ledger_hitch *h)
{
	u64 dur = h->end - h->start;

	if (k->sentence && dur <= k->h.worst_ns)
		return 0;
	k->h.worst_ns = dur;
	k->h.worst_frame = h->number;
	k->h.worst_ms = since_start_ms(l, h->start);
	free(k->sentence);
	free(k->trace);
	k->sentence = strdup(h->sentence ?: "");
	k->trace = h->trace ? strdup(h->trace) : NULL;
	return k->sentence && (k->trace || !h->trace) ? 0 : -ENOMEM;
}

int ledger__hitch(struct ledger *l, const struct ledger_hitch *h)
{
	struct kind *k = kind_of(l, known(l, h), block_told(l, h->start));

	if (!k)
		return fail(l, -ENOMEM);
	k->h.count++;
	k->h.excess_ns += (u64)max(h->excess_ns, (s64)0);
	return keep_worst(l, k, h);
}

static int tell_hitch(struct ledger *l, const struct verdict *v, const struct part *lead, s64 excess, const char *trace)
{
	const struct part *root = lead ? sentence__root(lead) : NULL;
	struct ledger_hitch h = {.fingerprint = OTHER_HITCHES,
		.sentence = v->sentence,
		.trace = trace,
		.excess_ns = excess,
		.start = v->frame.start,
		.end = v->frame.end,
		.number = v->frame.number};
	struct str text = {0};
	int err;

	if (lead) {
		sentence__pattern(&text, lead);
		h.fingerprint = sentence__fingerprint(lead);
		h.cause = root->cause;
		h.text = text.s;
		h.what = root->what;
		h.who = lead->who;
		h.where = root->where ?: lead->where;
	}
	err = ledger__hitch(l, &h);
	str__free(&text);
	return err;
}

static int add_hitch(struct ledger *l, const struct verdict *v, const char *trace)
{
	s64 excess = 0;
	const struct part *lead = sentence__lead(v, &excess);

	l->block.slow++;
	l->block.unsure += v->unsure;
	l->block.over_budget_ns += v->frame.end - v->frame.start - v->budget_ns;
	l->block.causes[lead ? sentence__root(lead)->cause : CAUSE_UNEXPLAINED].hitches++;
	for (u32 i = 0; i < v->n_parts; i++)
		l->block.causes[v->parts[i].cause].excess_ns += (u64)max(v->parts[i].excess_ns, (s64)0);
	return l->o.hitches_told ? 0 : tell_hitch(l, v, lead, excess, trace);
}

int ledger__verdict(
	struct ledger *l, const struct verdict *v, const struct model *m, const char *scene, const char *trace)
{
	int err;

	if (!l->first)
		l->first = v->frame.start;
	err = turn(l, &v->frame, scene ?: v->frame.scene);
	l->frames++;
	l->measured += !l->block.warm_up;
	l->last = max(l->last, v->frame.end);
	add_frame(l, v);
	if (v->slow)
		err = add_hitch(l, v, trace) ?: err;
	return err ? fail(l, err) : 0;
}

int ledger__tend(struct ledger *l, u64 now_ns)
{
	int err = 0;

	if (now_ns > l->block_start && now_ns - l->block_start >= l->o.block_ns)
		err = close_block(l);
	return write_past(l, now_ns) ?: err;
}

u64 ledger__frames(const struct ledger *l)
{
	return l->frames;
}

bool ledger__is_warm_up(const struct ledger *l)
{
	return l->block.warm_up;
}

u64 ledger__measured(const struct ledger *l)
{
	return l->measured;
}

int ledger__add_memory(struct ledger *l, u64 now_ns, u64 rss, u64 heap, u64 mapped, u64 mappings)
{
	struct store_memory m = {.at_ms = since_start_ms(l, now_ns),
		.scene = l->scene,
		.rss = rss,
		.heap = heap,
		.mapped = mapped,
		.mappings = mappings};

	return fail(l, store__add_memory(l->store, l->run, &m));
}

int ledger__meta(struct ledger *l, const char *key, const char *value)
{
	return fail(l, store__add_meta(l->store, l->run, key, value));
}

int ledger__note(struct ledger *l, u64 now_ns, const char *text)
{
	return fail(l, store__add_note(l->store, l->run, l->notes++, since_start_ms(l, now_ns), text));
}

void ledger__add_cpu_use(struct ledger *l, const struct model *m)
{
	struct cpu_use u = model__cpu_use(m);

	l->cpus.all_ns += u.all_ns;
	l->cpus.others_ns += u.others_ns;
	l->cpus.stolen_ns += u.stolen_ns;
}

static void write_cpu_use(struct ledger *l)
{
	if (!l->cpus.all_ns)
		return; /* not known */
	fail(l, store__add_counter(l->store, l->run, "cpus.all_ns", l->cpus.all_ns));
	fail(l, store__add_counter(l->store, l->run, "cpus.others_ns", l->cpus.others_ns));
	fail(l, store__add_counter(l->store, l->run, "cpus.stolen_ns", l->cpus.stolen_ns));
}

/* By the clock since boot from its start on: the wall clock may have been set meanwhile. */
int ledger__end(struct ledger *l, u64 now_ns, int status, const char *reason)
{
	close_block(l);
	fail(l, write_past(l, ~0ULL) ?: write_kinds(l, ~0ULL));
	write_cpu_use(l);
	fail(l, store__add_end(l->store, l->run, l->started_ms + (s64)since_start_ms(l, now_ns), status, reason));
	return l->err ?: store__flush(l->store);
}

void ledger__free(struct ledger *l)
{
	if (!l)
		return;
	for (u32 i = 0; i < l->n_kinds; i++) {
		free(l->kinds[i].sentence);
		free(l->kinds[i].trace);
	}
	free(l->kinds);
	free(l);
}
