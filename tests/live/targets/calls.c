// SPDX-License-Identifier: GPL-2.0-only
/* calls: waits at the end of chains of calls that are hard to find, built as games are: -O2, no frame pointers.
 * Lines: chain NAME BEGIN END FUNCTION<FUNCTION<… innermost first, those of this program only; BEGIN and END enclose
 * the wait. A function on top of a major fault: fault NAME ADDRESS FUNCTION<… */
#include <alloca.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "target.h"

#define NOINLINE    __attribute__((noinline, noclone))
#define INLINE      static inline __attribute__((always_inline))
#define NO_TAIL     __asm__ volatile("" ::: "memory") /* what stands before it is no tail call */
#define DEEP        3000
#define FAULT_PAGES 16

static unsigned long long began, ended;

static NOINLINE void nap(void)
{
	long before = sleeps_so_far();

	do {
		began = boot_ns();
		usleep(2000);
		ended = boot_ns();
	} while (sleeps_so_far() == before);
	NO_TAIL;
}

static void tell(const char *name, const char *chain)
{
	printf("chain %s %llu %llu %s\n", name, began, ended, chain);
}

/* ---- plain ---- */

static NOINLINE void plain_c(void)
{
	nap();
	NO_TAIL;
}

static NOINLINE void plain_b(void)
{
	plain_c();
	NO_TAIL;
}

static NOINLINE void plain_a(void)
{
	plain_b();
	NO_TAIL;
}

/* ---- inlined, three deep ---- */

INLINE void inline_c(void)
{
	nap();
	NO_TAIL;
}

INLINE void inline_b(void)
{
	inline_c();
	NO_TAIL;
}

INLINE void inline_a(void)
{
	inline_b();
	NO_TAIL;
}

static NOINLINE void inlined(void)
{
	inline_a();
	NO_TAIL;
}

/* ---- frames whose size is known at run time only, or is large ---- */

static NOINLINE void with_alloca(size_t n)
{
	volatile char *p = alloca(n);

	p[0] = 1;
	nap();
	p[n - 1] = 1;
}

static NOINLINE void with_big_frame(void)
{
	volatile char room[13000]; /* two pages of it at least are never touched */

	room[0] = 1;
	nap();
	room[sizeof(room) - 1] = 1;
}

static NOINLINE int deep(int n)
{
	volatile int here = n;

	if (n)
		here += deep(n - 1);
	else
		nap();
	return here;
}

/* ---- through the C library: a signal, a callback ---- */

static void on_signal(int sig)
{
	nap();
	NO_TAIL;
}

static NOINLINE void raise_it(void)
{
	raise(SIGUSR1);
	NO_TAIL;
}

static int compare(const void *a, const void *b)
{
	static int napped;

	if (!napped++)
		nap();
	return *(const int *)a - *(const int *)b;
}

static NOINLINE void sort_it(void)
{
	volatile int v[] = {3, 1, 2};

	qsort((void *)v, 3, sizeof(v[0]), compare);
	NO_TAIL;
}

/* ---- on a stack of its own ---- */

static ucontext_t around, coroutine;

static NOINLINE void co_inner(void)
{
	nap();
	NO_TAIL;
}

static void co_body(void)
{
	co_inner();
	NO_TAIL;
}

static void run_coroutine(void)
{
	size_t size = 65536;

	MUST(!getcontext(&coroutine));
	coroutine.uc_stack.ss_sp = malloc(size);
	coroutine.uc_stack.ss_size = size;
	coroutine.uc_link = &around;
	makecontext(&coroutine, co_body, 0);
	MUST(!swapcontext(&around, &coroutine));
	free(coroutine.uc_stack.ss_sp);
}

/* ---- on a thread ---- */

static NOINLINE void *thread_body(void *arg)
{
	nap();
	NO_TAIL;
	return arg;
}

/* ---- through code without call frame information, which keeps frame pointers ---- */

#ifdef __x86_64__
void nap_in_asm(void);
void without_cfi(void);
NOINLINE void nap_in_asm(void)
{
	nap();
	NO_TAIL;
}
__asm__(".pushsection .text\n"
	".type without_cfi, @function\n"
	"without_cfi:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	sub $64, %rsp\n"
	"	call nap_in_asm\n"
	"	leave\n"
	"	ret\n"
	".size without_cfi, .-without_cfi\n"
	".popsection\n");

static NOINLINE void frame_pointers(void)
{
	without_cfi();
	NO_TAIL;
	tell("frame_pointers", "nap<nap_in_asm<without_cfi<frame_pointers<main");
}
#else
static void frame_pointers(void)
{
}
#endif

/* ---- at a function's first instruction, and behind its epilogue ---- */

#ifdef __x86_64__
int leaf_first(const char *p);
int leaf_last(const char *p);
__asm__(".pushsection .text\n"
	".type leaf_first, @function\n"
	"leaf_first:\n"
	".cfi_startproc\n"
	"	movzbl (%rdi), %eax\n"
	"	ret\n"
	".cfi_endproc\n"
	".size leaf_first, .-leaf_first\n"
	".type leaf_last, @function\n"
	"leaf_last:\n"
	".cfi_startproc\n"
	"	push %rbx\n"
	".cfi_adjust_cfa_offset 8\n"
	".cfi_rel_offset %rbx, 0\n"
	"	sub $1024, %rsp\n"
	".cfi_adjust_cfa_offset 1024\n"
	"	mov %rdi, %rbx\n"
	"	add $1024, %rsp\n"
	".cfi_adjust_cfa_offset -1024\n"
	"	pop %rbx\n"
	".cfi_adjust_cfa_offset -8\n"
	".cfi_restore %rbx\n"
	"	movzbl (%rdi), %eax\n"
	"	ret\n"
	".cfi_endproc\n"
	".size leaf_last, .-leaf_last\n"
	".popsection\n");

static int in_memory(char *p)
{
	unsigned char yes;

	MUST(!mincore(p, 1, &yes));
	return yes & 1;
}

static char *cold_file(const char *dir)
{
	size_t size = FAULT_PAGES * 65536;
	char path[256], *bytes = malloc(size), *p;
	int fd;

	snprintf(path, sizeof(path), "%s/cold", dir);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	memset(bytes, 1, size);
	MUST(fd >= 0 && write(fd, bytes, size) == (ssize_t)size && !fsync(fd));
	free(bytes);
	p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	MUST(p != MAP_FAILED && !madvise(p, size, MADV_RANDOM));
	for (int i = 0; i < 200 && (in_memory(p) || in_memory(p + size / 2)); i++) {
		MUST(!fsync(fd) && !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
		usleep(5000); /* pages may be in some CPU's queue */
	}
	MUST(!in_memory(p) && !in_memory(p + size / 2));
	close(fd);
	return p;
}

static NOINLINE void touch(const char *p)
{
	leaf_first(p);
	leaf_last(p + FAULT_PAGES / 2 * 65536);
	NO_TAIL;
}

static void faults(const char *dir)
{
	char *p = cold_file(dir);

	touch(p);
	printf("fault first %llu leaf_first<touch<faults<main\n", (unsigned long long)(uintptr_t)p);
	printf("fault last %llu leaf_last<touch<faults<main\n",
		(unsigned long long)(uintptr_t)(p + FAULT_PAGES / 2 * 65536));
}
#else
static void faults(const char *dir)
{
}
#endif

int main(int argc, char **argv)
{
	pthread_t thread;

	MUST(argc == 2);
	signal(SIGUSR1, on_signal);
	target_ready();
	plain_a();
	tell("plain", "nap<plain_c<plain_b<plain_a<main");
	inlined();
	tell("inlined", "nap<inline_c<inline_b<inline_a<inlined<main");
	with_alloca((size_t)argc * 1000);
	tell("alloca", "nap<with_alloca<main");
	with_big_frame();
	tell("big_frame", "nap<with_big_frame<main");
	raise_it();
	tell("signal", "nap<on_signal<raise_it<main");
	sort_it();
	tell("callback", "nap<compare<sort_it<main");
	run_coroutine();
	tell("coroutine", "nap<co_inner<co_body");
	MUST(!pthread_create(&thread, NULL, thread_body, NULL));
	pthread_join(thread, NULL);
	tell("thread", "nap<thread_body");
	frame_pointers();
	deep(DEEP);
	tell("deep", "nap<deep<…");
	faults(argv[1]);
	target_done();
	return 0;
}
