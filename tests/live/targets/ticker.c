// SPDX-License-Identifier: GPL-2.0-only
/* ticker [crash]: a frame every 5 ms from the start on, without end; after its byte it ends, or crashes. Lines:
 * semaphore ADDRESS, thread TID (of a second one). */
#include <poll.h>
#include <pthread.h>
#include "redframe.h"
#include "target.h"

static volatile int tid;

static void *sleep_on(void *arg)
{
	tid = gettid();
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	struct pollfd in = {.fd = 0, .events = POLLIN};
	pthread_t t;

	(void)argv;
	MUST(!pthread_create(&t, NULL, sleep_on, NULL));
	while (!tid)
		usleep(1000);
	printf("semaphore %lu\nthread %d\nready\n", (unsigned long)&redframe_frame_semaphore, tid);
	fflush(stdout);
	for (unsigned long i = 0; poll(&in, 1, 5) == 0; i++)
		REDFRAME_FRAME(i);
	if (argc > 1)
		*(volatile int *)8 = 1;
	return 7;
}
