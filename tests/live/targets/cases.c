// SPDX-License-Identifier: GPL-2.0-only
/* cases MODE …: what job() goes through in games, and what breaks tracers that expect it to return the usual way.
 *   fibers N     N fibers enter job(), and leave it first come first served
 *   migrate N    N fibers enter job() on one thread and leave it on another
 *   longjmp N    job() is left by longjmp N times
 *   abandon N    job() is entered N times by a fiber that is left in it each time, and for good at last
 *   recursion N  job() calls itself to depth N
 *   strings FILE 5 times its text as a message, before and after its page is touched
 *   plugin FILE GO  a library comes late; once GO exists plug() in it is called 10 times, and 100 times by a child
 *   seccomp N    only write and exit are allowed any more, then N calls
 *   ticks N      N plain calls
 *   launched N GO  N calls once the file GO exists, and exits with 7
 * Lines: ok MODE, calls N. */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucontext.h>
#include "redframe.h"
#include "target.h"

#define MAX_FIBERS 256
#define STACK      32768

enum { RETURN, SWITCH, JUMP, RECURSE };
static volatile int how = RETURN;
static ucontext_t fibers[MAX_FIBERS], home, other_home, *volatile back = &home;
static char stacks[MAX_FIBERS][STACK];
static jmp_buf out;

int job(int n);
__attribute__((noinline)) int job(int n)
{
	__asm__ volatile("");
	if (how == SWITCH)
		swapcontext(&fibers[n], back);
	else if (how == JUMP)
		longjmp(out, 1);
	else if (how == RECURSE && n)
		return job(n - 1) + 1;
	return n + 1;
}

static void fiber(int n)
{
	MUST(job(n) == n + 1);
	swapcontext(&fibers[n], back);
	abort();
}

static void make_fiber(int n, void (*fn)(int))
{
	getcontext(&fibers[n]);
	fibers[n].uc_stack.ss_sp = stacks[n];
	fibers[n].uc_stack.ss_size = STACK;
	makecontext(&fibers[n], (void (*)(void))fn, 1, n);
}

static void run_fibers(int n)
{
	how = SWITCH;
	for (int i = 0; i < n; i++) {
		make_fiber(i, fiber);
		swapcontext(&home, &fibers[i]);
	}
	for (int i = 0; i < n; i++)
		swapcontext(&home, &fibers[i]);
}

static void *resume(void *arg)
{
	back = &other_home;
	for (int i = 0; i < *(int *)arg; i++)
		swapcontext(&other_home, &fibers[i]);
	return NULL;
}

static void migrate(int n)
{
	pthread_t t;

	how = SWITCH;
	for (int i = 0; i < n; i++) {
		make_fiber(i, fiber);
		swapcontext(&home, &fibers[i]);
	}
	MUST(!pthread_create(&t, NULL, resume, &n));
	pthread_join(t, NULL);
}

static void endless(int n)
{
	for (;;)
		job(n);
}

static void abandon(int n)
{
	how = SWITCH;
	make_fiber(0, endless);
	for (int i = 0; i < n; i++)
		swapcontext(&home, &fibers[0]);
}

static void jump(int n)
{
	how = JUMP;
	for (volatile int i = 0; i < n; i++)
		if (!setjmp(out))
			job(i);
}

static void recurse(int n)
{
	how = RECURSE;
	MUST(job(n) == n + 1);
}

/* as redframe.h does it, without touching the text first */
__attribute__((noinline)) static void untouched_message(const char *text)
{
	REDFRAME_ASM(REDFRAME_NOTE("message", REDFRAME_ARG(0)) : : "r"(text) : "memory");
}

static void strings(const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	MUST(fd >= 0);
	for (int i = 0; i < 5; i++) {
		char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

		MUST(p != MAP_FAILED);
		untouched_message(p);
		__asm__ volatile("" : : "r"(*(volatile char *)p));
		untouched_message(p);
		munmap(p, 4096);
	}
	close(fd);
}

/* The tracer is ready: that the probe is in the code does not say so, on some kernels its program comes later. */
static void await_file(const char *path)
{
	for (int i = 0; i < 60000 && access(path, F_OK); i++)
		usleep(1000);
}

static void plugin(const char *file, const char *go)
{
	void *lib = dlopen(file, RTLD_NOW);
	int (*plug)(int);
	int child;

	MUST(lib);
	*(void **)&plug = dlsym(lib, "plug");
	MUST(plug);
	await_file(go);
	for (int i = 0; i < 10; i++)
		MUST(plug(i) == i + 1);
	child = fork();
	if (!child) {
		for (int i = 0; i < 100; i++)
			plug(i);
		_exit(0);
	}
	MUST(child > 0 && waitpid(child, NULL, 0) == child);
}

static void locked_up(int n)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};
	static const char done[] = "ok seccomp\ndone\n";

	MUST(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog));
	for (int i = 0; i < n; i++)
		job(i);
	_exit(write(1, done, sizeof(done) - 1) < 0);
}

static void launched(int n, const char *go)
{
	printf("uid %u\n", getuid());
	fflush(stdout);
	await_file(go);
	for (int i = 0; i < n; i++)
		job(i);
	exit(7);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	if (!strcmp(mode, "launched") && argc > 3)
		launched(n, argv[3]);
	target_ready();
	if (!strcmp(mode, "fibers"))
		run_fibers(n);
	else if (!strcmp(mode, "migrate"))
		migrate(n);
	else if (!strcmp(mode, "longjmp"))
		jump(n);
	else if (!strcmp(mode, "recursion"))
		recurse(n);
	else if (!strcmp(mode, "abandon"))
		abandon(n);
	else if (!strcmp(mode, "strings") && argc > 2)
		strings(argv[2]);
	else if (!strcmp(mode, "plugin") && argc > 3)
		plugin(argv[2], argv[3]);
	else if (!strcmp(mode, "seccomp"))
		locked_up(n);
	else
		for (int i = 0; i < n; i++)
			job(i);
	printf("ok %s\n", mode);
	target_done();
	return 0;
}
