/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What a recording must know about the machine and the game, written down when it begins, so that it needs nothing
 * from the machine afterwards.
 */
#ifndef REDFRAME_STARTUP_H
#define REDFRAME_STARTUP_H

#include "common.h"

struct recording_writer;
struct target;
struct site_list;

/* All stamped with ts, which lies before the first event: 0 or -errno of the recording. What /proc does not tell is
 * left out (a process may end meanwhile). */
int startup__machine(struct recording_writer *w, u64 ts);         /* kernel, CPUs, version of redframe */
int startup__tasks(struct recording_writer *w, u64 ts, u32 game); /* every process and thread; the game's own ids */
int startup__game(struct recording_writer *w, u64 ts, const struct target *t);
int startup__maps(struct recording_writer *w, u64 ts, u32 tgid);
int startup__sites(struct recording_writer *w, u64 ts, const struct site_list *l, int first);

/* what the CPUs and the game on them have done until now */
int startup__cpu_use(struct recording_writer *w, u64 ts, u32 tgid);
/* the game's memory now */
int startup__memory(struct recording_writer *w, u64 ts, u32 tgid, int mappings);

int meta__clock(struct recording_writer *w);
int meta__info(struct recording_writer *w, u64 ts, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int meta__note(struct recording_writer *w, u64 ts, u32 severity, enum ev_class class, const char *text);

#endif
