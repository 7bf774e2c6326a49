/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Wakeups through a server: under Wine a thread that signals an event asks wineserver to, and wineserver wakes the one
 * that waits. For whom the server did it is told by the game's own records and the server's scheduling alone.
 */
#ifndef REDFRAME_RELAY_H
#define REDFRAME_RELAY_H

#include "timeline.h"

/* The thread of the game at whose request `server`, a thread of another process, woke `waiter` at `wake`. 0: it did so
 * by itself, for the waiter's own request, or that is not known. */
u32 relay__asker(const struct timeline *t, const struct model *m, u32 server, u32 waiter, u64 wake);

#endif
