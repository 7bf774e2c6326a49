// SPDX-License-Identifier: GPL-2.0-only
/* What fuzz_symbolize begins with: a little of each thing that debug data describes. */
namespace game
{
template <typename T> struct list {
	list *next;
	T value;

	T sum(T n) const
	{
		T all{};

		for (const list *l = this; l; l = l->next)
			all += l->value * n;
		return all;
	}
};

static inline __attribute__((always_inline)) int inner(const list<int> *l, int n)
{
	return n > 3 ? l->sum(n) : l->next->sum(n + 1);
}

int outer(const list<int> *l, int n)
{
	{
		int twice = inner(l, n) * 2;
		auto more = [&](int by) { return inner(l->next, twice + by); };

		return twice + more(n - 1);
	}
}
}
