/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Whether something changed, from pairs of neighbouring measurements: the Hodges-Lehmann estimate of the shift with the
 * confidence interval of Wilcoxon's signed-rank test, exact. It asks nothing of how the values are distributed, but
 * that the differences of the pairs lie symmetrically around the shift.
 */
#ifndef REDFRAME_PAIRED_H
#define REDFRAME_PAIRED_H

#include "common.h"

#define PAIRED_MAX   64 /* pairs */
#define PAIRED_LEAST 6  /* with fewer no interval has 95 % */

struct shift {
	double estimate, low, high; /* low to high: the interval */
	double confidence;          /* its exact one, at least 0.95; 0: too few pairs */
	bool measurable;            /* the interval does not hold 0 */
};

/* Of differences (with - without), one of each pair. */
struct shift paired__shift(const double *differences, u32 n);
/* Reorders values; the mean of the middle two where n is even, 0 where there are none. */
double paired__median(double *values, u32 n);

#endif
