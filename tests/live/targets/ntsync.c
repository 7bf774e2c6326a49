// SPDX-License-Identifier: GPL-2.0-only
/* ntsync: frames, and within some of them a wait for a Windows object that the thread Signaller makes ready once it has
 * computed for a while. Lines: device FD; main TID; signaller TID;
 * wait KIND COMMAND RESULT FRAME BEGIN END (ns). */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include "redframe.h"
#include "target.h"

/* as the kernel's documentation has them (Documentation/userspace-api/ntsync.rst), for the headers may be older */
struct sem {
	uint32_t count, max;
};
struct mutex {
	uint32_t owner, count;
};
struct event {
	uint32_t manual, signaled;
};
struct wait {
	uint64_t timeout, objs; /* CLOCK_MONOTONIC; an array of descriptors */
	uint32_t count, index, flags, owner, alert, pad;
};
#define CREATE_SEM   _IOW('N', 0x80, struct sem)
#define RELEASE_SEM  _IOWR('N', 0x81, uint32_t)
#define WAIT_ANY     _IOWR('N', 0x82, struct wait)
#define WAIT_ALL     _IOWR('N', 0x83, struct wait)
#define CREATE_MUTEX _IOW('N', 0x84, struct mutex)
#define UNLOCK_MUTEX _IOWR('N', 0x85, struct mutex)
#define CREATE_EVENT _IOW('N', 0x87, struct event)
#define SET_EVENT    _IOR('N', 0x88, uint32_t)

#define EASY_FRAMES 6 /* between two waits, and before the first */
#define KINDS       6
#define TIMES       2
#define WORK_NS     100000000ULL

enum object { SEM, MUTEX, EVENT, OBJECTS };
static const char *const kinds[KINDS] = {"semaphore", "mutex", "event", "any", "all", "timeout"};

static struct {
	unsigned long command;
	int frame, result;
	unsigned long long begin, end;
} rows[KINDS * TIMES];
static int device, objects[OBJECTS], jobs[2], frame, main_tid, signaller_tid;
static pthread_barrier_t taken;

static void make_objects(void)
{
	struct sem sem = {.max = 10};
	struct mutex mutex = {};
	struct event event = {};

	objects[SEM] = ioctl(device, CREATE_SEM, &sem);
	objects[MUTEX] = ioctl(device, CREATE_MUTEX, &mutex);
	objects[EVENT] = ioctl(device, CREATE_EVENT, &event);
	MUST(objects[SEM] >= 0 && objects[MUTEX] >= 0 && objects[EVENT] >= 0);
}

static int wait_for(unsigned long command, int *objs, uint32_t n, uint64_t timeout)
{
	struct wait w = {.timeout = timeout, .objs = (uintptr_t)objs, .count = n, .owner = (uint32_t)gettid()};

	return ioctl(device, command, &w) ? errno : 0;
}

static void compute(void)
{
	unsigned long long until = boot_ns() + WORK_NS;

	while (boot_ns() < until)
		for (volatile int i = 0; i < 100000; i++)
			;
}

static void make_ready(int kind)
{
	struct mutex held = {.owner = (uint32_t)signaller_tid};
	uint32_t value = 1;

	if (kind == 0 || kind == 4)
		MUST(!ioctl(objects[SEM], RELEASE_SEM, &value));
	if (kind == 1 || kind == 4)
		MUST(!ioctl(objects[MUTEX], UNLOCK_MUTEX, &held));
	if (kind == 2 || kind == 3)
		MUST(!ioctl(objects[EVENT], SET_EVENT, &value));
}

static bool holds_mutex(int kind)
{
	return kind == 1 || kind == 3 || kind == 4;
}

static void *signal_all(void *arg)
{
	unsigned char kind;

	prctl(PR_SET_NAME, "Signaller");
	signaller_tid = gettid();
	pthread_barrier_wait(&taken);
	while (read(jobs[0], &kind, 1) == 1) {
		if (holds_mutex(kind))
			MUST(!wait_for(WAIT_ANY, &objects[MUTEX], 1, UINT64_MAX));
		pthread_barrier_wait(&taken);
		await_blocked(main_tid, SYS_ioctl);
		compute();
		make_ready(kind);
		if (kind == 3) {
			struct mutex held = {.owner = (uint32_t)signaller_tid};

			MUST(!ioctl(objects[MUTEX], UNLOCK_MUTEX, &held));
		}
	}
	return arg;
}

static void end_frame(void)
{
	usleep(5000);
	REDFRAME_FRAME(frame);
	frame++;
}

static unsigned long long monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static int wait_once(int kind)
{
	switch (kind) {
	case 3: /* the mutex and the event, of which the event comes first */
		return wait_for(WAIT_ANY, &objects[MUTEX], 2, UINT64_MAX);
	case 4:
		return wait_for(WAIT_ALL, &objects[SEM], 2, UINT64_MAX);
	case 5:
		return wait_for(WAIT_ANY, &objects[SEM], 1, monotonic_ns() + WORK_NS);
	default:
		return wait_for(WAIT_ANY, &objects[kind], 1, UINT64_MAX);
	}
}

static void let_go(int kind)
{
	struct mutex own = {.owner = (uint32_t)main_tid};

	if (kind == 1 || kind == 4)
		MUST(!ioctl(objects[MUTEX], UNLOCK_MUTEX, &own));
}

static void frame_with_wait(int i)
{
	unsigned char kind = (unsigned char)(i % KINDS);

	if (strcmp(kinds[kind], "timeout")) {
		MUST(write(jobs[1], &kind, 1) == 1);
		pthread_barrier_wait(&taken);
	}
	rows[i].command = kind == 4 ? WAIT_ALL : WAIT_ANY;
	rows[i].frame = frame;
	rows[i].begin = boot_ns();
	rows[i].result = wait_once(kind);
	rows[i].end = boot_ns();
	let_go(kind);
	end_frame();
}

static void work(void)
{
	for (int i = 0; i < KINDS * TIMES; i++) {
		for (int j = 0; j < EASY_FRAMES; j++)
			end_frame();
		frame_with_wait(i);
	}
	end_frame();
}

int main(void)
{
	pthread_t signaller;

	device = open("/dev/ntsync", O_RDWR | O_CLOEXEC);
	MUST(device >= 0);
	make_objects();
	main_tid = gettid();
	MUST(!pipe(jobs) && !pthread_barrier_init(&taken, NULL, 2));
	MUST(!pthread_create(&signaller, NULL, signal_all, NULL));
	pthread_barrier_wait(&taken);
	printf("device %d\nmain %d\nsignaller %d\n", device, main_tid, signaller_tid);
	target_ready();
	work();
	for (int i = 0; i < KINDS * TIMES; i++)
		printf("wait %s %lu %d %d %llu %llu\n", kinds[i % KINDS], rows[i].command, rows[i].result,
			rows[i].frame, rows[i].begin, rows[i].end);
	target_done();
	return 0;
}
