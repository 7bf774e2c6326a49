/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_COMPARE_LOAD_H
#define REDFRAME_COMPARE_LOAD_H

#include "compare.h"

/* The scenes that either side has frames of, with their groups. The sums are the database's. 0 or -errno. */
int compare__load(struct store *s, const struct compare_options *o, struct comparison *c);

#endif
