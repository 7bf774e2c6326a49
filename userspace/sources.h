/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Source lines and inlined functions of addresses, from DWARF.
 */
#ifndef REDFRAME_SOURCES_H
#define REDFRAME_SOURCES_H

#include <elfutils/libdwfl.h>

#include "common.h"

struct recording_writer;

/* A SOURCE record for each address and each function inlined there, as far as there is debug information; addrs are
 * sorted. *lines: how many addresses got one. 0 or -errno. */
int sources__write(struct recording_writer *w, Dwfl *dwfl, u64 ts, const u64 *addrs, u32 n, u32 *lines);

#endif
