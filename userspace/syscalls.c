/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "handlers.h"
#include "syscalls.h"

/* Calls that the installed kernel headers are too old for. From 424 (5.1) on, new calls have one number everywhere. */
#ifndef __NR_openat2
#define __NR_openat2 437
#endif
#ifndef __NR_faccessat2
#define __NR_faccessat2 439
#endif
#ifndef __NR_process_madvise
#define __NR_process_madvise 440
#endif
#ifndef __NR_epoll_pwait2
#define __NR_epoll_pwait2 441
#endif
#ifndef __NR_futex_waitv
#define __NR_futex_waitv 449
#endif
#ifndef __NR_futex_wait
#define __NR_futex_wait 455
#endif

/* Calls that newer architectures (arm64) never had. */
#ifndef __NR_open
#define __NR_open -1
#endif
#ifndef __NR_creat
#define __NR_creat -1
#endif
#ifndef __NR_stat
#define __NR_stat -1
#endif
#ifndef __NR_lstat
#define __NR_lstat -1
#endif
#ifndef __NR_newfstatat
#define __NR_newfstatat -1
#endif
#ifndef __NR_access
#define __NR_access -1
#endif
#ifndef __NR_readlink
#define __NR_readlink -1
#endif
#ifndef __NR_rename
#define __NR_rename -1
#endif
#ifndef __NR_unlink
#define __NR_unlink -1
#endif
#ifndef __NR_mkdir
#define __NR_mkdir -1
#endif
#ifndef __NR_pause
#define __NR_pause -1
#endif
#ifndef __NR_poll
#define __NR_poll -1
#endif
#ifndef __NR_select
#define __NR_select -1
#endif
#ifndef __NR_epoll_wait
#define __NR_epoll_wait -1
#endif
#ifndef __NR_fork
#define __NR_fork -1
#endif
#ifndef __NR_vfork
#define __NR_vfork -1
#endif

struct row {
	const char *name;
	int nr;
	u8 handler;
	signed char cause;
};

static const struct row rows[] = {
#define SYSCALL(id, name, cause, handler) [id] = {#name, __NR_##name, HANDLE_##handler, CAUSE_##cause},
#include "syscalls.def"
#undef SYSCALL
};

static const struct row *row(u16 id)
{
	return id < ARRAY_SIZE(rows) && rows[id].name ? &rows[id] : NULL;
}

const char *syscall__name(u16 id, char *buf, size_t size)
{
	const struct row *r = row(id);

	if (r)
		return r->name;
	if (id == SYS_NONE)
		return "";
	if (id & SYS_RAW)
		snprintf(buf, size, "syscall %d", id & ~SYS_RAW);
	else
		snprintf(buf, size, "unknown call %d", id);
	return buf;
}

enum cause syscall__cause(u16 id)
{
	const struct row *r = row(id);

	return r ? (enum cause)r->cause : CAUSE_KERNEL;
}

int syscall__nr(u16 id)
{
	const struct row *r = row(id);

	if (r)
		return r->nr;
	return id & SYS_RAW ? id & ~SYS_RAW : -1;
}

u16 syscall__id(int nr)
{
	if (nr < 0 || nr >= SYS_RAW)
		return SYS_NONE;
	for (size_t id = 1; id < ARRAY_SIZE(rows); id++)
		if (rows[id].name && rows[id].nr == nr)
			return (u16)id;
	return (u16)(SYS_RAW | nr);
}

u8 syscall__handler(u16 id)
{
	const struct row *r = row(id);

	return r ? r->handler : HANDLE_OTHER;
}
