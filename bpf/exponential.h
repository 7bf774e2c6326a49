/* SPDX-License-Identifier: GPL-2.0-only OR MIT
 *
 * Gaps of a Poisson process, for the kernel side and the interposer: neither has a logarithm.
 */
#ifndef REDFRAME_EXPONENTIAL_H
#define REDFRAME_EXPONENTIAL_H

/* -ln(u) of a random u in (0, 1], in 1/65536: log2 by the leading bit, and a cubic for what follows it, right to
 * 0.001. */
static inline __attribute__((always_inline)) __u64 exponential(__u32 random)
{
	__u32 r = random | 1, lead = 0, top = r;
	__s64 f, log2;

	for (__u32 bits = 16; bits; bits /= 2) {
		if (top >> bits) {
			top >>= bits;
			lead += bits;
		}
	}
	f = ((__u64)r << (32 - lead) & ~0U) >> 16;
	log2 = f * (93248 + (f * (-38147 + (f * 10435 >> 16)) >> 16)) >> 16;
	return ((32ULL - lead) * 65536 - log2) * 45426 >> 16; /* ln 2 */
}

#endif
