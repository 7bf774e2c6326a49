// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>

#include "paired.h"

#define WALSH_MAX (PAIRED_MAX * (PAIRED_MAX + 1) / 2)

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double paired__median(double *values, u32 n)
{
	if (!n)
		return 0;
	qsort(values, n, sizeof(*values), by_value);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* The largest k with P(W <= k) <= 0.025, where W is the signed-rank sum of n pairs that do not differ; -1: none. *tail
 * is that P. */
static int critical(u32 n, double *tail)
{
	double ways[WALSH_MAX + 1] = {1}, all = 1, sum = 0;
	u32 most = 0;
	int k;

	for (u32 rank = 1; rank <= n; rank++) {
		most += rank;
		for (u32 w = most; w >= rank; w--)
			ways[w] += ways[w - rank];
		all *= 2;
	}
	*tail = 0;
	for (k = 0; k <= (int)most; k++) {
		sum += ways[k] / all;
		if (sum > 0.025)
			break;
		*tail = sum;
	}
	return k - 1;
}

static u32 walsh_averages(const double *d, u32 n, double *out)
{
	u32 m = 0;

	for (u32 i = 0; i < n; i++)
		for (u32 j = i; j < n; j++)
			out[m++] = (d[i] + d[j]) / 2;
	return m;
}

struct shift paired__shift(const double *differences, u32 n)
{
	double walsh[WALSH_MAX], tail;
	struct shift s = {0};
	u32 m;
	int k;

	n = min(n, (u32)PAIRED_MAX);
	m = walsh_averages(differences, n, walsh);
	s.estimate = paired__median(walsh, m);
	if (n < PAIRED_LEAST)
		return s;
	k = critical(n, &tail);
	s.low = walsh[k];
	s.high = walsh[(int)m - 1 - k];
	s.confidence = 1 - 2 * tail;
	s.measurable = s.low > 0 || s.high < 0;
	return s;
}
