// SPDX-License-Identifier: GPL-2.0-only
/*
 * Probes off while records still come. For a uprobe the kernel takes the lock on the mappings of each process that maps
 * the file, and waits until no CPU is in the program any more: on a machine with more threads than CPUs that takes
 * seconds, in which the ring would run over.
 */
#include <pthread.h>
#include <unistd.h>

#include "capture.h"
#include "session.h"

#define PASS_US 1000

struct detaching {
	struct capture *capture;
	int what;
	bool done;
};

static void *detach(void *arg)
{
	struct detaching *d = arg;

	if (d->what == DETACH_ALL)
		capture__detach(d->capture);
	else
		capture__detach_sites(d->capture, (u8)d->what);
	__atomic_store_n(&d->done, true, __ATOMIC_RELEASE);
	return NULL;
}

void session__detach(struct session *s, int what)
{
	struct detaching d = {.capture = s->capture, .what = what};
	pthread_t thread;

	if (!s->drain.ring || pthread_create(&thread, NULL, detach, &d)) {
		detach(&d);
		return;
	}
	while (!__atomic_load_n(&d.done, __ATOMIC_ACQUIRE)) {
		session__pass(s); /* its error stays in s->out */
		usleep(PASS_US);
	}
	pthread_join(thread, NULL);
}
