/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Work that may take long, while something else must go on.
 */
#ifndef REDFRAME_ASIDE_H
#define REDFRAME_ASIDE_H

#include "common.h"

/* Calls work in a thread of its own, and meanwhile() again and again, in this one, until it is done. Where there can be
 * no thread, work alone. */
void aside__run(void (*work)(void *arg), void (*meanwhile)(void *arg), void *arg);

#endif
