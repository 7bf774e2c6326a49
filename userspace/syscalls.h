/* SPDX-License-Identifier: GPL-2.0-only
 *
 * System calls by our own ids (probes/syscalls.def), so that a recording reads the same everywhere.
 */
#ifndef REDFRAME_SYSCALLS_H
#define REDFRAME_SYSCALLS_H

#include "common.h"

/* SYS_ID_read = 1, … */
enum sys_id {
#define SYSCALL(id, name, cause, handler) SYS_ID_##name = id,
#include "syscalls.def"
#undef SYSCALL
};

/* "pread64"; "syscall 123" for SYS_RAW | nr (into a static table's string or buf); "" for SYS_NONE */
const char *syscall__name(u16 id, char *buf, size_t size);
/* what time blocked in it is called when no record says better; CAUSE_KERNEL for unknown ones */
enum cause syscall__cause(u16 id);
/* this machine's number, or -1 */
int syscall__nr(u16 id);
/* our id for this machine's number: SYS_RAW | nr where there is none */
u16 syscall__id(int nr);
/* enum sys_handler for id */
u8 syscall__handler(u16 id);

#endif
