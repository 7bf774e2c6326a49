/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "describe.h"
#include "verdict.h"
#include "where.h"

#define FOLD_SHARE     1000u  /* things below 1/1000 of their parent … */
#define FOLD_NS        20000u /* … or below 20 µs are folded by cause */
#define SAMPLE_NEAR_NS 20000u /* a sample is taken in the interrupt that ends the stretch it is of */
#define MAX_ROWS       64u    /* rows of one level */

struct builder {
	struct arena *a;
	const struct tree *tree;
	const struct model *m;
	u32 *row_of; /* node of depth 1 → index before sorting */
};

/* ---- folding: many nodes, few rows ---- */

static void merge_into(struct part *to, const struct node *n)
{
	to->ns += n->ns;
	to->excess_ns += n->excess;
	to->count += n->count;
	to->bytes += n->bytes;
	to->cold_bytes += n->cold;
	to->major += n->major;
	to->minor += n->minor;
	to->copied += n->copied;
	to->huge += n->huge;
	to->samples += n->samples;
	to->blocked_ns += n->blocked_ns;
	to->latency_ns += n->latency_ns;
	to->idle_elsewhere_ns += n->idle_elsewhere_ns;
	to->late_ns += n->late_ns;
	to->longest_ns = max(to->longest_ns, n->longest_ns);
	to->cycle |= n->cycle_ns > n->ns / 2;
}

static int by_size(const void *a, const void *b)
{
	const struct node *x = *(const struct node *const *)a, *y = *(const struct node *const *)b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int by_excess(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->excess_ns != y->excess_ns)
		return x->excess_ns > y->excess_ns ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return x->cause != y->cause ? (x->cause < y->cause ? -1 : 1) : x->order < y->order ? -1 : x->order > y->order;
}

static const struct node **list_children(struct builder *b, u32 of, u32 *n)
{
	const struct node **list;

	*n = 0;
	each_child(b->tree, of, i)(*n)++;
	list = arena__get(b->a, (*n + 1) * sizeof(*list));
	if (!list)
		return NULL;
	*n = 0;
	each_child(b->tree, of, i) list[(*n)++] = &b->tree->nodes[i];
	qsort(list, *n, sizeof(*list), by_size);
	return list;
}

static struct part *folded_row(struct part *rows, u32 *n_rows, u32 *fold, enum cause cause)
{
	if (fold[cause] == ~0u) {
		fold[cause] = (*n_rows)++;
		rows[fold[cause]].cause = cause;
		rows[fold[cause]].order = fold[cause];
	}
	return &rows[fold[cause]];
}

/* Whether a node is worth a row of its own. */
static bool stands_alone(const struct node *n, u64 whole, u32 rows)
{
	return !n->mixed && rows < MAX_ROWS && n->ns >= FOLD_NS && n->ns >= whole / FOLD_SHARE;
}

static int rows_of(struct builder *b, u32 of, struct part **out, u32 *n_out);

static int row_from_node(struct builder *b, struct part *p, const struct node *n)
{
	struct part *because = NULL;
	int err;

	p->cause = n->cause;
	merge_into(p, n);
	err = describe__node(p, b->a, b->tree, b->m, n);
	if (!err && n->child)
		err = rows_of(b, n - b->tree->nodes, &because, &p->n_because);
	p->because = because;
	return err;
}

/* The rows for the children of a node. */
static int rows_of(struct builder *b, u32 of, struct part **out, u32 *n_out)
{
	u32 n, n_rows = 0, fold[CAUSE_COUNT];
	const struct node **list = list_children(b, of, &n);
	struct part *rows =
		list ? arena__get(b->a, (min(n, MAX_ROWS) + CAUSE_COUNT + CODE_ROWS) * sizeof(*rows)) : NULL;
	int err = rows ? 0 : -ENOMEM;

	memset(fold, 0xff, sizeof(fold));
	for (u32 i = 0; !err && i < n; i++) {
		u32 row = n_rows;

		if (list[i]->cause == CAUSE_CODE && !list[i]->mixed) {
			err = verdict__code_rows(b->a, b->tree, b->m, list[i], rows, &n_rows);
		} else if (stands_alone(list[i], b->tree->nodes[of].ns, n_rows)) {
			rows[row].order = row;
			n_rows++;
			err = row_from_node(b, &rows[row], list[i]);
		} else {
			struct part *p = folded_row(rows, &n_rows, fold, list[i]->cause);

			merge_into(p, list[i]);
			row = p - rows;
		}
		if (!of)
			b->row_of[list[i] - b->tree->nodes] = row;
	}
	if (err)
		return err;
	qsort(rows, n_rows, sizeof(*rows), by_excess);
	*out = rows;
	*n_out = n_rows;
	return 0;
}

/* ---- stretches ---- */

/* The function that a sample near [start, end) of the frame's thread was in; NULL: none. */
static const char *sampled(struct builder *b, u64 start, u64 end)
{
	const struct line *l = timeline__line(b->tree->t, b->tree->path[0]);
	u32 i = l ? fifo__after(&l->samples, start ? start - 1 : 0) : 0;
	const struct sample *s = l && i < l->samples.n ? fifo__at(&l->samples, i) : NULL;
	char name[256];

	if (!s || s->ts > end + SAMPLE_NEAR_NS || !code__name(b->m, code__at(b->m, s->ip, s->ts), name, sizeof(name)))
		return NULL;
	return arena__text(b->a, name);
}

static const char *what_of(struct builder *b, const struct verdict *v, const struct stretch *s)
{
	const struct part *p = &v->parts[s->part];

	if (p->cause == CAUSE_CODE)
		return sampled(b, s->start, s->end);
	return p->cause == CAUSE_CPU_WAIT ? NULL : p->what;
}

/* The row of the function; else that of all the others; else the one that it has. */
static u32 code_part(const struct verdict *v, const char *what, u32 otherwise)
{
	for (u32 i = 0; i < v->n_parts; i++) {
		const struct part *p = &v->parts[i];

		if (p->cause != CAUSE_CODE)
			continue;
		if (what && p->what && !strcmp(what, p->what))
			return i;
		if (!p->what)
			otherwise = i;
	}
	return otherwise;
}

static int fill_stretches(struct verdict *v, struct builder *b)
{
	const struct tree *tree = b->tree;
	struct stretch *s = arena__get(b->a, (tree->n_moments + 1) * sizeof(*s));
	u32 *sorted = arena__get(b->a, (v->n_parts + 1) * sizeof(*sorted)), n = 0;

	if (!s || !sorted)
		return -ENOMEM;
	for (u32 i = 0; i < v->n_parts; i++)
		sorted[v->parts[i].order] = i;
	for (u32 i = 0; i < tree->n_moments; i++) {
		const struct moment *m = &tree->moments[i];
		u32 part = sorted[b->row_of[m->node]];

		if (n && s[n - 1].part == part && !s[n - 1].waker_tid && s[n - 1].who_tid == m->who) {
			s[n - 1].end = m->end;
		} else {
			s[n++] = (struct stretch){.start = m->start, .end = m->end, .part = part};
		}
		s[n - 1].waker_ts = m->waker_ts;
		s[n - 1].waker_tid = m->waker;
		s[n - 1].who_tid = m->who;
	}
	for (u32 i = 0; i < n; i++) {
		s[i].what = what_of(b, v, &s[i]);
		if (v->parts[s[i].part].cause == CAUSE_CODE)
			s[i].part = code_part(v, s[i].what, s[i].part);
	}
	v->stretches = s;
	v->n_stretches = n;
	return 0;
}

/* What was free did not do for what was asked for. */
#define FRAGMENTED_BYTES (1u << 20) /* so much at the least, and … */
#define FRAGMENTED_SHARE 4u         /* a quarter of the heap, or more pieces than were counted */

static void fill_heap(struct verdict *v, const struct timeline *t)
{
	struct growth g = heap__growth(t, v->frame.start, v->frame.end);

	v->heap_grown = g.bytes;
	v->heap_size = g.size;
	v->heap_free = g.free;
	v->heap_largest = g.largest;
	v->heap_pieces = g.pieces;
	v->heap_cut = g.cut;
	v->fragmented = g.bytes && g.free >= FRAGMENTED_BYTES && (g.cut || g.free >= g.size / FRAGMENTED_SHARE);
}

/* The code that most of the sampled allocations stand for. */
static void fill_sampled(struct verdict *v, struct arena *a, const struct tree *tree)
{
	u64 site = tally__top(&tree->alloc_bytes_at, &v->alloc_most_bytes);
	const char *where = intern__text(&tree->t->names, (u32)site);

	v->alloc_samples = tree->alloc_samples;
	v->alloc_most_where = where ? arena__text(a, where) : NULL;
	for (int i = 0; i < TALLY; i++)
		if (tree->alloc_samples_at.id[i] == site)
			v->alloc_most_samples = (u32)tree->alloc_samples_at.n[i];
}

int verdict__fill(struct verdict *v, struct arena *a, const struct tree *tree, const struct model *m)
{
	struct builder b = {.a = a, .tree = tree, .m = m};
	struct part *parts = NULL;
	char name[256];
	int err;

	b.row_of = arena__get(a, tree->n * sizeof(u32));
	if (!b.row_of)
		return -ENOMEM;
	err = rows_of(&b, 0, &parts, &v->n_parts);
	if (err)
		return err;
	v->parts = parts;
	fill_sampled(v, a, tree);
	v->not_followed = tree->not_followed;
	fill_heap(v, tree->t);
	if (where__game(m, tree->alloc_chain, name, sizeof(name)) ||
		function__name(m, tree->alloc_caller, name, sizeof(name)))
		v->alloc_where = arena__text(a, name);
	return fill_stretches(v, &b);
}
