/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The game's images as libdwfl knows them: for unwinding, symbols and lines.
 */
#ifndef REDFRAME_MODULES_H
#define REDFRAME_MODULES_H

#include <elfutils/libdwfl.h>

#include "images.h"

struct recording_writer;

/* An IMAGE record for each module: 0 or -errno. */
int modules__write(struct recording_writer *w, Dwfl *dwfl, u64 ts);
/* NULL when out of memory. An image that cannot be read is left out. */
Dwfl *modules__open(const struct images *images);

#endif
