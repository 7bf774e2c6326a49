/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Names and lines of an image's addresses, kept from one recording to the next by the image's build-id: reading them
 * from its debug data takes seconds, and every segment of a soak and every night's run asks for the same ones.
 *
 * One file each (cache_dir.h): a recording of SYMBOLs, SOURCEs, and a CALL for each address that was asked for, with
 * addresses as the image's file counts them.
 */
#ifndef REDFRAME_NAME_CACHE_H
#define REDFRAME_NAME_CACHE_H

#include <elfutils/libdwfl.h>

#include "common.h"

struct name_cache;
struct recording_writer;

enum cached { CACHED = 1, CACHED_NAME = 2, CACHED_LINE = 4 };

/* NULL: nothing is kept of it */
struct name_cache *name_cache__open(Dwfl_Module *mod);
/* Writes what is known of addrs, which are sorted and lie in the module. found[i]: enum cached; 0: it has to be looked
 * up. 0 or -errno of the writer. */
int name_cache__tell(
	const struct name_cache *c, struct recording_writer *w, u64 ts, const u64 *addrs, u32 n, u8 *found);
/* A SYMBOL or SOURCE that was found for one that was not. */
void name_cache__add(struct name_cache *c, const struct ev_hdr *rec);
/* Keeps them: addrs were looked up, with or without success. */
void name_cache__close(struct name_cache *c, const u64 *addrs, u32 n);

#endif
