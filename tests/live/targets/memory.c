// SPDX-License-Identifier: GPL-2.0-only
/* memory: changes its address space. Lines: call NAME ADDRESS LENGTH RESULT WAS */
#include <sys/mman.h>
#include "target.h"

#define MAX 500

static struct row {
	const char *sys;
	unsigned long addr, len;
	long ret;
	unsigned long was;
} rows[MAX];
static int n;

static long tell(const char *sys, unsigned long addr, unsigned long len, long ret, unsigned long was)
{
	MUST(n < MAX);
	rows[n++] = (struct row){sys, addr, len, ret == -1 ? -errno : ret, was};
	return ret;
}

static void map_and_unmap(long size)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	long p = tell("mmap", 0, size, syscall(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, flags, -1, 0L), 0);

	*(volatile char *)p = 1;
	tell("madvise", p, size, syscall(SYS_madvise, p, size, MADV_DONTNEED), 0);
	tell("mprotect", p, size, syscall(SYS_mprotect, p, size, PROT_READ), 0);
	p = tell("mremap", p, 2 * size, syscall(SYS_mremap, p, size, 2 * size, MREMAP_MAYMOVE, 0), size);
	tell("munmap", p, 2 * size, syscall(SYS_munmap, p, 2 * size), 0);
}

static void move_the_break(void)
{
	unsigned long end = syscall(SYS_brk, 0L);

	tell("brk", end + 8192, 0, syscall(SYS_brk, end + 8192), end);
	tell("brk", end, 0, syscall(SYS_brk, end), end + 8192);
}

int main(void)
{
	memset(rows, 1, sizeof(rows));
	target_ready();
	for (int i = 1; i <= 50; i++)
		map_and_unmap(i * 4096L);
	tell("munmap", 1, 4096, syscall(SYS_munmap, 1L, 4096L), 0);
	tell("mmap", 0, 0, syscall(SYS_mmap, 0L, 0L, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L), 0);
	for (int i = 0; i < 20; i++)
		move_the_break();
	for (int i = 0; i < n; i++)
		printf("call %s %lu %lu %ld %lu\n", rows[i].sys, rows[i].addr, rows[i].len, rows[i].ret, rows[i].was);
	target_done();
	return 0;
}
