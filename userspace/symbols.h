/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The symbols that addresses fall into, all addresses of a module at once: its symbol table is read once. libdwfl's own
 * lookup reads it anew for each address.
 */
#ifndef REDFRAME_SYMBOLS_H
#define REDFRAME_SYMBOLS_H

#include <elfutils/libdwfl.h>

#include "common.h"

struct symbol_hit {
	u64 start, end;
	const char *name; /* as in the table, valid as long as the module; NULL: the address has no symbol */
	u32 rank;
};

/* hits[i] of addrs[i], which are sorted and lie in the module. 0 or -ENOMEM. */
int symbols__find(Dwfl_Module *mod, const u64 *addrs, u32 n, struct symbol_hit *hits);

/* the first of addrs[from, to) that is at least addr; to: none */
u32 addrs__first(const u64 *addrs, u32 from, u32 to, u64 addr);

#endif
