/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "histogram.h"

#define SUB_BITS 10
#define SUB      (1u << SUB_BITS)
#define BUCKETS  ((64 - SUB_BITS + 1) * SUB)

void histogram__free(struct histogram *h)
{
	free(h->values);
	free(h->buckets);
	memset(h, 0, sizeof(*h));
}

static u32 bucket_of(u64 v)
{
	int shift;

	if (v < SUB)
		return v;
	shift = 63 - __builtin_clzll(v) - SUB_BITS;
	return (u32)(shift + 1) * SUB + (u32)((v >> shift) & (SUB - 1));
}

/* the largest value in a bucket */
static u64 bucket_top(u32 b)
{
	u32 shift = b / SUB;

	if (!shift)
		return b;
	shift--;
	return (((u64)SUB + b % SUB) << shift) + ((1ULL << shift) - 1);
}

static int to_buckets(struct histogram *h)
{
	h->buckets = calloc(BUCKETS, sizeof(u64));
	if (!h->buckets)
		return -ENOMEM;
	for (u64 i = 0; i < h->n; i++)
		h->buckets[bucket_of(h->values[i])]++;
	free(h->values);
	h->values = NULL;
	return 0;
}

static int grow(struct histogram *h)
{
	u32 cap = h->cap ? h->cap * 2 : 1024;
	u64 *values = realloc(h->values, cap * sizeof(u64));

	if (!values)
		return -ENOMEM;
	h->values = values;
	h->cap = cap;
	return 0;
}

int histogram__add(struct histogram *h, u64 ns)
{
	int err = 0;

	if (!h->buckets && h->n == HISTOGRAM_EXACT)
		err = to_buckets(h);
	else if (!h->buckets && h->n == h->cap)
		err = grow(h);
	if (err)
		return err;
	if (h->buckets)
		h->buckets[bucket_of(ns)]++;
	else
		h->values[h->n] = ns;
	h->sorted = false;
	h->n++;
	h->sum += ns;
	h->max = max(h->max, ns);
	return 0;
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static void sort(struct histogram *h)
{
	if (!h->sorted && h->values)
		qsort(h->values, h->n, sizeof(u64), by_value);
	h->sorted = true;
}

static u64 bucket_rank(const struct histogram *h, u64 rank)
{
	u64 seen = 0;

	for (u32 b = 0; b < BUCKETS; b++) {
		seen += h->buckets[b];
		if (seen >= rank)
			return min(bucket_top(b), h->max);
	}
	return h->max;
}

u64 histogram__rank(struct histogram *h, u32 permille)
{
	u64 rank = max((h->n * permille + 999) / 1000, (u64)1);

	if (!h->n)
		return 0;
	if (h->buckets)
		return bucket_rank(h, rank);
	sort(h);
	return h->values[rank - 1];
}

double histogram__mean_of_worst(struct histogram *h, u32 one_in)
{
	u64 k = (h->n + one_in - 1) / one_in, left = k;
	double sum = 0;

	if (!k)
		return 0;
	sort(h);
	if (h->values)
		for (u64 i = h->n - k; i < h->n; i++)
			sum += h->values[i];
	for (u32 b = BUCKETS; h->buckets && left && b-- > 0;) {
		u64 take = min(left, h->buckets[b]);

		sum += (double)take * min(bucket_top(b), h->max);
		left -= take;
	}
	return sum / k;
}

bool histogram__exact(const struct histogram *h)
{
	return !h->buckets;
}
