/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Where things are kept from one run to the next: $REDFRAME_CACHE ("": nothing is kept), else redframe in
 * $XDG_CACHE_HOME or ~/.cache, if that belongs to the user who runs redframe.
 */
#ifndef REDFRAME_CACHE_DIR_H
#define REDFRAME_CACHE_DIR_H

#include <sys/stat.h>

#include "common.h"

/* The folder, or the one named sub in it, made where it is missing; -1: nothing is kept. */
int cache_dir__open(const char *sub);
/* A file or folder of this user's that nobody else may write to. */
bool cache_dir__is_safe(int fd, mode_t type);
/* Removes the files that were not used for longest, until the others take no more than that. */
void cache_dir__make_room(int dir, u64 bytes);

#endif
