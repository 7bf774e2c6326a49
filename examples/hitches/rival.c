/* SPDX-License-Identifier: GPL-2.0-only
 *
 * "compiler", another process that takes the frame thread's CPU. One thread under SCHED_FIFO where that is allowed;
 * else a crowd of ordinary ones, as nice as it may be, that leaves the frame thread a small share.
 */
#include "game.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define CROWD 8

static struct shared {
	sem_t go[CROWD];
	sem_t born;
	_Atomic int64_t until;
	atomic_int running;
	atomic_bool fifo;
	atomic_int nice;
} * shared;

static pid_t pids[CROWD];
static int n_pids;
static char how[32];

NOINLINE static void CompileShaders(int64_t until)
{
	CRUNCH_WHILE(now_ns() < until);
}

static void run_rival(int i, pid_t parent)
{
	struct sched_param p = {.sched_priority = 10};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	name_thread("compiler");
	signal(SIGINT, SIG_IGN); /* Ctrl-C goes to the whole group: the game ends us */
	if (getppid() != parent)
		_exit(0);
	if (!sched_setscheduler(0, SCHED_FIFO, &p))
		atomic_store(&shared->fifo, true);
	else
		setpriority(PRIO_PROCESS, 0, -20);
	errno = 0;
	atomic_store(&shared->nice, getpriority(PRIO_PROCESS, 0));
	sem_post(&shared->born);
	for (;;) {
		if (sem_wait(&shared->go[i]))
			continue;
		CompileShaders(atomic_load(&shared->until));
		atomic_fetch_sub(&shared->running, 1);
	}
}

static int add_rival(void)
{
	pid_t parent = getpid(), child = fork();

	if (child < 0)
		return -errno;
	if (!child)
		run_rival(n_pids, parent);
	pids[n_pids++] = child;
	while (sem_wait(&shared->born) && errno == EINTR)
		;
	return 0;
}

int rival__start(void)
{
	int i, err;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		shared = NULL;
		return -errno;
	}
	sem_init(&shared->born, 1, 0);
	for (i = 0; i < CROWD; i++)
		sem_init(&shared->go[i], 1, 0);
	err = add_rival();
	while (!err && !atomic_load(&shared->fifo) && n_pids < CROWD)
		err = add_rival();
	if (atomic_load(&shared->fifo))
		snprintf(how, sizeof(how), "SCHED_FIFO");
	else
		snprintf(how, sizeof(how), "%d processes at nice %d", CROWD, atomic_load(&shared->nice));
	return err;
}

void rival__stop(void)
{
	int i;

	for (i = 0; i < n_pids; i++)
		kill(pids[i], SIGKILL);
	for (i = 0; i < n_pids; i++)
		waitpid(pids[i], NULL, 0);
	n_pids = 0;
	if (shared)
		munmap(shared, sizeof(*shared));
	shared = NULL;
}

void rival__strike(int cpu, int64_t length_ns)
{
	cpu_set_t one;
	int i;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	for (i = 0; i < n_pids; i++)
		sched_setaffinity(pids[i], sizeof(one), &one);
	/* a crowd takes 8 of 9 parts of the time */
	if (n_pids > 1)
		length_ns += length_ns / CROWD;
	atomic_store(&shared->running, n_pids);
	atomic_store(&shared->until, now_ns() + length_ns);
	for (i = 0; i < n_pids; i++)
		sem_post(&shared->go[i]);
}

bool rival__busy(void)
{
	return atomic_load(&shared->running) > 0;
}

const char *rival__how(void)
{
	return how;
}

pid_t rival__pid(void)
{
	return n_pids ? pids[0] : 0;
}
