// SPDX-License-Identifier: GPL-2.0-only
/* sched: threads that wake each other, begin, are renamed, move between CPUs and end. Lines: main TID; partner TID;
 * wakes COUNT (of the partner, by main, each out of its sleep); thread TID NAME (begun by main, renamed by itself,
 * ended); mover TID; move FROM TO; child PID NAME (forked by main, ran another program). */
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include "target.h"

#define WAKES   50
#define THREADS 20
#define MOVES   40

static int partner_tid, mover_tid;
static int request[2];
static volatile int served; /* a thread that is being woken still looks blocked: this says that it was */
static int tids[THREADS];
static int cpus[2];

static void *partner(void *arg)
{
	char byte;

	partner_tid = gettid();
	while (read(request[0], &byte, 1) == 1 && byte)
		served++;
	return arg;
}

static void *short_thread(void *arg)
{
	long i = (long)arg;
	char name[16];

	tids[i] = gettid();
	snprintf(name, sizeof(name), "Worker%02ld \033[m", i);
	pthread_setname_np(pthread_self(), name);
	return NULL;
}

static void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	MUST(!sched_setaffinity(0, sizeof(set), &set));
}

static void *mover(void *arg)
{
	mover_tid = gettid();
	stay_on(cpus[0]);
	for (int i = 0; i < MOVES; i++)
		stay_on(cpus[(i + 1) & 1]);
	return arg;
}

static void run_thread(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	MUST(!pthread_create(&t, NULL, fn, arg));
	pthread_join(t, NULL);
}

static void two_cpus(void)
{
	cpu_set_t set;
	int n = 0;

	MUST(!sched_getaffinity(0, sizeof(set), &set));
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &set))
			cpus[n++] = i;
	if (n < 2)
		cpus[1] = cpus[0];
}

static int run_program(void)
{
	int pid = fork();

	if (!pid) {
		execl("/bin/sleep", "sleep", "0", NULL);
		_exit(127);
	}
	MUST(pid > 0 && waitpid(pid, NULL, 0) == pid);
	return pid;
}

int main(void)
{
	pthread_t t;
	int child;

	two_cpus();
	MUST(!pipe(request));
	MUST(!pthread_create(&t, NULL, partner, NULL));
	while (!*(volatile int *)&partner_tid)
		usleep(1000);
	target_ready();
	for (int i = 0; i < WAKES; i++) {
		while (served < i)
			usleep(20);
		await_blocked(partner_tid, SYS_read);
		MUST(write(request[1], "x", 1) == 1);
	}
	for (long i = 0; i < THREADS; i++)
		run_thread(short_thread, (void *)i);
	run_thread(mover, NULL);
	child = run_program();
	while (served < WAKES)
		usleep(20);
	await_blocked(partner_tid, SYS_read);
	MUST(write(request[1], "", 1) == 1);
	pthread_join(t, NULL);
	printf("main %d\npartner %d\nwakes %d\nmover %d\n", getpid(), partner_tid, WAKES + 1, mover_tid);
	for (int i = 0; i < THREADS; i++)
		printf("thread %d %d\n", tids[i], i);
	if (cpus[0] != cpus[1])
		for (int i = 0; i < MOVES; i++)
			printf("move %d %d\n", cpus[i & 1], cpus[(i + 1) & 1]);
	printf("child %d\n", child);
	target_done();
	return 0;
}
