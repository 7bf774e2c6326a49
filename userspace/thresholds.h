/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What a frame may do before soak keeps it (--keep) or calls the run failed (--fail).
 */
#ifndef REDFRAME_THRESHOLDS_H
#define REDFRAME_THRESHOLDS_H

#include "common.h"

/* clang-format off */
#define LIMITS(X) \
	X(FRAME, frame, NS, "ms", "it took")                                                   \
	X(ALLOC, alloc, BYTES, "bytes", "the game allocated in it")                           \
	X(ALLOCS, allocs, COUNT, "calls", "allocations of the game in it")                    \
	X(FAULTS, faults, COUNT, "faults", "page faults of the game in it")                   \
	X(COLD, cold, BYTES, "bytes", "the game read from the device in it")                  \
	X(LOCK, lock, NS, "ms", "its thread waited for locks in it")
enum limit_kind {
#define X(NAME, name, unit, word, about) LIMIT_##NAME,
	LIMITS(X)
#undef X
	LIMIT_KINDS
};
/* clang-format on */

extern const char *const limit_names[LIMIT_KINDS];

/* Amounts by kind: ns, bytes or a number. As limits, 0 is none. */
struct amounts {
	u64 of[LIMIT_KINDS];
};

/* "frame=33,cold=16M,lock=5": 0 or -EINVAL after a message that names the option */
int limits__parse(const char *option, const char *text, struct amounts *out);
/* bit 1 << kind of each that was crossed */
u32 limits__crossed(const struct amounts *limits, const struct amounts *did);
/* "41.2 ms", "16.0 MiB", "312" into buf; returns buf */
const char *limit__words(enum limit_kind kind, u64 amount, char *buf, size_t size);

#endif
