/* SPDX-License-Identifier: GPL-2.0-only
 *
 * When a recording ends: names of code made at run time, as far as its addresses need them.
 */
#ifndef REDFRAME_JIT_H
#define REDFRAME_JIT_H

#include <elfutils/libdwfl.h>

#include "common.h"

struct perf_map;
struct recording_writer;

struct jit {
	struct perf_map *map; /* settled; NULL: the game has none */
	Dwfl *dwfl;           /* its images: what lies in them is none of this */
	struct recording_writer *w;
	u64 ts;        /* of the records */
	bool nameless; /* none is to be written */
	u32 n;         /* written */
};

/* The number of what was at addr at ts, for CALL.jit; its JIT_SYMBOL is written when it is first asked for. 0: no code
 * made at run time that the map knows. An error stays in w. */
u32 jit__id(struct jit *j, u64 addr, u64 ts);
bool jit__is_code(const struct jit *j, u64 addr, u64 ts);

#endif
