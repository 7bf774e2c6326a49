/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "baseline.h"

#define KEY_SLOTS  (2 * BASELINE_KEYS)
#define KEY_MIN_NS 10000u /* a typical time below this is not worth remembering */

struct baseline_key {
	u64 key;
	u64 last; /* seq of the frame that had it last for KEY_MIN_NS */
	u64 ns[BASELINE_FRAMES];
};

struct baseline *baseline__new(void)
{
	struct baseline *b = calloc(1, sizeof(*b));

	if (b)
		b->keys = calloc(KEY_SLOTS, sizeof(struct baseline_key *));
	if (b && !b->keys) {
		free(b);
		b = NULL;
	}
	return b;
}

void baseline__free(struct baseline *b)
{
	if (!b)
		return;
	for (u32 i = 0; i < KEY_SLOTS; i++)
		free(b->keys[i]);
	free(b->keys);
	free(b);
}

/* ---- medians ---- */

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static u32 count_normal(const struct baseline *b)
{
	u32 n = 0;

	for (u32 i = 0; i < b->n; i++)
		n += b->normal[i];
	return n;
}

/* The lower median (nearest-rank) over the normal frames in the ring; over all of them where too few were normal. */
static u64 median(const struct baseline *b, const u64 *values, size_t stride)
{
	bool all = count_normal(b) < BASELINE_WARM;
	u64 sorted[BASELINE_FRAMES];
	u32 n = 0;

	for (u32 i = 0; i < b->n; i++)
		if (all || b->normal[i])
			sorted[n++] = values[i * stride];
	if (!n)
		return 0;
	qsort(sorted, n, sizeof(*sorted), by_value);
	return sorted[(n - 1) / 2];
}

u64 baseline__auto_budget(const struct baseline *b)
{
	u64 m;

	if (b->n < BASELINE_FIRST)
		return 0;
	m = b->sorted[(b->n - 1) / 2];
	if (m > UINT64_MAX / 4)
		return m;
	return max(m + m / 2, m + 2 * NSEC_PER_MSEC);
}

bool baseline__warm(const struct baseline *b)
{
	return b->n >= BASELINE_WARM;
}

u64 baseline__typical(const struct baseline *b)
{
	return baseline__warm(b) ? median(b, b->total, 1) : 0;
}

u64 baseline__alloc_calls(const struct baseline *b)
{
	return baseline__warm(b) ? median(b, b->alloc_calls, 1) : 0;
}

/* ---- keys ---- */

static struct baseline_key **key_slot(const struct baseline *b, u64 key)
{
	u32 i = hash64(key) & (KEY_SLOTS - 1);

	while (b->keys[i] && b->keys[i]->key != key)
		i = (i + 1) & (KEY_SLOTS - 1);
	return &b->keys[i];
}

static u64 key_median(const struct baseline *b, u64 key)
{
	const struct baseline_key *k = *key_slot(b, key);

	return k ? median(b, k->ns, 1) : 0;
}

static bool is_old(const struct baseline *b, const struct baseline_key *k)
{
	return k->last + BASELINE_FRAMES <= b->seq;
}

/* Forgets keys that no frame in the ring has. */
static int forget_keys(struct baseline *b)
{
	struct baseline_key **old = b->keys;

	b->keys = calloc(KEY_SLOTS, sizeof(struct baseline_key *));
	if (!b->keys) {
		b->keys = old;
		return -ENOMEM;
	}
	for (u32 i = 0; i < KEY_SLOTS; i++) {
		if (old[i] && !is_old(b, old[i]))
			*key_slot(b, old[i]->key) = old[i];
		else
			free(old[i]);
	}
	free(old);
	return 0;
}

static u32 count_keys(const struct baseline *b)
{
	u32 n = 0;

	for (u32 i = 0; i < KEY_SLOTS; i++)
		n += !!b->keys[i];
	return n;
}

static int add_key(struct baseline *b, u64 key, u64 ns)
{
	struct baseline_key **k = key_slot(b, key);

	if (!*k) {
		*k = calloc(1, sizeof(**k));
		if (!*k)
			return -ENOMEM;
		(*k)->key = key;
	}
	if (ns >= KEY_MIN_NS)
		(*k)->last = b->seq;
	(*k)->ns[b->head] += ns;
	return 0;
}

static int add_keys(struct baseline *b, const struct tree *tree)
{
	bool any_old = false;
	u32 room;
	int err = 0;

	for (u32 i = 0; i < KEY_SLOTS; i++) {
		if (!b->keys[i])
			continue;
		b->keys[i]->ns[b->head] = 0;
		any_old |= is_old(b, b->keys[i]);
	}
	/* at once, so that what is typical depends on no frame from before those in the ring of the oldest in it */
	if (any_old && forget_keys(b))
		return -ENOMEM;
	room = BASELINE_KEYS - min(count_keys(b), BASELINE_KEYS);
	for (u32 i = 1; !err && i < tree->n; i++) {
		const struct node *n = &tree->nodes[i];
		bool known = *key_slot(b, n->key);

		if (!known && (n->ns < KEY_MIN_NS || !room))
			continue;
		room -= !known;
		err = add_key(b, n->key, n->ns);
	}
	return err;
}

/* ---- a frame ends ---- */

static void resort(struct baseline *b, u64 out, bool full, u64 in)
{
	u32 n = b->n - !full; /* n already counts the new one */
	u32 i = 0;

	if (full) {
		while (b->sorted[i] != out)
			i++;
		memmove(&b->sorted[i], &b->sorted[i + 1], (n - 1 - i) * sizeof(u64));
		n--;
	}
	for (i = n; i && b->sorted[i - 1] > in; i--)
		b->sorted[i] = b->sorted[i - 1];
	b->sorted[i] = in;
}

int baseline__push(struct baseline *b, const struct tree *tree, bool normal)
{
	bool full = b->n == BASELINE_FRAMES;
	u64 out = b->total[b->head];
	int err;

	b->n += !full;
	b->seq++;
	b->total[b->head] = tree->nodes[0].ns;
	b->normal[b->head] = normal;
	b->alloc_calls[b->head] = tree->alloc_calls;
	memset(b->causes[b->head], 0, sizeof(b->causes[0]));
	each_child(tree, 0, i) b->causes[b->head][tree->nodes[i].cause] += tree->nodes[i].ns;
	resort(b, out, full, b->total[b->head]);
	err = add_keys(b, tree);
	b->head = (b->head + 1) % BASELINE_FRAMES;
	return err;
}

/* ---- excess ---- */

static int by_ns(const void *a, const void *b)
{
	const struct node *x = *(struct node *const *)a, *y = *(struct node *const *)b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Children of one node, smallest first; at most BECAUSE_NODES. Caller frees. */
static struct node **children(struct tree *tree, u32 of, u32 *n)
{
	struct node **list;

	*n = 0;
	each_child(tree, of, i)(*n)++;
	list = malloc((*n + 1) * sizeof(*list));
	if (!list)
		return NULL;
	*n = 0;
	each_child(tree, of, i) list[(*n)++] = &tree->nodes[i];
	qsort(list, *n, sizeof(struct node *), by_ns);
	return list;
}

/* Deducts the median of each key from its nodes, smallest first: the usual is small, the culprit is not. What is left
 * over makes the largest negative, so that the excesses of a key sum to its time minus its median. */
static void deduct_keys(const struct baseline *b, struct node **list, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		struct node *x = list[i];
		u64 left, last = i;

		if (x->left != ~0ULL)
			continue;
		left = key_median(b, x->key);
		for (u32 j = i; j < n; j++) {
			u64 take = min(left, list[j]->ns);

			if (list[j]->key != x->key)
				continue;
			list[j]->excess = list[j]->ns - take;
			list[j]->left = 0;
			left -= take;
			last = j;
		}
		list[last]->excess -= (s64)left;
	}
}

/* The threads of a cause may each be typical and their sum not: what counts is the sum. */
static void settle_cause(const struct baseline *b, struct node **list, u32 n, enum cause cause)
{
	s64 over = (s64)median(b, &b->causes[0][cause], CAUSE_COUNT);
	bool any = false;

	for (u32 i = 0; i < n; i++) {
		if (list[i]->cause != (s8)cause)
			continue;
		over += list[i]->excess - (s64)list[i]->ns;
		any = true;
	}
	for (u32 i = 0; i < n && over > 0; i++) {
		s64 take = min(over, max(list[i]->excess, (s64)0));

		if (list[i]->cause != (s8)cause)
			continue;
		list[i]->excess -= take;
		over -= take;
	}
	for (u32 i = n; any && over && i-- > 0;) {
		s64 room = (s64)list[i]->ns - list[i]->excess;

		if (list[i]->cause != (s8)cause)
			continue;
		/* too little excess: what was deducted is given back; too much still: the largest goes negative */
		room = over < 0 ? max(over, -room) : over;
		list[i]->excess -= room;
		over -= room;
	}
}

/* Without medians the budget is what is typical. It is used up by what frames usually consist of, in this order, and
 * then by the smallest of the rest. */
static void deduct_budget(struct tree *tree, u32 of, struct node **list, u32 n, u64 budget)
{
	static const s8 usual[] = {
		CAUSE_SLEEP, CAUSE_GPU_WAIT, CAUSE_CODE, CAUSE_KERNEL, CAUSE_IO_WAIT, CAUSE_THREAD_WAIT};

	for (u32 u = 0; u <= ARRAY_SIZE(usual); u++) {
		for (u32 i = 0; i < n; i++) {
			u64 take = min(budget, list[i]->ns);

			if (!list[i]->left || (u < ARRAY_SIZE(usual) && list[i]->cause != usual[u]))
				continue;
			list[i]->excess = list[i]->ns - take;
			list[i]->left = 0;
			budget -= take;
		}
	}
}

static void excess_below(const struct baseline *b, struct tree *tree, u32 of, u64 budget)
{
	u32 n;
	struct node **list = children(tree, of, &n);

	if (!list)
		return;
	for (u32 i = 0; i < n; i++) {
		list[i]->excess = list[i]->ns;
		list[i]->left = ~0ULL;
	}
	if (!baseline__warm(b)) {
		deduct_budget(tree, of, list, n, budget);
	} else {
		deduct_keys(b, list, n);
		for (int c = 0; !of && c < CAUSE_COUNT; c++)
			settle_cause(b, list, n, c);
	}
	free(list);
	each_child(tree, of, i) if (tree->nodes[i].child) /* at most BECAUSE_DEPTH down */
		excess_below(b, tree, i, tree->nodes[i].ns - max(tree->nodes[i].excess, (s64)0));
}

void baseline__excess(const struct baseline *b, struct tree *tree, u64 budget_ns)
{
	excess_below(b, tree, 0, budget_ns);
}
