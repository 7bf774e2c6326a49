// SPDX-License-Identifier: GPL-2.0-only
/* lock: a second thread waits for the first on every kind of lock, so that each wait is certain: the first lets it go
 * only once the kernel says that it sleeps. Lines: thread TID; wait KIND WORD OWNER WAKER RESULT BEGIN END (OWNER 0:
 * not kept in the lock; the times enclose the call). */
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include "target.h"

#define MAX 400

struct wait {
	const char *kind;
	void *word;
	int owner, waker, result;
	unsigned long long begin, end;
};

static struct wait waits[MAX];
static int n;
static atomic_int step; /* how far the waiter has come; it says so before each wait */
static atomic_int granted;
static atomic_int over; /* waits that have ended */
static int waiter_tid, main_tid, third_tid;
static pthread_t waiter, third;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, pi, timed = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t sem;
static pthread_barrier_t barrier;
static uint32_t words[4], futex2_word;
static atomic_int third_may_end;

#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#define SYS_futex_wake 454
#endif

/* ---- the waiter's side ---- */

static void begin(const char *kind, void *word, int owner, int waker, int result)
{
	int want = atomic_load(&step) + 1;

	while (atomic_load(&granted) < want) /* the first thread has taken what is needed */
		usleep(20);
	MUST(n < MAX);
	waits[n] = (struct wait){kind, word, owner, waker, result, boot_ns(), 0};
	atomic_store(&step, want);
}

static void end(void)
{
	waits[n++].end = boot_ns();
	atomic_fetch_add(&over, 1);
}

static void wait_mutexes(void)
{
	for (int i = 0; i < 200; i++) {
		begin("mutex", &mutex, main_tid, main_tid, 0);
		pthread_mutex_lock(&mutex);
		end();
		pthread_mutex_unlock(&mutex);
	}
	for (int i = 0; i < 10; i++) {
		begin("pi", &pi, main_tid, main_tid, 0);
		pthread_mutex_lock(&pi);
		end();
		pthread_mutex_unlock(&pi);
	}
}

static void wait_others(void)
{
	begin("rwlock-read", (char *)&rw + 8, main_tid, main_tid, 0);
	pthread_rwlock_rdlock(&rw);
	end();
	pthread_rwlock_unlock(&rw);
	begin("rwlock-writers", (char *)&rw + 12, main_tid, main_tid, 0);
	pthread_rwlock_wrlock(&rw);
	end();
	pthread_rwlock_unlock(&rw);
	begin("rwlock-write", NULL, 0, main_tid, 0);
	pthread_rwlock_wrlock(&rw);
	end();
	pthread_rwlock_unlock(&rw);
	pthread_mutex_lock(&cond_mutex);
	begin("condvar", NULL, 0, main_tid, 0);
	pthread_cond_wait(&cond, &cond_mutex);
	end();
	pthread_mutex_unlock(&cond_mutex);
	begin("semaphore", &sem, 0, main_tid, 0);
	sem_wait(&sem);
	end();
	begin("barrier", NULL, 0, main_tid, 0);
	pthread_barrier_wait(&barrier);
	end();
	begin("join", NULL, 0, third_tid, 0);
	pthread_join(third, NULL);
	end();
}

static void wait_by_hand(void)
{
	struct futex_waitv v[2] = {
		{.val = 0, .uaddr = (uintptr_t)&words[0], .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG},
		{.val = 0, .uaddr = (uintptr_t)&words[1], .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG},
	};
	struct timespec soon;
	long before;

	begin("waitv", &words[1], 0, main_tid, 1);
	MUST(syscall(SYS_futex_waitv, v, 2, 0, NULL, 0) == 1);
	end();
	begin("timeout", &timed, main_tid, 0, -ETIMEDOUT);
	do {
		before = sleeps_so_far();
		clock_gettime(CLOCK_REALTIME, &soon);
		soon.tv_nsec += 3000000;
		soon.tv_sec += soon.tv_nsec / 1000000000;
		soon.tv_nsec %= 1000000000;
		MUST(pthread_mutex_timedlock(&timed, &soon) == ETIMEDOUT);
	} while (sleeps_so_far() == before);
	end();
	begin("eagain", &words[2], 0, 0, -EAGAIN);
	MUST(syscall(SYS_futex, &words[2], FUTEX_WAIT_PRIVATE, 5, NULL, NULL, 0) < 0 && errno == EAGAIN);
	end();
	begin("eintr", &words[3], 0, 0, -EINTR);
	MUST(syscall(SYS_futex, &words[3], FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) < 0 && errno == EINTR);
	end();
	begin("futex2", &futex2_word, 0, main_tid, 0);
	if (syscall(SYS_futex_wait, &futex2_word, 0UL, 0xffffffffUL, FUTEX_32 | FUTEX_PRIVATE_FLAG, NULL, 0) < 0)
		waits[n].kind = "none"; /* a kernel before 6.7 */
	end();
}

static void *wait_for_all(void *arg)
{
	waiter_tid = gettid();
	wait_mutexes();
	wait_others();
	wait_by_hand();
	atomic_store(&step, 10000);
	return NULL;
}

/* ---- the first thread's: one step each ---- */

static int turn;

static void grant(void)
{
	atomic_store(&granted, ++turn);
}

static void until_asleep(long nr)
{
	while (atomic_load(&step) < turn)
		usleep(20);
	await_blocked(waiter_tid, nr);
}

/* Else this thread might have the lock again before the waiter wakes up. */
static void until_over(void)
{
	while (atomic_load(&over) < turn)
		usleep(20);
}

static void hold(pthread_mutex_t *m)
{
	pthread_mutex_lock(m);
	grant();
	until_asleep(SYS_futex);
	pthread_mutex_unlock(m);
	until_over();
}

static void let_go_of_others(void)
{
	for (int i = 0; i < 2; i++) { /* a reader, a writer */
		pthread_rwlock_wrlock(&rw);
		grant();
		until_asleep(SYS_futex);
		pthread_rwlock_unlock(&rw);
		until_over();
	}
	pthread_rwlock_rdlock(&rw);
	grant();
	until_asleep(SYS_futex);
	pthread_rwlock_unlock(&rw);
	grant();
	until_asleep(SYS_futex);
	pthread_cond_signal(&cond);
	grant();
	until_asleep(SYS_futex);
	sem_post(&sem);
	grant();
	until_asleep(SYS_futex);
	pthread_barrier_wait(&barrier);
	grant();
	until_asleep(SYS_futex);
	atomic_store(&third_may_end, 1);
}

static void let_go_by_hand(void)
{
	grant();
	until_asleep(SYS_futex_waitv);
	syscall(SYS_futex, &words[1], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	while (atomic_load(&step) < turn)
		usleep(20);
	pthread_mutex_lock(&timed);
	grant(); /* timeout */
	grant(); /* EAGAIN */
	grant(); /* interrupted */
	until_asleep(SYS_futex);
	pthread_mutex_unlock(&timed);
	pthread_kill(waiter, SIGUSR1);
	grant();
	while (atomic_load(&step) < turn)
		usleep(20);
	while (atomic_load(&step) < 10000 &&
		syscall(SYS_futex_wake, &futex2_word, 0xffffffffUL, 1, FUTEX_32 | FUTEX_PRIVATE_FLAG) < 1)
		usleep(100);
}

static void *end_when_told(void *arg)
{
	third_tid = gettid();
	while (!atomic_load(&third_may_end))
		usleep(100);
	return NULL;
}

static void on_signal(int sig)
{
	(void)sig;
}

static void setup(void)
{
	struct sigaction sa = {.sa_handler = on_signal};
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&pi, &attr);
	sem_init(&sem, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	sigaction(SIGUSR1, &sa, NULL);
	main_tid = gettid();
	MUST(!pthread_create(&third, NULL, end_when_told, NULL));
	MUST(!pthread_create(&waiter, NULL, wait_for_all, NULL));
	while (!third_tid || !waiter_tid)
		usleep(1000);
}

int main(void)
{
	setup();
	target_ready();
	for (int i = 0; i < 200; i++)
		hold(&mutex);
	for (int i = 0; i < 10; i++)
		hold(&pi);
	let_go_of_others();
	let_go_by_hand();
	pthread_join(waiter, NULL);
	printf("thread %d\n", waiter_tid);
	for (int i = 0; i < n; i++)
		printf("wait %s %#lx %d %d %d %llu %llu\n", waits[i].kind, (unsigned long)waits[i].word, waits[i].owner,
			waits[i].waker, waits[i].result, waits[i].begin, waits[i].end);
	printf("object rwlock-write %p %zu\nobject condvar %p %zu\nobject barrier %p %zu\nobject join %p 4096\n",
		(void *)&rw, sizeof(rw), (void *)&cond, sizeof(cond), (void *)&barrier, sizeof(barrier), (void *)third);
	target_done();
	return 0;
}
