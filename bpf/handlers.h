/* SPDX-License-Identifier: GPL-2.0-only OR MIT
 *
 * Which piece of the kernel side reads a system call's arguments: the HANDLER column of probes/syscalls.def.
 */
#ifndef REDFRAME_HANDLERS_H
#define REDFRAME_HANDLERS_H

enum sys_handler {
	HANDLE_OTHER, /* recorded as SYSCALL when it took long */
	/* bpf/file.bpf.c */
	HANDLE_READ,
	HANDLE_PREAD,
	HANDLE_PREADV2,
	HANDLE_SENDFILE,
	HANDLE_COPY_RANGE,
	HANDLE_WRITE,
	HANDLE_PWRITE,
	HANDLE_PWRITEV2,
	HANDLE_OPEN,
	HANDLE_OPENAT,
	HANDLE_CLOSE,
	HANDLE_STAT,
	HANDLE_STATAT,
	HANDLE_FSTAT,
	HANDLE_SYNC,
	/* bpf/lock.bpf.c */
	HANDLE_FUTEX,
	HANDLE_FUTEX_WAITV,
	HANDLE_FUTEX2,
	/* bpf/alloc.bpf.c */
	HANDLE_MMAP,
	HANDLE_MEM,
	HANDLE_MREMAP,
	HANDLE_BRK,
	HANDLE_MADVISE,
};

#endif
