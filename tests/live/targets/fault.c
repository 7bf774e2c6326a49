// SPDX-License-Identifier: GPL-2.0-only
/* fault DIR HUGE: touches pages that are not there. Lines: fault ADDRESS WORD BEGIN END, where WORD is what the fault
 * must be: write read cow kernel exec major huge (HUGE of them); the times (BOOTTIME) enclose the touch. region START
 * END: nothing else faults there. */
#include <sys/mman.h>
#include "target.h"

#define PAGE  4096L
#define FRESH 500
#define MAX   1000
#define HUGE  (2L << 20)

struct touch {
	char *addr;
	const char *word;
	unsigned long long begin, end;
};

static struct touch touches[MAX];
static int n;
static struct {
	char *start, *end;
} regions[8];
static int n_regions;

static char *region(long pages, int prot, int flags, int fd)
{
	char *p = mmap(NULL, pages * PAGE, prot, flags, fd, 0);

	MUST(p != MAP_FAILED);
	if (flags & MAP_ANONYMOUS)
		MUST(!madvise(p, pages * PAGE, MADV_NOHUGEPAGE));
	regions[n_regions].start = p;
	regions[n_regions++].end = p + pages * PAGE;
	return p;
}

static struct touch *begin(char *addr, const char *word)
{
	MUST(n < MAX);
	touches[n] = (struct touch){.addr = addr, .word = word, .begin = boot_ns()};
	return &touches[n++];
}

static void write_to(char *p, const char *word)
{
	struct touch *t = begin(p, word);

	*(volatile char *)p = 1;
	t->end = boot_ns();
}

static void read_from(char *p, const char *word)
{
	struct touch *t = begin(p, word);

	(void)*(volatile char *)p;
	t->end = boot_ns();
}

static void kernel_writes(int fd, char *p)
{
	struct touch *t = begin(p, "kernel");

	MUST(pread(fd, p, 1, 0) == 1);
	t->end = boot_ns();
}

/* one mapping per page: the kernel maps no neighbours that are in memory along with it */
static char *lone_page(int fd, long page, int prot)
{
	char *hole = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *p;

	MUST(hole != MAP_FAILED);
	p = mmap(hole + PAGE, PAGE, prot, MAP_PRIVATE | MAP_FIXED, fd, page * PAGE);
	MUST(p != MAP_FAILED);
	madvise(p, PAGE, MADV_RANDOM); /* no readahead: each page is read on its own */
	return p;
}

static int in_memory(char *p)
{
	unsigned char yes;

	MUST(!mincore(p, PAGE, &yes));
	return yes & 1;
}

static void cold_pages(int fd)
{
	static char *pages[20];

	for (int i = 0; i < 20; i++)
		pages[i] = lone_page(fd, i * 3, PROT_READ);
	MUST(!fsync(fd) && !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	for (int i = 0; i < 20; i++)
		read_from(pages[i], in_memory(pages[i]) ? "read" : "major");
}

static void run_code(int fd)
{
	struct touch *t;
	char *p;

	for (int i = 0; i < 10; i++) {
		p = lone_page(fd, i * 3, PROT_READ | PROT_EXEC);
		t = begin(p, "exec");
		((void (*)(void))p)();
		t->end = boot_ns();
	}
}

static int code_file(const char *dir)
{
	static char code[64 * PAGE];
	char path[4096];
	int fd;

	memset(code, 0xc3, sizeof(code)); /* ret */
	snprintf(path, sizeof(path), "%s/code.bin", dir);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	MUST(fd >= 0 && write(fd, code, sizeof(code)) == sizeof(code));
	return fd;
}

/* Each first touch of 2 MiB brings all of it; beside it, as much that may not. */
static void huge_pages(char *p, int count)
{
	for (int i = 0; i < count; i++)
		write_to(p + i * HUGE + 12345, "huge");
	for (int i = 0; i < count; i++)
		*(volatile char *)(p + i * HUGE + HUGE - 1) = 2; /* no fault any more */
}

static char *huge_region(int count)
{
	char *p = mmap(NULL, (count + 1) * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(p != MAP_FAILED);
	p += -(unsigned long)p % HUGE;
	MUST(!madvise(p, count * HUGE, MADV_HUGEPAGE));
	regions[n_regions].start = p;
	regions[n_regions++].end = p + count * HUGE;
	return p;
}

int main(int argc, char **argv)
{
	char *fresh, *shared, *kernel, *huge;
	int n_huge;
	int fd;

	MUST(argc == 3);
	n_huge = atoi(argv[2]);
	fd = code_file(argv[1]);
	memset(touches, 1, sizeof(touches)); /* their own pages are there */
	fresh = region(FRESH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	shared = region(100, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	kernel = region(20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	huge = n_huge ? huge_region(n_huge) : NULL;
	target_ready();
	for (int i = 0; i < FRESH; i++)
		write_to(fresh + i * PAGE + i % PAGE, "write");
	for (int i = 0; i < FRESH; i++)
		*(volatile char *)(fresh + i * PAGE) = 2; /* no fault any more */
	for (int i = 0; i < 100; i++)
		read_from(shared + i * PAGE, "read"); /* all the one page of zeroes */
	for (int i = 0; i < 100; i++)
		write_to(shared + i * PAGE, "cow");
	for (int i = 0; i < 20; i++)
		kernel_writes(fd, kernel + i * PAGE);
	cold_pages(fd);
	run_code(fd);
	huge_pages(huge, n_huge);
	for (int i = 0; i < n_regions; i++)
		printf("region %p %p\n", (void *)regions[i].start, (void *)regions[i].end);
	for (int i = 0; i < n; i++)
		printf("fault %p %s %llu %llu\n", (void *)touches[i].addr, touches[i].word, touches[i].begin,
			touches[i].end);
	target_done();
	return 0;
}
