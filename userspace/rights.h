/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What redframe may do, and what it gives up: docs/rights.md says which capability is for what.
 */
#ifndef REDFRAME_RIGHTS_H
#define REDFRAME_RIGHTS_H

#include "common.h"

struct right {
	int bit; /* linux/capability.h */
	const char *name;
	const char *purpose;
	bool must; /* nothing is recorded without it */
};

/* for recording; ends with a NULL name */
extern const struct right rights_to_record[];

/* The effective capabilities of this thread, one bit each. CAP_SYS_ADMIN stands for CAP_BPF and CAP_PERFMON. */
u64 rights__have(void);

/* Once everything is attached: of what this thread holds, keeps only what probes that come later, reading /proc of the
 * game, and writing files as the invoking user take; programs that it might run get nothing more (no_new_privs).
 * Threads made afterwards are as bare. 0 or -errno. */
int rights__drop(void);

#endif
