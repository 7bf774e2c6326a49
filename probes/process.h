/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Finding the game: one process, held by a pidfd so that another process under the same number is never taken for it.
 */
#ifndef REDFRAME_PROCESS_H
#define REDFRAME_PROCESS_H

#include "common.h"

struct target {
	u32 tgid;         /* as we see it */
	u32 nspid;        /* as it sees itself */
	int pidfd;        /* -1: none */
	u32 threads;      /* when it was looked at */
	bool own_pid_ns;  /* it lives in another pid namespace than we do: a container */
	bool own_mnt_ns;  /* … and sees other files */
	char name[64];    /* the program's, not its main thread's; valid UTF-8, as are the others */
	char exe[512];    /* "" where it cannot be read; without " (deleted)" */
	char cgroup[256]; /* path in the unified hierarchy, or the first one listed; "" unknown */
};

/* Each fills t and returns 0, or -errno with `why` in words that say the way out:
 * -ESRCH it does not exist (any more), -EINVAL it is no process one can record (kernel thread, a thread's number,
 * ourselves), -ENOTUNIQ several have the name (they are listed), -EPERM/-EACCES not allowed. */
int target__by_pid(struct target *t, u32 pid, char *why, size_t why_size);
/* By comm, base name of the executable, or base name of argv[0] (Windows paths too). */
int target__by_name(struct target *t, const char *name, bool newest, char *why, size_t why_size);
/* Looks until the name is there: 0, -ETIMEDOUT after timeout_ms (-1: never), -EINTR when stop(arg) says so, or any
 * error of target__by_name other than -ESRCH. */
int target__wait(struct target *t, const char *name, bool newest, int timeout_ms, bool (*stop)(void *arg), void *arg,
	char *why, size_t why_size);
/* the number, as we see it, of a thread of tgid that calls itself nstid; 0 where there is none (any more) */
u32 process__host_tid(u32 tgid, u32 nstid);
bool target__alive(const struct target *t);
void target__close(struct target *t);

#endif
