/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Programs on places in a file's code. Many of them in one link, attached and detached together, and only in one
 * process (uprobe_multi: v6.6 89ae89f53d) takes CAP_BPF and CAP_PERFMON; one by one, by perf event, it takes
 * CAP_SYS_ADMIN.
 */
#ifndef REDFRAME_UPROBE_MULTI_H
#define REDFRAME_UPROBE_MULTI_H

#include "common.h"

#define UPROBE_MULTI_ATTACH_TYPE 48 /* BPF_TRACE_UPROBE_MULTI, which the headers of libbpf 1.1 do not have */

/* Whether the kernel has it: tried once. Programs must be loaded for this attach type then. */
bool uprobe_multi__supported(void);
/* A link's fd or -errno; attach only within tgid's address space. arrays of n. */
int uprobe_multi__attach(
	int prog_fd, const char *path, u32 tgid, const u64 *offsets, const u64 *semaphores, const u64 *cookies, u32 n);
/* The same for one place, on kernels without uprobe_multi. tgid 0: in every process. */
int uprobe__attach(int prog_fd, const char *path, u32 tgid, u64 offset, u64 semaphore, u64 cookie);

#endif
