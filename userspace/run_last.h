/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A soak without an end, which was killed or goes on: what its kept recordings tell that is in no table yet.
 */
#ifndef REDFRAME_RUN_LAST_H
#define REDFRAME_RUN_LAST_H

#include <stdio.h>

#include "store.h"

/* The slow frames in recordings that are later than all that the store tells of; nothing for a run that has ended. 0 or
 * -errno. */
int run_last__text(struct store *s, const char *run, FILE *to);

#endif
