/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#include "events_desc.h"
#include "intern.h"
#include "names.h"
#include "phrase.h"
#include "sentence.h"
#include "syscalls.h"

#define SAMPLES_TOLD 4u /* of allocations: fewer tell nothing */
#define CHAIN_SHARE  4  /* a reason is told if it is at least 1/4 of what it explains */
#define SECOND_SHARE 10 /* a second cause, if at least 1/10 of the whole excess */
#define REST_SHARE   10
#define WORTH_NS     300000 /* less is not worth a word */

/* ---- what is told: one thing, or all code of a thread, whatever the functions ---- */

static u64 over(const struct part *p)
{
	return p->excess_ns > 0 ? p->excess_ns : 0;
}

struct told {
	const struct part *p; /* of code the function with most; NULL: nothing */
	u64 over, ns;
};

/* Of rows by excess, largest first: the k-th in that order, when all code counts as one. */
static struct told kth(const struct part *rows, u32 n, u32 k)
{
	struct told code = {}, one = {};

	for (u32 i = 0; i < n; i++) {
		if (rows[i].cause != CAUSE_CODE)
			continue;
		code.p = code.p ?: &rows[i];
		code.over += over(&rows[i]);
		code.ns += rows[i].ns;
	}
	for (u32 i = 0; i < n; i++) {
		if (rows[i].cause == CAUSE_CODE)
			continue;
		if (code.p && code.over >= over(&rows[i]) && !k--)
			return code;
		if (code.p && code.over >= over(&rows[i]))
			code.p = NULL;
		one = (struct told){&rows[i], over(&rows[i]), rows[i].ns};
		if (!k--)
			return one;
	}
	return code.p && !k ? code : (struct told){};
}

/* ---- along the chain ---- */

/* What accounts for a wait; p is NULL where nothing does for enough of it. */
static struct told reason(struct told t)
{
	struct told b = kth(t.p->because, t.p->n_because, 0);

	return b.p && b.over && b.over >= t.over / CHAIN_SHARE ? b : (struct told){};
}

static struct told of_part(const struct part *p)
{
	return (struct told){p, over(p), p->ns};
}

const struct part *sentence__lead(const struct verdict *v, s64 *excess_ns)
{
	struct told t = kth(v->parts, v->n_parts, 0);

	if (excess_ns)
		*excess_ns = t.over;
	return t.p;
}

const struct part *sentence__root(const struct part *p)
{
	for (struct told b = reason(of_part(p)); b.p; b = reason(b))
		p = b.p;
	return p;
}

static bool nearly(u64 a, u64 b)
{
	u64 d = a > b ? a - b : b - a;

	return d <= max(a, b) / 10;
}

/* A time is told again where it is another than the last one told. */
static void add_chain(struct str *s, struct told t)
{
	u64 last = t.over;

	for (struct told b = reason(t); b.p; t = b, b = reason(b)) {
		if (nearly(b.over, last)) {
			str__add(s, ", which ");
			phrase__say(s, b.p, PAST, true);
		} else {
			str__add(s, ", which spent ");
			last = b.over;
			phrase__ns(s, last);
			str__add(s, " ");
			phrase__say(s, b.p, ING, true);
		}
	}
	if (t.p->cycle)
		str__fmt(s, ": %s", t.p->detail);
}

/* Many allocations are told with the code that made them. */
static void add_allocations(struct str *s, const struct verdict *v, const struct part *p)
{
	if (p->cause != CAUSE_CODE && p->cause != CAUSE_PAGE_FAULT && p->cause != CAUSE_MEMORY_MAP)
		return;
	if (v->allocs < 1000 || v->allocs < 4 * v->typical_allocs)
		return;
	str__fmt(s, ", with %llu allocations of ", (unsigned long long)v->allocs);
	phrase__bytes(s, v->alloc_bytes);
	if (v->alloc_most_where && v->alloc_samples >= SAMPLES_TOLD && 2 * v->alloc_most_bytes > v->alloc_bytes) {
		str__fmt(s, ", most of it in %s (%u of %u samples)", v->alloc_most_where, v->alloc_most_samples,
			v->alloc_samples);
	} else if (v->alloc_where) {
		str__add(s, ", the largest ");
		phrase__bytes(s, v->alloc_largest);
		str__fmt(s, " in %s", v->alloc_where);
	}
}

/* What a cause has to do with the heap's growth: the call itself, and the first touch of what it gave. */
static bool tells_growth(const struct verdict *v, const struct part *p)
{
	if (!v->heap_grown)
		return false;
	if (p->cause == CAUSE_MEMORY_MAP)
		return p->sys == SYS_ID_brk;
	if (p->cause == CAUSE_PAGE_FAULT)
		return p->what && !strcmp(p->what, heap_name);
	return p->cause == CAUSE_CODE && v->fragmented; /* the search through the free pieces */
}

static void add_growth(struct str *s, const struct verdict *v, const struct part *p)
{
	if (!tells_growth(v, p))
		return;
	str__add(s, ", as the heap grew by ");
	phrase__bytes(s, v->heap_grown);
	if (!v->heap_size)
		return;
	str__add(s, v->fragmented ? " though " : " and ");
	str__add(s, v->heap_cut ? "at least " : "");
	phrase__bytes(s, v->heap_free);
	str__add(s, " of its ");
	phrase__bytes(s, v->heap_size);
	str__add(s, " was free");
	if (!v->fragmented)
		return;
	str__fmt(s, " in %u pieces%s, none larger than ", v->heap_pieces, v->heap_cut ? " and more" : "");
	phrase__bytes(s, v->heap_largest);
	str__add(s, ": fragmentation");
}

static void add_cause(struct str *s, const struct verdict *v, struct told t)
{
	u64 typical = t.ns - min(t.over, t.ns);

	phrase__ns(s, t.over);
	if (typical > t.ns / 10 && typical > WORTH_NS)
		str__add(s, v->warm_up ? " over the budget" : " more than usual");
	str__add(s, " ");
	phrase__say(s, t.p, ING, true);
	add_chain(s, t);
	add_allocations(s, v, t.p);
	add_growth(s, v, t.p);
}

static u64 total_excess(const struct verdict *v)
{
	u64 sum = 0;

	for (u32 i = 0; i < v->n_parts; i++)
		sum += over(&v->parts[i]);
	return sum;
}

static void add_rest(struct str *s, const struct verdict *v, u32 told, u64 rest, u64 total)
{
	struct told next = kth(v->parts, v->n_parts, told);
	u32 n = 0;

	for (u32 k = told; kth(v->parts, v->n_parts, k).over; k++)
		n++;
	if (!n || rest < total / REST_SHARE || rest < WORTH_NS)
		return;
	str__add(s, "; the rest, ");
	phrase__ns(s, rest);
	if (n == 1) {
		str__add(s, ", ");
		phrase__say(s, next.p, ING, false);
	} else {
		str__fmt(s, ", in %u other ways", n);
	}
}

static void add_lost(struct str *s, const struct verdict *v)
{
	bool first = true;

	str__fmt(s, "unsure, %llu record%s lost", (unsigned long long)v->frame.lost,
		v->frame.lost == 1 ? " was" : "s were");
	for (int c = 0; c < CLASS_COUNT; c++) {
		if (!v->frame.lost_class[c])
			continue;
		str__fmt(s, "%s%s %llu", first ? " (" : ", ", class_names[c],
			(unsigned long long)v->frame.lost_class[c]);
		first = false;
	}
	str__add(s, first ? ": " : "): ");
}

/* Nothing is beyond the usual: the usual is beyond the budget. */
static void add_usual(struct str *s, const struct verdict *v)
{
	const struct part *largest = NULL;

	for (u32 i = 0; i < v->n_parts; i++)
		if (!largest || v->parts[i].ns > largest->ns)
			largest = &v->parts[i];
	str__add(s, "no more than usual");
	if (!largest)
		return;
	str__add(s, ": ");
	phrase__ns(s, largest->ns);
	str__add(s, " ");
	phrase__say(s, largest, ING, true);
}

void sentence__write(struct str *s, const struct verdict *v)
{
	u64 total = total_excess(v), rest = total;
	u32 told = 0;

	if (v->frame.lost)
		add_lost(s, v);
	else if (v->forgotten)
		str__add(s, "unsure, the frame was too long to keep all that happened in it: ");
	while (told < 2) {
		struct told t = kth(v->parts, v->n_parts, told);

		if (!t.over || (told && (t.over < total / SECOND_SHARE || t.over < WORTH_NS)))
			break;
		str__add(s, told ? "; " : "");
		add_cause(s, v, t);
		rest -= t.over;
		told++;
	}
	if (told)
		add_rest(s, v, told, rest, total);
	else
		add_usual(s, v);
	if (v->warm_up)
		str__add(s, " (one of the first frames: compared with the budget)");
}

void sentence__pattern(struct str *s, const struct part *p)
{
	phrase__say(s, p, ING, false);
	for (struct told b = reason(of_part(p)); b.p; b = reason(b)) {
		str__add(s, ", which ");
		phrase__say(s, b.p, PAST, false);
	}
}

u64 sentence__fingerprint(const struct part *p)
{
	u64 h = 0;

	for (struct told t = of_part(p); t.p; t = reason(t)) {
		const char *bare = t.p->what ? strstr(t.p->what, " at 0x") : NULL;

		h = hash64(h ^ (u64)t.p->cause);
		if (t.p->what && t.p->cause != CAUSE_MEMORY_MAP && t.p->cause != CAUSE_INTERRUPT && !bare)
			h = hash64(h ^ hash_bytes(t.p->what, strlen(t.p->what)));
		if (t.p->who)
			h = hash64(h ^ hash_bytes(t.p->who, strlen(t.p->who)));
	}
	return h;
}
