/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Shared by timeline.c (threads, spans, what is kept) and timeline_sched.c (who ran when).
 */
#ifndef REDFRAME_TIMELINE_INTERNAL_H
#define REDFRAME_TIMELINE_INTERNAL_H

#include "timeline.h"

struct line *timeline__get_line(struct timeline *t, u32 tid); /* made where it is not there; NULL: no memory */
/* Into a table of n_slots, leaving out (and freeing) the threads that ended before the horizon. */
int timeline__rehash(struct timeline *t, u32 n_slots);

/* Each 0 or -ENOMEM. */
int timeline__switch(struct timeline *t, const struct model *m, const struct ev_switch *e);
int timeline__waking(struct timeline *t, const struct ev_waking *e);
int timeline__fork(struct timeline *t, const struct ev_fork *e);
void timeline__exit(struct timeline *t, const struct ev_exit *e);
/* Times of one thread never go back, whatever a recording says. */
u64 line__time(struct line *l, u64 ts);
/* It runs again, from ts on. */
void line__end_off(struct line *l, u64 ts);

#endif
