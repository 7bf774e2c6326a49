/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What every target does: it says "ready", waits for a byte, works, tells the truth in lines, says "done", and ends
 * with its stdin.
 */
#ifndef REDFRAME_TARGET_H
#define REDFRAME_TARGET_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))

/* what a target cannot do its work without */
#define MUST(x)                                                                                                        \
	do {                                                                                                           \
		if (!(x)) {                                                                                            \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #x, strerror(errno));                   \
			exit(70);                                                                                      \
		}                                                                                                      \
	} while (0)

static inline unsigned long long boot_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Of this thread. A wait that is over before its thread has left the CPU, since the hypervisor had that, is none. */
static inline long sleeps_so_far(void)
{
	struct rusage use;

	getrusage(RUSAGE_THREAD, &use);
	return use.ru_nvcsw;
}

/* No stdio and no heap between these two: the work is all that happens. */
UNUSED static void target_ready(void)
{
	char byte;

	boot_ns(); /* touches the vdso's pages */
	printf("ready\n");
	fflush(stdout);
	if (read(0, &byte, 1) != 1)
		_exit(71);
}

UNUSED static void target_done(void)
{
	char byte;

	printf("done\n");
	fflush(stdout);
	while (read(0, &byte, 1) == 1)
		;
}

/* Until thread tid of this process sleeps in system call nr. */
UNUSED static void await_blocked(int tid, long nr)
{
	char path[64], text[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	for (;;) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		MUST(fd >= 0);
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
		text[n > 0 ? n : 0] = 0;
		if (strtol(text, NULL, 10) == nr && text[0] >= '0' && text[0] <= '9')
			return;
		usleep(20);
	}
}

#endif
