// SPDX-License-Identifier: GPL-2.0-only
/* blocked DIR: waits in the kernel in known ways, each ROUNDS times. Lines: wait NAME BEGIN END, whose stretch
 * (BOOTTIME) encloses one wait of the main thread in the kernel's function for NAME; said NAME BEGIN END, where the
 * system call itself says what it waits for. */
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "target.h"

#define ROUNDS  10
#define HOLD_US 5000

static int pipe_fds[2], fd;
static unsigned word;
static int *went_on; /* shared with the child */
static pid_t parent;

static struct {
	const char *key, *name;
	unsigned long long begin, end;
} rows[8 * ROUNDS];
static int n;
static long blocked; /* times, in the last stretch */

static long gave_up_cpu(void)
{
	struct rusage ru;

	MUST(!getrusage(RUSAGE_THREAD, &ru));
	return ru.ru_nvcsw;
}

static void begin(void)
{
	blocked = gave_up_cpu();
	rows[n].begin = boot_ns();
}

static void end(void)
{
	rows[n].end = boot_ns();
	blocked = gave_up_cpu() - blocked;
}

static void *fill_pipe(void *arg)
{
	usleep(HOLD_US);
	MUST(write(pipe_fds[1], "x", 1) == 1);
	return NULL;
}

static void on_pipe(void)
{
	pthread_t t;
	char byte;

	MUST(!pthread_create(&t, NULL, fill_pipe, NULL));
	begin();
	MUST(read(pipe_fds[0], &byte, 1) == 1);
	end();
	pthread_join(t, NULL);
}

static void *unlock_file(void *arg)
{
	usleep(HOLD_US);
	MUST(!flock(fd, LOCK_UN));
	return NULL;
}

static void on_file_lock(void)
{
	char path[64];
	pthread_t t;
	int other;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	other = open(path, O_RDONLY | O_CLOEXEC);
	MUST(other >= 0 && !flock(fd, LOCK_EX));
	MUST(!pthread_create(&t, NULL, unlock_file, NULL));
	begin();
	MUST(!flock(other, LOCK_EX));
	end();
	pthread_join(t, NULL);
	close(other);
}

static void on_child(void)
{
	pid_t child = fork();

	if (!child) {
		usleep(HOLD_US);
		_exit(0);
	}
	begin();
	MUST(waitpid(child, NULL, 0) == child);
	end();
}

/* the main thread only: the signal stops the process, whose own threads are it */
static void on_stop(void)
{
	pid_t child;

	*went_on = 0;
	begin();
	child = fork();
	if (!child) {
		kill(parent, SIGSTOP);
		usleep(HOLD_US);
		kill(parent, SIGCONT);
		__atomic_store_n(went_on, 1, __ATOMIC_RELEASE);
		_exit(0);
	}
	while (!__atomic_load_n(went_on, __ATOMIC_ACQUIRE))
		;
	end();
	MUST(waitpid(child, NULL, 0) == child);
}

static void on_timer(void)
{
	begin();
	usleep(HOLD_US);
	end();
}

static void on_futex(void)
{
	struct timespec t = {.tv_nsec = HOLD_US * 1000};

	begin();
	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);
	end();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *key, *name;
		void (*wait)(void);
	} ways[] = {{"wait", "pipe", on_pipe}, {"wait", "file_lock", on_file_lock}, {"wait", "child", on_child},
		{"wait", "stop", on_stop}, {"said", "timer", on_timer}, {"said", "futex", on_futex}};
	char path[4096];

	MUST(argc == 2);
	parent = getpid();
	snprintf(path, sizeof(path), "%s/locked", argv[1]);
	fd = open(path, O_RDWR | O_CREAT, 0644);
	MUST(fd >= 0 && !pipe(pipe_fds));
	went_on = mmap(NULL, sizeof(*went_on), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(went_on != MAP_FAILED);
	target_ready();
	for (unsigned w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
		for (int i = 0; i < ROUNDS; i++, n++) {
			rows[n].key = ways[w].key;
			rows[n].name = ways[w].name;
			do /* on a busy machine what it waits for may be over before it waits */
				ways[w].wait();
			while (!blocked);
		}
	}
	for (int i = 0; i < n; i++)
		printf("%s %s %llu %llu\n", rows[i].key, rows[i].name, rows[i].begin, rows[i].end);
	target_done();
	return 0;
}
