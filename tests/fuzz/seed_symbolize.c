// SPDX-License-Identifier: GPL-2.0-only
/* What fuzz_symbolize begins with: a little of each thing that debug data describes. */
struct list {
	struct list *next;
	int value;
};

static inline __attribute__((always_inline)) int innermost(const struct list *l, int n)
{
	int sum = 0;

	for (; l; l = l->next)
		sum += l->value * n;
	return sum;
}

static inline __attribute__((always_inline)) int inner(const struct list *l, int n)
{
	return n > 3 ? innermost(l, n) : innermost(l->next, n + 1);
}

int outer(const struct list *l, int n);
int outer(const struct list *l, int n)
{
	{
		int twice = inner(l, n) * 2;

		return twice + inner(l->next, n - 1);
	}
}
