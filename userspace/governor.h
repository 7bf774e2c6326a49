/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What redframe leaves out so that the game does not pay more than it may: a pure function of a series of estimates.
 */
#ifndef REDFRAME_GOVERNOR_H
#define REDFRAME_GOVERNOR_H

#include "common.h"

/* In the order in which they are left out. Never frames, the scheduler, faults of the game's code or who holds a lock:
 * without them nothing is explained. */
enum shed_step {
	SHED_KERNEL_FAULT, /* faults within system calls: what costs is that other processes have them too */
	SHED_ALLOC,        /* the allocator's calls: their probes are detached */
	SHED_SAMPLE,       /* CPU samples */
	SHED_STACK,        /* copies of stacks */
	SHED_FILE,         /* calls on files that took less than CAPTURE_SYSCALL_MIN_NS */
	SHED_CALL,         /* all system calls but lock waits: most make no record, and cost the game the most */
	SHED_STEPS
};
#define SHED_BIT(step) (1u << (step))

#define GOVERNOR_TICK_NS      (40 * NSEC_PER_MSEC)  /* how often it looks */
#define GOVERNOR_PATIENCE_NS  (500 * NSEC_PER_MSEC) /* above the bound for so long: something goes … */
#define GOVERNOR_HASTE        4.0                   /* … so many times above it, what comes in floods … */
#define GOVERNOR_HASTE_NS     (75 * NSEC_PER_MSEC)  /* … go after so long, more than one slow frame's burst */
#define GOVERNOR_PAUSE_NS     (10 * NSEC_PER_SEC) /* out at first; twice as long each time it was too early, up to … */
#define GOVERNOR_PAUSE_MAX_NS (320 * NSEC_PER_SEC)
#define GOVERNOR_CALM_NS      (30 * NSEC_PER_SEC) /* below the bound for so long: the pause is the first again */
#define GOVERNOR_BETWEEN_NS   (2 * NSEC_PER_SEC)  /* from taking one up again to the next */
#define GOVERNOR_CALM_SHARE   0.7                 /* of the bound: above it nothing is taken up again */

struct governor {
	double max_percent; /* of one CPU's time; 0: no bound */
	u32 may;            /* SHED_BITs of what may be left out, being recorded */
	u32 out;            /* … and is left out now */
	u64 over_since;     /* 0: not above the bound */
	u64 calm_since;     /* 0: not all is recorded, or above the bound */
	u64 pause_ns, resume_ts;
	double percent; /* the last estimate */
};

/* What the interval that ends at ts has cost the game. */
struct governor_look {
	u64 ts, wall_ns;
	u64 ns[SHED_STEPS];
	u64 fixed_ns; /* by what is never left out */
};

void governor__init(struct governor *g, double max_percent, u32 may);
/* Returns the SHED_BITs that are left out from now on. */
u32 governor__look(struct governor *g, const struct governor_look *l);

extern const char *const shed_names[SHED_STEPS]; /* for people */
enum ev_class shed__class(enum shed_step step);

#endif
