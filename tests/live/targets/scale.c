// SPDX-License-Identifier: GPL-2.0-only
/* scale threads|files|mappings N: a game that has many of these before it is recorded, and then uses each. scale fps N
 * MS: N frames a second, for so long. Lines: threads N READS_EACH; tid TID; files N; mappings N FAULTS; frames N. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "redframe.h"
#include "target.h"

#define READS  3
#define FAULTS 1000

static pthread_barrier_t begin, end;
static int *tids;
static char dir[] = "/var/tmp/redframe-scale-XXXXXX";

static int open_file(int i)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%d", dir, i);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	MUST(fd >= 0 && write(fd, "12345678", 8) == 8);
	unlink(path);
	return fd;
}

static void *thread(void *arg)
{
	char buf[8];
	int *tid = arg, fd = *tid;

	*tid = (int)syscall(SYS_gettid);
	pthread_barrier_wait(&begin);
	for (int i = 0; i < READS; i++)
		MUST(pread(fd, buf, 8, 0) == 8);
	pthread_barrier_wait(&end);
	return NULL;
}

static void threads(int n)
{
	int fd = open_file(0);

	tids = calloc(n, sizeof(*tids));
	pthread_barrier_init(&begin, NULL, n + 1);
	pthread_barrier_init(&end, NULL, n + 1);
	for (int i = 0; i < n; i++) {
		pthread_t t;

		tids[i] = fd;
		MUST(!pthread_create(&t, NULL, thread, &tids[i]));
	}
	target_ready();
	REDFRAME_FRAME(0);
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&end);
	REDFRAME_FRAME(1);
	printf("threads %d %d\n", n, READS);
	for (int i = 0; i < n; i++)
		printf("tid %d\n", tids[i]);
}

static void files(int n)
{
	struct rlimit limit = {n + 100, n + 100};
	int *fds = calloc(n, sizeof(*fds));
	char buf[8];

	MUST(!setrlimit(RLIMIT_NOFILE, &limit));
	for (int i = 0; i < n; i++)
		fds[i] = open_file(i);
	target_ready();
	REDFRAME_FRAME(0);
	for (int i = 0; i < n; i++)
		MUST(pread(fds[i], buf, 8, 0) == 8);
	REDFRAME_FRAME(1);
	printf("files %d\n", n);
}

/* neighbours differ in what may be done with them, so that the kernel keeps them apart */
static void mappings(int n)
{
	char *at = mmap(NULL, n * 4096L, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(at != MAP_FAILED);
	for (long i = 0; i < n; i += 2)
		if (mprotect(at + i * 4096, 4096, PROT_READ | PROT_WRITE)) {
			printf("refused %s\n", strerror(errno));
			return;
		}
	target_ready();
	REDFRAME_FRAME(0);
	for (long i = 0; i < FAULTS; i++)
		at[i * (n / FAULTS) / 2 * 2 * 4096] = 1;
	REDFRAME_FRAME(1);
	printf("mappings %d %d\narea %llu %llu\n", n, FAULTS, (unsigned long long)at,
		(unsigned long long)at + n * 4096ull);
}

static void fps(unsigned long long n, unsigned long long ms)
{
	unsigned long long next, stop, count = 0;

	target_ready();
	next = boot_ns();
	for (stop = next + ms * 1000000; next < stop; next += 1000000000 / n) {
		while (boot_ns() < next)
			if (n < 1000)
				usleep(1000);
		REDFRAME_FRAME(count);
		count++;
	}
	printf("frames %llu\n", count);
}

int main(int argc, char **argv)
{
	MUST(argc > 2 && mkdtemp(dir));
	if (!strcmp(argv[1], "threads"))
		threads(atoi(argv[2]));
	else if (!strcmp(argv[1], "files"))
		files(atoi(argv[2]));
	else if (!strcmp(argv[1], "mappings"))
		mappings(atoi(argv[2]));
	else
		fps(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
	rmdir(dir);
	target_done();
	return 0;
}
