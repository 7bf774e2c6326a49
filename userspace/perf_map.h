/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The list that a just-in-time compiler (Mono, .NET, LuaJIT, V8, …) keeps of the code that it has made: in the game's
 * own view /tmp/perf-PID.map, lines of "START SIZE NAME" in hex. It grows while the game runs, and code may be
 * made again where other code was. Everything in it is the game's word, and hostile.
 */
#ifndef REDFRAME_PERF_MAP_H
#define REDFRAME_PERF_MAP_H

#include "common.h"
#include "strings.h"
#include "table.h"

#define PERF_MAP_MAX_CODES (1u << 20)
#define PERF_MAP_MAX_BYTES (128u << 20) /* read of one game in all */
#define PERF_MAP_MAX_SIZE  (1u << 20)   /* bytes of one function; what claims more is refused */
#define PERF_MAP_MAX_NAME  500

/* ns, BOOTTIME */
struct jit_code {
	u64 start, size;
	u64 unseen, seen; /* the last look at the file without its line, the first one with it */
	u64 since, until; /* it and nothing else was there, as far as can be told: after perf_map__settle */
	u32 name;         /* offset in names */
	u32 pass;         /* the last one in which the file had it */
	u32 id;           /* of its JIT_SYMBOL record; 0: not written */
};

struct perf_map {
	u32 tgid;
	int dir, file; /* the game's /tmp and its map; -1: none. They outlive the game */
	char base[32]; /* "perf-42.map" */
	u32 uid;       /* whose the file must be, if not root's */
	u64 dev, ino;
	s64 mtime_ns;
	u64 at;                /* read up to here */
	u64 head;              /* hash of the file's first head_bytes: another one means that it was written anew */
	u64 head_bytes;        /* … as many as there were */
	u64 read;              /* bytes in all */
	u64 looked;            /* when its end was last seen; 0: not yet */
	u32 pass, looked_pass; /* times that it was read from its beginning; and to its end */
	char line[1024];
	u32 used; /* of a line without an end so far */
	struct jit_code *v;
	u32 n, cap;
	struct table known; /* line → index + 1 in v */
	struct str names;
	struct page_entry *pages; /* made by perf_map__settle */
	u32 n_pages;
	u32 bad;             /* lines that make no sense */
	u32 beyond;          /* … for which there is no room */
	const char *refused; /* why the file is left alone, in words; NULL: it is not */
	int error;
};

#define PERF_MAP_NONE                                                                                                  \
	{                                                                                                              \
		.dir = -1, .file = -1                                                                                  \
	}

/* Reads what the game's map has more by now; another game's starts anew. */
void perf_map__refresh(struct perf_map *p, u32 tgid, u64 now);
/* The same for lines that a test has. */
void perf_map__take(struct perf_map *p, const char *text, size_t len, u64 now);
/* After the last line: works out what was where when. 0 or -ENOMEM. */
int perf_map__settle(struct perf_map *p);
/* What was at addr at ts; NULL: nothing, or that is not certain. */
struct jit_code *perf_map__find(const struct perf_map *p, u64 addr, u64 ts);
static inline const char *perf_map__name(const struct perf_map *p, const struct jit_code *c)
{
	return p->names.s + c->name;
}
/* Another recording begins, in which nothing of it is written yet. */
void perf_map__unname(struct perf_map *p);
void perf_map__close(struct perf_map *p);

#endif
