/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Separate debug files, from this machine or, where the user has set DEBUGINFOD_URLS and never else, from a server. One
 * that does not answer is not asked again by this process: a game has a hundred files.
 */
#ifndef REDFRAME_DEBUG_SERVER_H
#define REDFRAME_DEBUG_SERVER_H

#include <elfutils/libdwfl.h>

#include "common.h"

/* for Dwfl_Callbacks.find_debuginfo */
int debug_server__find(Dwfl_Module *mod, void **user, const char *name, Dwarf_Addr base, const char *file,
	const char *link, GElf_Word crc, char **found);
/* whether one was given up, in words */
bool debug_server__gave_up(char *why, size_t size);

#endif
