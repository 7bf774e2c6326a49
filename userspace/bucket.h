/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Durations by logarithm, for histograms of a fixed size: 2^7 buckets per power of two, so that a bucket's middle is
 * within 0.4 % of what is in it. Bucket numbers are in stores: they never change.
 */
#ifndef REDFRAME_BUCKET_H
#define REDFRAME_BUCKET_H

#include "common.h"

#define BUCKET_BITS 7
#define BUCKETS     ((64 - BUCKET_BITS + 1) << BUCKET_BITS)

static inline u32 bucket__of(u64 v)
{
	int shift;

	if (v < 1u << BUCKET_BITS)
		return (u32)v;
	shift = 63 - __builtin_clzll(v) - BUCKET_BITS;
	return ((u32)(shift + 1) << BUCKET_BITS) + (u32)((v >> shift) & ((1u << BUCKET_BITS) - 1));
}

/* the smallest value in a bucket, and what follows the largest (0 where that is 2^64) */
static inline u64 bucket__low(u32 b)
{
	u32 octave = b >> BUCKET_BITS, rest = b & ((1u << BUCKET_BITS) - 1);

	return octave ? (u64)((1u << BUCKET_BITS) + rest) << (octave - 1) : rest;
}

static inline u64 bucket__middle(u32 b)
{
	u32 octave = b >> BUCKET_BITS;

	return bucket__low(b) + (octave > 1 ? (1ULL << (octave - 1)) / 2 : 0);
}

#endif
