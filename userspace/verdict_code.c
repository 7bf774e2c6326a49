/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Time on the CPU in the game's code, divided among functions as the samples are.
 */
#include <errno.h>
#include <stdlib.h>

#include "describe.h"
#include "verdict.h"
#include "where.h"

#define LEAST_SAMPLES 4u /* fewer divide nothing: one row, which says where they were */
#define ROW_SAMPLES   2u /* that a function's own row rests on */

struct share {
	u64 code;
	u32 samples;
	u32 chain; /* the one that most of them have, of those that have any */
	u32 chains;
	u64 ns;
};

static int by_samples(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return x->code < y->code ? -1 : x->code > y->code;
}

/* first hit of the node; they are sorted by node and code */
static u32 first_hit(const struct tree *tree, u32 node)
{
	u32 low = 0, high = tree->n_hits;

	while (low < high) {
		u32 mid = low + (high - low) / 2;

		if (tree->hits[mid].node < node)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The functions that a node's samples fell into, most first. NULL: out of memory. */
static struct share *shares_of(struct arena *a, const struct tree *tree, u32 node, u32 *n)
{
	u32 first = first_hit(tree, node), last = first, run = 0;
	struct share *s;

	while (last < tree->n_hits && tree->hits[last].node == node)
		last++;
	s = arena__get(a, (last - first + 1) * sizeof(*s));
	if (!s)
		return NULL;
	*n = 0;
	for (u32 i = first; i < last; i++) {
		if (i == first || tree->hits[i].code != s[*n - 1].code)
			s[(*n)++].code = tree->hits[i].code;
		s[*n - 1].samples++;
		run = s[*n - 1].samples > 1 && tree->hits[i].chain == tree->hits[i - 1].chain ? run + 1 : 1;
		if (tree->hits[i].chain && run > s[*n - 1].chains) {
			s[*n - 1].chain = tree->hits[i].chain;
			s[*n - 1].chains = run;
		}
	}
	qsort(s, *n, sizeof(*s), by_samples);
	return s;
}

/* ns by samples; what has no row of its own goes into one more share, of no code. Returns the number of rows. */
static u32 divide(struct share *s, u32 n, const struct node *node)
{
	u32 own = 0, others = 0;
	u64 left = node->ns;

	if (node->samples >= LEAST_SAMPLES)
		while (own < n && own < CODE_ROWS && s[own].samples >= ROW_SAMPLES)
			own++;
	for (u32 i = own; i < n; i++)
		others += s[i].samples;
	for (u32 i = 0; i < own; i++) {
		s[i].ns = (u64)((unsigned __int128)node->ns * s[i].samples / node->samples);
		left -= s[i].ns;
	}
	if (!others && own) { /* only what rounding left */
		s[0].ns += left;
		return own;
	}
	/* with too few samples to divide, the function that most of them were in, if there is one */
	if (own)
		s[own] = (struct share){.samples = others, .ns = left};
	else if (n && s[0].samples * 2 >= node->samples)
		s[0].ns = left;
	else
		s[0] = (struct share){.samples = node->samples, .ns = left};
	return own + 1;
}

/* What is typical of the code is deducted from the smallest rows first, as from several things of any other cause. */
static void deduct(struct part *rows, u32 n, const struct node *node)
{
	s64 typical = (s64)node->ns - node->excess;
	bool done[CODE_ROWS + 1] = {};

	for (u32 k = 0; k < n; k++) {
		u32 least = n;

		for (u32 i = 0; i < n; i++)
			if (!done[i] && (least == n || rows[i].ns <= rows[least].ns))
				least = i;
		s64 take = k == n - 1 ? typical : min(typical, (s64)rows[least].ns);

		take = typical < 0 && k < n - 1 ? 0 : take;
		rows[least].excess_ns = (s64)rows[least].ns - take;
		typical -= take;
		done[least] = true;
	}
}

int verdict__code_rows(struct arena *a, const struct tree *tree, const struct model *m, const struct node *node,
	struct part *rows, u32 *n_rows)
{
	u32 n, n_own, first = *n_rows;
	struct share *s = shares_of(a, tree, node - tree->nodes, &n);
	int err = 0;

	if (!s)
		return -ENOMEM;
	n_own = divide(s, n, node);
	for (u32 i = 0; !err && i < n_own; i++) {
		struct part *p = &rows[(*n_rows)++];

		p->cause = CAUSE_CODE;
		p->order = first + i;
		p->ns = s[i].ns;
		p->count = n_own > 1 ? s[i].samples : node->count;
		p->samples = n_own > 1 ? s[i].samples : node->samples;
		p->longest_ns = n_own > 1 ? 0 : node->longest_ns;
		err = describe__code(p, a, m, s[i].code, s[i].samples, node->samples);
		if (!err && s[i].code)
			err = where__fill(p, a, m, s[i].chain);
	}
	deduct(&rows[first], n_own, node);
	return err;
}
