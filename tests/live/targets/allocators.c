// SPDX-License-Identifier: GPL-2.0-only
/* allocators: calls of known sizes from many short threads, around a fork whose child allocates as well, and under a
 * signal handler that does. Lines: thread COUNT (calls of malloc(333) in all); large SIZE; child COUNT (calls of
 * malloc(444) in the child, which is not the game); done. */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target.h"

#define THREADS 100
#define CALLS   50

static void *volatile keep;

static void *work(void *arg)
{
	for (int i = 0; i < CALLS; i++) {
		keep = malloc(333);
		free(keep);
	}
	return arg;
}

static void on_tick(int sig)
{
	(void)sig;
	getppid(); /* what a handler may do */
}

int main(void)
{
	struct itimerval often = {{0, 500}, {0, 500}}, never = {};
	pthread_t t;
	pid_t child;

	target_ready();
	signal(SIGALRM, on_tick);
	MUST(!setitimer(ITIMER_REAL, &often, NULL));
	for (int i = 0; i < THREADS; i++) {
		MUST(!pthread_create(&t, NULL, work, NULL));
		MUST(!pthread_join(t, NULL));
	}
	child = fork();
	if (!child) {
		for (int i = 0; i < CALLS; i++)
			free(malloc(444));
		_exit(0);
	}
	MUST(!setitimer(ITIMER_REAL, &never, NULL));
	while (waitpid(child, NULL, 0) != child)
		;
	keep = malloc(5ULL << 30); /* more than 32 bits hold */
	free(keep);
	keep = realloc(malloc(10), 7777);
	printf("thread %d\nlarge %llu\nchild %d\n", THREADS * CALLS, 5ULL << 30, CALLS);
	target_done();
	return 0;
}
