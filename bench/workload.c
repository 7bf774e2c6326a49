/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The yardstick of what tracing adds: one kind of event after the other, as fast as it goes, ns for each. Run it bare
 * and traced in turn on the same machine, and compare: the absolute figures mean nothing elsewhere.
 *
 *   switch  one thread wakes another on the same CPU and sleeps: a context switch with its wakeup
 *   fault   the first write to a fresh page
 *   malloc  malloc, one write, free
 *   lock    a wait on a glibc mutex that slept in the kernel, with the wake that ended it
 *   pread   4 KiB from a warm file
 *   call    madvise on one page: a call that changes the address space
 *   poll    of a file, without waiting: a call that returns at once
 *   sleep   60 µs each: a call of another kind, long enough for a record
 *   softirq a datagram to itself: an interrupt's deferred work, within the call that sends it
 *   wait    sleeps of 6 ms on top of 16 KiB of stack, of five threads: each worth its stack, and within all budgets
 *   threads 20 threads that sleep 1 ms again and again
 *
 * A line for each phase: its name, ns/op as in the lower quartile of 40 slices, operations.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FAULT_BYTES ((size_t)16 << 20) /* written and given back in turn: the host has backed it long ago */
#define FILE_BYTES  ((size_t)1 << 20)
#define BLOCK       4096
#define SLICES      40

struct result {
	double ns; /* of all operations */
	long ops;
};

/* CPU time of all threads: what a tracer adds is spent on their CPU, and the neighbours of a shared machine are not in
 * it. */
static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "workload: %s: %s\n", what, strerror(errno));
	exit(1);
}

static pthread_t start_thread(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	errno = pthread_create(&t, NULL, fn, arg);
	if (errno)
		die("pthread_create");
	return t;
}

/* The whole program on one CPU: every hand-over is a switch, and no interrupt between CPUs adds its noise. Who is woken
 * does not preempt the one that still runs, so each switch has its wakeup. */
static void stay_on_one_cpu(void)
{
	const struct sched_param normal = {};
	cpu_set_t one;
	int cpu = sched_getcpu();

	CPU_ZERO(&one);
	CPU_SET(cpu < 0 ? 0 : cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		die("sched_setaffinity");
	if (sched_setscheduler(0, SCHED_BATCH, &normal))
		die("sched_setscheduler");
}

/* ---- switch ---- */

struct rally {
	sem_t mine, theirs;
	long turns;
};

static void *hit_back(void *arg)
{
	struct rally *r = arg;
	long i;

	for (i = 0; i < r->turns; i++) {
		sem_wait(&r->theirs);
		sem_post(&r->mine);
	}
	return NULL;
}

static void run_switch(struct result *res)
{
	struct rally r = {.turns = res->ops / 2};
	pthread_t other;
	long i;

	sem_init(&r.mine, 0, 0);
	sem_init(&r.theirs, 0, 0);
	other = start_thread(hit_back, &r);
	res->ns = now_ns();
	for (i = 0; i < r.turns; i++) {
		sem_post(&r.theirs);
		sem_wait(&r.mine);
	}
	res->ns = now_ns() - res->ns;
	res->ops = 2 * r.turns;
	pthread_join(other, NULL);
}

/* ---- fault ---- */

static void run_fault(struct result *res)
{
	char *fresh = mmap(NULL, FAULT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long page = sysconf(_SC_PAGESIZE), done = 0;
	double start;
	size_t at;

	if (fresh == MAP_FAILED || madvise(fresh, FAULT_BYTES, MADV_NOHUGEPAGE))
		die("mmap");
	memset(fresh, 1, FAULT_BYTES);
	while (done < res->ops) {
		madvise(fresh, FAULT_BYTES, MADV_DONTNEED);
		start = now_ns();
		for (at = 0; at < FAULT_BYTES && done < res->ops; at += (size_t)page, done++)
			*(volatile char *)(fresh + at) = 1;
		res->ns += now_ns() - start;
	}
	munmap(fresh, FAULT_BYTES);
}

/* ---- malloc ---- */

static void run_malloc(struct result *res)
{
	void *volatile block;
	long i;

	res->ns = now_ns();
	for (i = 0; i < res->ops; i++) {
		block = malloc((size_t)(32 + i % 16 * 24));
		if (!block)
			die("malloc");
		*(volatile char *)block = 1;
		free(block);
	}
	res->ns = now_ns() - res->ns;
}

/* ---- lock ---- */

/* Two threads walk around three locks, hand over hand, one lock apart: each step waits for the lock that the other one
 * holds, and then lets go of the lock that the other one waits for. On one CPU a step is one wait and one wake, and no
 * call beside them. */
#define LOCKS 3

struct ring {
	pthread_mutex_t locks[LOCKS];
	sem_t began;
	long steps;
	atomic_long slept;
};

static void walk(struct ring *r, int at)
{
	struct rusage before, after;
	long i;

	getrusage(RUSAGE_THREAD, &before);
	for (i = 0; i < r->steps; i++) {
		int next = (at + 1) % LOCKS;

		pthread_mutex_lock(&r->locks[next]);
		pthread_mutex_unlock(&r->locks[at]);
		at = next;
	}
	pthread_mutex_unlock(&r->locks[at]);
	getrusage(RUSAGE_THREAD, &after);
	r->slept += after.ru_nvcsw - before.ru_nvcsw;
}

static void *walk_behind(void *arg)
{
	struct ring *r = arg;

	pthread_mutex_lock(&r->locks[0]);
	sem_post(&r->began);
	walk(r, 0);
	return NULL;
}

static void run_lock(struct result *res)
{
	struct ring r = {.steps = res->ops / 2};
	pthread_t other;
	int i;

	for (i = 0; i < LOCKS; i++)
		pthread_mutex_init(&r.locks[i], NULL);
	sem_init(&r.began, 0, 0);
	pthread_mutex_lock(&r.locks[1]);
	other = start_thread(walk_behind, &r);
	sem_wait(&r.began);
	res->ns = now_ns();
	walk(&r, 1);
	pthread_join(other, NULL);
	res->ns = now_ns() - res->ns;
	res->ops = r.slept ? r.slept : 1;
}

/* ---- pread ---- */

static int make_file(void)
{
	const char *dir = getenv("TMPDIR");
	char path[512], block[BLOCK];
	size_t done;
	int fd;

	snprintf(path, sizeof(path), "%s/workload-XXXXXX", dir && *dir ? dir : "/var/tmp");
	fd = mkstemp(path);
	if (fd < 0)
		die(path);
	unlink(path);
	memset(block, 7, sizeof(block));
	for (done = 0; done < FILE_BYTES; done += sizeof(block))
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
			die("write");
	return fd;
}

static void run_pread(struct result *res)
{
	char block[BLOCK];
	int fd = make_file();
	long i;

	res->ns = now_ns();
	for (i = 0; i < res->ops; i++)
		if (pread(fd, block, sizeof(block), i * BLOCK % (long)FILE_BYTES) != (ssize_t)sizeof(block))
			die("pread");
	res->ns = now_ns() - res->ns;
	close(fd);
}

/* ---- call ---- */

static void run_call(struct result *res)
{
	char *page = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long i;

	if (page == MAP_FAILED)
		die("mmap");
	res->ns = now_ns();
	for (i = 0; i < res->ops; i++)
		if (madvise(page, BLOCK, MADV_DONTNEED))
			die("madvise");
	res->ns = now_ns() - res->ns;
	munmap(page, BLOCK);
}

/* ---- poll ---- */

static void run_poll(struct result *res)
{
	struct pollfd file = {.fd = make_file(), .events = POLLIN};
	long i;

	res->ns = now_ns();
	for (i = 0; i < res->ops; i++)
		if (poll(&file, 1, 0) != 1)
			die("poll");
	res->ns = now_ns() - res->ns;
	close(file.fd);
}

/* ---- sleep ---- */

static void run_sleep(struct result *res)
{
	const struct timespec t = {.tv_nsec = 60000};
	long i;

	prctl(PR_SET_TIMERSLACK, 1);
	res->ns = now_ns();
	for (i = 0; i < res->ops; i++)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
	res->ns = now_ns() - res->ns;
}

/* ---- softirq ---- */

static void run_softirq(struct result *res)
{
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(own);
	char byte = 1;
	long i;

	if (fd < 0 || bind(fd, (struct sockaddr *)&own, len) || getsockname(fd, (struct sockaddr *)&own, &len) ||
		connect(fd, (struct sockaddr *)&own, len))
		die("a socket to itself");
	res->ns = now_ns();
	for (i = 0; i < res->ops; i++)
		if (send(fd, &byte, 1, 0) != 1 || recv(fd, &byte, 1, 0) != 1)
			die("a datagram to itself");
	res->ns = now_ns() - res->ns;
	close(fd);
}

/* ---- wait ---- */

#define WAITERS    5
#define WAIT_NS    6000000
#define STACK_USED (16 << 10)

static void *wait_deep(void *arg)
{
	const struct timespec t = {.tv_nsec = WAIT_NS};
	volatile char stack[STACK_USED];
	struct result *res = arg;
	long i;

	for (i = 0; i < STACK_USED; i += 64)
		stack[i] = 1;
	for (i = 0; i < res->ops / WAITERS; i++)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
	return (void *)(intptr_t)(stack[0] - 1); /* it was in use until now */
}

static void run_wait(struct result *res)
{
	pthread_t t[WAITERS];
	int i;

	res->ns = now_ns();
	for (i = 0; i < WAITERS; i++)
		t[i] = start_thread(wait_deep, res);
	for (i = 0; i < WAITERS; i++)
		pthread_join(t[i], NULL);
	res->ns = now_ns() - res->ns;
}

/* ---- threads: not an event, but something of a game's size to attach to ---- */

#define THREADS 20

static void *doze(void *arg)
{
	struct result *res = arg;
	long i;

	for (i = 0; i < res->ops / THREADS; i++)
		usleep(1000);
	return NULL;
}

static void run_threads(struct result *res)
{
	pthread_t t[THREADS];
	int i;

	res->ns = now_ns();
	for (i = 0; i < THREADS; i++)
		t[i] = start_thread(doze, res);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	res->ns = now_ns() - res->ns;
}

/* ---- the phases ---- */

static const struct phase {
	const char *name;
	void (*run)(struct result *res);
	long ops; /* at scale 1: some tenths of a second */
} phases[] = {
	{"switch", run_switch, 200000},
	{"fault", run_fault, 400000},
	{"malloc", run_malloc, 2000000},
	{"lock", run_lock, 100000},
	{"pread", run_pread, 400000},
	{"call", run_call, 400000},
	{"poll", run_poll, 1000000},
	{"sleep", run_sleep, 4000},
	{"softirq", run_softirq, 200000},
	{"wait", run_wait, 3000},
	{"threads", run_threads, 40000},
};
#define PHASES (sizeof(phases) / sizeof(phases[0]))

static const char help[] =
	"workload [--scale X] [--ready] [PHASE…]\n"
	"  PHASE…     switch fault malloc lock pread call sleep softirq wait threads (default: all)\n"
	"  --scale X  times the usual number of operations\n"
	"  --ready    before each phase print \"ready PHASE\" and wait for a byte on standard input or\n"
	"             SIGUSR1, so that a tracer can attach first\n";

/* Waits for a byte or SIGUSR1; where standard input has ended only the signal is left. */
static void wait_for_go(const char *name, int signals)
{
	struct signalfd_siginfo info;
	struct pollfd fds[2] = {{.fd = signals, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
	char byte;

	printf("ready %s\n", name);
	fflush(stdout);
	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			die("poll");
		if (fds[0].revents && read(signals, &info, sizeof(info)) > 0)
			return;
		if (!fds[1].revents)
			continue;
		if (read(STDIN_FILENO, &byte, 1) > 0)
			return;
		fds[1].fd = -1;
	}
}

static int block_usr1(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd < 0)
		die("signalfd");
	return fd;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The lower quartile of the slices: what neighbours do to the caches of a shared machine comes and goes, and makes the
 * others slower. */
static void run_phase(const struct phase *p, double scale)
{
	double each[SLICES];
	long ops = 0;
	int i;

	for (i = 0; i < SLICES; i++) {
		struct result res = {.ops = (long)((double)p->ops * scale / SLICES)};

		if (res.ops < 2)
			res.ops = 2;
		p->run(&res);
		each[i] = res.ns / (double)res.ops;
		ops += res.ops;
	}
	qsort(each, SLICES, sizeof(each[0]), by_value);
	printf("%s %.1f %ld\n", p->name, each[SLICES / 4], ops);
	fflush(stdout);
}

static const struct phase *find_phase(const char *name)
{
	size_t i;

	for (i = 0; i < PHASES; i++)
		if (!strcmp(phases[i].name, name))
			return &phases[i];
	return NULL;
}

/* Returns the index of the first phase's name, 0 for help, or -1. */
static int parse(int argc, char **argv, double *scale, bool *ready)
{
	char *end;
	int i, k;

	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--help"))
			return 0;
		if (!strcmp(argv[i], "--ready")) {
			*ready = true;
			continue;
		}
		if (strcmp(argv[i], "--scale") || ++i == argc)
			return -1;
		*scale = strtod(argv[i], &end);
		if (*end || end == argv[i] || !(*scale > 0 && *scale <= 10000))
			return -1;
	}
	for (k = i; k < argc; k++)
		if (!find_phase(argv[k]))
			return -1;
	return i;
}

int main(int argc, char **argv)
{
	double scale = 1;
	bool ready = false;
	int first = parse(argc, argv, &scale, &ready), signals;
	size_t i, n;

	if (first <= 0)
		return fputs(help, first ? stderr : stdout), first < 0;
	signals = block_usr1();
	stay_on_one_cpu();
	n = first < argc ? (size_t)(argc - first) : PHASES;
	for (i = 0; i < n; i++) {
		const struct phase *p = first < argc ? find_phase(argv[first + (int)i]) : &phases[i];

		if (ready)
			wait_for_go(p->name, signals);
		run_phase(p, scale);
	}
	return 0;
}
