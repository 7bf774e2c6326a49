/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The recordings that soak keeps, and which of them go when room is short: of each kind of hitch the worst and the
 * first stay, the others go by their excess, the least first; then the first ones; then the worst.
 */
#ifndef REDFRAME_KEPT_H
#define REDFRAME_KEPT_H

#include "common.h"

#define KEPT_FILES 16384u /* as many files at once, whatever their size */
#define KEPT_KINDS 4096u

struct kept_file {
	u32 segment;
	bool waiting;  /* what is in it is not known yet */
	bool precious; /* the last seconds of a game that ended: goes last */
	u64 bytes;
	s64 excess_ns; /* of its hitches in all */
};

struct kept_kind {
	u64 fingerprint;
	u32 first, worst; /* segments; 0: gone */
	u64 worst_ns;
};

struct kept {
	char dir[4096 - 64];
	u64 limit; /* bytes; 0: none */
	struct kept_file *files;
	u32 n_files, cap_files;
	struct kept_kind kinds[KEPT_KINDS];
	u32 n_kinds;
	u64 bytes;
	u64 dropped, dropped_bytes; /* files that made room */
	s64 dropped_most_ns;        /* the largest excess among them */
	/* told of each file that goes; may be NULL */
	void (*gone)(void *arg, u32 segment);
	void *arg;
};

void kept__init(struct kept *k, const char *dir, u64 limit);
void kept__free(struct kept *k);
/* A file begins: 0 or -ENOMEM. */
int kept__add(struct kept *k, u32 segment, bool precious);
/* Its size by now. */
void kept__size(struct kept *k, u32 segment, u64 bytes);
/* All of its hitches are told. */
void kept__told(struct kept *k, u32 segment);
/* A hitch in it. */
void kept__hitch(struct kept *k, u32 segment, u64 fingerprint, s64 excess_ns, u64 dur_ns);
/* Unlinks files until there is room for `more` bytes below the limit; never `spare`. False: there is none to be had. */
bool kept__make_room(struct kept *k, u64 more, u32 spare);
/* Room for `more` would be made of a file of which is not known yet what is in it. */
bool kept__lacks_knowledge(const struct kept *k, u64 more, u32 spare);
bool kept__has(const struct kept *k, u32 segment);

#endif
