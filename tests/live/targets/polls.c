// SPDX-License-Identifier: GPL-2.0-only
/* polls FLOOD_MS QUIET_MS DIR: for so long a thread polls as fast as it can, and then does not. All the while another
 * waits each 5 ms for a mutex that is held for 2 ms more; and a third opens one of two files in turn, reads from it,
 * and closes it. Lines: waiter TID; holder TID; quiet TS; wait BEGIN END and file INO, BEGIN END for each; over TS
 * (BOOTTIME). */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "target.h"

#define MOST 20000

struct span {
	unsigned long long begin, end, ino;
};

static struct span waits[MOST], reads[MOST];
static int n_waits, n_reads, waiter_tid;
static _Atomic int flooding = 1, going = 1, wants;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char names[2][4096];

static void *flood(void *arg)
{
	struct pollfd file = {.fd = 0};

	while (atomic_load(&flooding))
		poll(&file, 1, 0);
	return NULL;
}

static void *wait_for_it(void *arg)
{
	waiter_tid = gettid();
	while (atomic_load(&going)) {
		if (!atomic_load(&wants) || n_waits == MOST) {
			usleep(100);
			continue;
		}
		waits[n_waits].begin = boot_ns();
		pthread_mutex_lock(&mutex);
		waits[n_waits++].end = boot_ns();
		pthread_mutex_unlock(&mutex);
		atomic_store(&wants, 0);
	}
	return NULL;
}

static void hold(void)
{
	pthread_mutex_lock(&mutex);
	atomic_store(&wants, 1);
	usleep(2000);
	pthread_mutex_unlock(&mutex);
	while (atomic_load(&wants))
		usleep(100);
}

static void *read_files(void *arg)
{
	static char block[4096];

	while (atomic_load(&going)) {
		struct span *r = &reads[n_reads];
		struct stat st;
		int fd = open(names[n_reads % 2], O_RDONLY | O_CLOEXEC);

		MUST(fd >= 0 && !fstat(fd, &st));
		r->ino = st.st_ino;
		r->begin = boot_ns();
		MUST(pread(fd, block, sizeof(block), 0) == sizeof(block));
		r->end = boot_ns();
		close(fd);
		n_reads += n_reads < MOST - 1;
		usleep(5000);
	}
	return NULL;
}

static void make_files(const char *dir)
{
	static const char block[4096];

	for (int i = 0; i < 2; i++) {
		int fd;

		snprintf(names[i], sizeof(names[i]), "%s/file-%d", dir, i);
		fd = open(names[i], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		MUST(fd >= 0 && write(fd, block, sizeof(block)) == sizeof(block));
		close(fd);
	}
}

static void work_until(unsigned long long end)
{
	while (boot_ns() < end) {
		hold();
		usleep(3000);
	}
}

int main(int argc, char **argv)
{
	unsigned long long begun, quiet, end;
	pthread_t t[3];

	MUST(argc == 4);
	make_files(argv[3]);
	target_ready();
	begun = boot_ns();
	quiet = begun + atoll(argv[1]) * 1000000;
	end = quiet + atoll(argv[2]) * 1000000;
	MUST(!pthread_create(&t[0], NULL, flood, NULL) && !pthread_create(&t[1], NULL, wait_for_it, NULL) &&
		!pthread_create(&t[2], NULL, read_files, NULL));
	work_until(quiet);
	atomic_store(&flooding, 0);
	work_until(end);
	atomic_store(&going, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	end = boot_ns();
	printf("waiter %d\nholder %d\nquiet %llu\n", waiter_tid, getpid(), quiet);
	for (int i = 0; i < n_waits; i++)
		printf("wait %llu %llu\n", waits[i].begin, waits[i].end);
	for (int i = 0; i < n_reads; i++)
		printf("file %llu %llu %llu\n", reads[i].ino, reads[i].begin, reads[i].end);
	printf("over %llu\n", end);
	target_done();
	return 0;
}
