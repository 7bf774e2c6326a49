/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_ALLOCATORS_H
#define REDFRAME_ALLOCATORS_H

#include "site_build.h"

/* Every function of the allocator in use; those that would be single-stepped only with allow_stepped. Returns how many
 * were added or -errno; what is left out is in why. */
int allocators__find(
	struct site_list *l, struct objects *o, bool with_free, bool allow_stepped, char *why, size_t why_size);

#endif
