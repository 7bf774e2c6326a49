// SPDX-License-Identifier: GPL-2.0-only
#include <stdio.h>
#include <stdlib.h>

#include "debug_server.h"
#include "drain.h"

#define PATIENCE "10" /* seconds, in which it must give 100 kB; the client asks thrice, and by itself waits 90 */

static u32 silent; /* seconds; of this process, as the environment is */

static u64 patience_ns(void)
{
	const char *seconds = getenv("DEBUGINFOD_TIMEOUT");

	return strtoull(seconds ?: PATIENCE, NULL, 10) * NSEC_PER_SEC;
}

int debug_server__find(Dwfl_Module *mod, void **user, const char *name, Dwarf_Addr base, const char *file,
	const char *link, GElf_Word crc, char **found)
{
	u64 from = clock_boot_ns(), took;
	int fd;

	setenv("DEBUGINFOD_TIMEOUT", PATIENCE, false);
	fd = dwfl_standard_find_debuginfo(mod, user, name, base, file, link, crc, found);
	took = clock_boot_ns() - from;
	if (fd < 0 && getenv("DEBUGINFOD_URLS") && patience_ns() && took >= patience_ns()) {
		silent = (u32)(took / NSEC_PER_SEC);
		unsetenv("DEBUGINFOD_URLS");
	}
	return fd;
}

bool debug_server__gave_up(char *why, size_t size)
{
	snprintf(why, size,
		"the server of debug data (DEBUGINFOD_URLS) gave nothing within %u s and was not asked again: "
		"functions may "
		"be without names and lines",
		silent);
	return silent;
}
