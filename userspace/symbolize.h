/* SPDX-License-Identifier: GPL-2.0-only
 *
 * When a recording ends: names for the addresses in it, so that it explains anywhere. Reads back what was written,
 * collects the addresses that somebody will want a name for, and appends a SYMBOL record for each symbol they fall
 * into.
 */
#ifndef REDFRAME_SYMBOLIZE_H
#define REDFRAME_SYMBOLIZE_H

#include <elfutils/libdwfl.h>

#include "common.h"

struct recording_writer;
struct pe_modules;
struct jit;

struct symbolize_result {
	u32 addresses; /* distinct ones that wanted a name */
	u32 named;
	u32 lines;  /* have a source line */
	u32 beyond; /* distinct ones that did not fit into the table: without a name */
};

/* pe: NULL where there are none; jit: where nothing is known of code made at run time. 0 or -errno */
int symbolize__write(struct recording_writer *w, Dwfl *dwfl, const struct pe_modules *pe, struct jit *jit, u64 ts,
	struct symbolize_result *out);

#endif
