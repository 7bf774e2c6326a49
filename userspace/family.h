/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The processes that a process has started, and those that they started.
 */
#ifndef REDFRAME_FAMILY_H
#define REDFRAME_FAMILY_H

#include "common.h"

#define FAMILY_MAX 256

/* Living descendants of root (zombies left out), without root itself, parents first. Returns how many, at most max. */
int family__list(u32 root, u32 *tgids, int max);

#endif
