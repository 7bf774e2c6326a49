// SPDX-License-Identifier: GPL-2.0-only
#include <pthread.h>
#include <unistd.h>

#include "aside.h"

#define PAUSE_US 1000

struct aside {
	void (*work)(void *arg);
	void *arg;
	bool done;
};

static void *work(void *arg)
{
	struct aside *a = arg;

	a->work(a->arg);
	__atomic_store_n(&a->done, true, __ATOMIC_RELEASE);
	return NULL;
}

void aside__run(void (*fn)(void *arg), void (*meanwhile)(void *arg), void *arg)
{
	struct aside a = {.work = fn, .arg = arg};
	pthread_t thread;

	if (pthread_create(&thread, NULL, work, &a)) {
		fn(arg);
		return;
	}
	while (!__atomic_load_n(&a.done, __ATOMIC_ACQUIRE)) {
		meanwhile(arg);
		usleep(PAUSE_US);
	}
	pthread_join(thread, NULL);
}
