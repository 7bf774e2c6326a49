/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A module's compilation units, one after the other in bounded memory: what libdw keeps of the units that it was asked
 * about (of large games gigabytes) is thrown away now and then.
 */
#ifndef REDFRAME_UNITS_H
#define REDFRAME_UNITS_H

#include <elfutils/libdwfl.h>

#include "common.h"

/* fn of each unit; bias is what to add to the unit's addresses. What hangs on `unit` does not outlive the call. It
 * returns -errno, which ends it and is returned, 0 where the unit was only looked at, 1 where it was walked. */
int units__each(Dwfl_Module *mod, int (*fn)(Dwarf_Die *unit, u64 bias, void *arg), void *arg);

#endif
