/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A call chain in words: the functions of it, those of the game told from those of the system's libraries.
 */
#ifndef REDFRAME_WHERE_H
#define REDFRAME_WHERE_H

#include "explain.h"

struct arena;

/* One function of a chain: inlined ones are several at one address. */
struct where_step {
	const char *function; /* "" where not known; not sanitised */
	const char *file;
	u32 line;
	u64 addr;
	bool kernel;
	const struct mapping *map; /* NULL: not known */
};
/* fn of each, innermost first, until it returns true, which is then returned */
bool where__each(const struct model *m, u32 chain, bool (*fn)(const struct where_step *s, void *arg), void *arg);
/* "FooBar", "libgame.so+0x12340" where it has no name; valid UTF-8 */
void where__name(const struct where_step *s, char *buf, size_t size);

#define WHERE_PLACES 64 /* of a chain that are told, the innermost */

/* Fills in part's places from the chain, and `where` if there is something to tell. 0 or -ENOMEM. */
int where__fill(struct part *p, struct arena *a, const struct model *m, u32 chain);
/* "LoadNavigationData (pathfinding.cpp:142)": the innermost place of the game's own code in the chain, else of a
 * library such as the driver; false where the chain is 0, nothing in it has a name, or it lies in the C library only,
 * which says no more than the call does. Valid UTF-8. */
bool where__game(const struct model *m, u32 chain, char *buf, size_t size);
/* the same without its line */
bool where__function(const struct model *m, u32 chain, char *buf, size_t size);
/* the symbol of the innermost function of the chain that is in `object`, such as libc, up to the first that is not;
 * calls fn for each until it returns true. Names are not sanitised. */
bool where__each_function(const struct model *m, u32 chain, bool (*fn)(const char *function, void *arg), void *arg);

#endif
