/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_TRACEFS_H
#define REDFRAME_TRACEFS_H

#include "common.h"

/* Where the kernel's tracepoints are described: tracefs, else debugfs's copy, else a mount of our own in a mount
 * namespace that only we see. NULL where none of them can be had (errno says why). The path lives as long as we do. */
const char *tracefs__path(void);
/* "mounted", "in debugfs", "mounted privately": how tracefs__path got it */
const char *tracefs__how(void);
/* Whether the kernel has this tracepoint: 1, 0, or -errno where tracefs cannot be had */
int tracefs__has(const char *group, const char *event);

#endif
