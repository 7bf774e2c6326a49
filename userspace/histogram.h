/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Frame durations: percentiles by nearest rank. Exact to the nanosecond for the first 2^20 frames (4.8 hours at
 * 60 fps, 8 MiB); with more, from 2^10 buckets per power of two, within 0.1 %, and no more memory.
 */
#ifndef REDFRAME_HISTOGRAM_H
#define REDFRAME_HISTOGRAM_H

#include "common.h"

#define HISTOGRAM_EXACT (1u << 20)

struct histogram {
	u64 n, max, sum;
	u64 *values; /* while exact */
	u32 cap;
	bool sorted;
	u64 *buckets; /* afterwards */
};

void histogram__free(struct histogram *h);
/* 0 or -ENOMEM */
int histogram__add(struct histogram *h, u64 ns);
/* The value of rank ceil(n × permille / 1000), at least 1; 0 where there is none. */
u64 histogram__rank(struct histogram *h, u32 permille);
/* Mean over the ceil(n / one_in) largest, ns; 0 where there is none. */
double histogram__mean_of_worst(struct histogram *h, u32 one_in);
bool histogram__exact(const struct histogram *h);

#endif
