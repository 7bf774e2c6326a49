/* SPDX-License-Identifier: MIT
 *
 * libredframe-alloc.so: `redframe record --alloc preload -- CMD` loads it into the game. Every call of the allocator
 * goes on to the next one (glibc's, or another interposer's behind us) and leaves a record in this thread's ring. It
 * never allocates, waits or calls anything else, so that it is safe in early start-up, in signal handlers and after
 * fork.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/types.h>

#include "area.h"
#include "events.h"
#include "exponential.h"

#define EXPORT __attribute__((visibility("default")))
#define CALLER ((uint64_t)(uintptr_t)__builtin_return_address(0))
#define LOW48  ((1ULL << 48) - 1)

static struct preload_area *area; /* NULL: none */
static uint32_t begun;
/* A page that fork empties: in the child it says that the rings are the parent's, whatever way it was forked. */
static const volatile uint32_t *ours;

/* initial-exec: no allocation behind the first use */
static __thread struct preload_slot *slot __attribute__((tls_model("initial-exec")));
static __thread bool unslotted __attribute__((tls_model("initial-exec")));
static __thread unsigned int inside
	__attribute__((tls_model("initial-exec")));                      /* allocator functions, one in another */
static __thread bool writing __attribute__((tls_model("initial-exec"))); /* a record, at this moment */

/* ---- the ring ---- */

static bool take_slot(void)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);

	for (uint32_t n = 0; n < PRELOAD_SLOTS && !slot; n++) {
		struct preload_slot *s = &area->slot[n];
		uint32_t is_free = PRELOAD_FREE, high = __atomic_load_n(&area->high, __ATOMIC_RELAXED);

		while (high <= n && !__atomic_compare_exchange_n(
					    &area->high, &high, n + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			;

		if (__atomic_load_n(&s->state, __ATOMIC_RELAXED) != PRELOAD_FREE)
			continue;
		if (!__atomic_compare_exchange_n(
			    &s->state, &is_free, PRELOAD_TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		s->tgid = (uint32_t)getpid();
		__atomic_store_n(&s->tid, tid, __ATOMIC_RELEASE);
		slot = s;
	}
	unslotted = !slot;
	return slot;
}

static void begin(void);

static inline bool is_recording(void)
{
	if (!__atomic_load_n(&begun, __ATOMIC_RELAXED))
		begin();
	return area && *ours && __atomic_load_n(&area->recording, __ATOMIC_RELAXED);
}

static void put(struct preload_slot *s, uint64_t at, uint64_t what, uint64_t fn, uint64_t how, uint64_t ticks)
{
	struct preload_record *r = &s->ring[at % PRELOAD_RECORDS];

	r->what = (what & LOW48) | fn << 48 | (ticks >> 32 & 0xff) << 56;
	r->how = (how & UINT32_MAX) | ticks << 32;
}

static void record(enum alloc_fn fn, uint64_t size, uint64_t block, uint64_t caller)
{
	struct preload_slot *s = slot;
	bool more = size > UINT32_MAX || fn == ALLOC_REALLOC;
	uint64_t head, ticks;

	if (!s && (unslotted || !take_slot())) {
		__atomic_fetch_add(&area->unslotted, 1, __ATOMIC_RELAXED);
		return;
	}
	s = slot;
	head = s->head;
	/* a signal handler that allocates in the midst of this would write the same record */
	if (writing || head + more - __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE) >= PRELOAD_RECORDS) {
		s->lost++;
		return;
	}
	writing = true;
	ticks = preload__ticks();
	if (more)
		put(s, head, block, PRELOAD_MORE, size >> 32, ticks);
	put(s, head + more, caller, fn, size, ticks);
	__atomic_store_n(&s->head, head + more + 1, __ATOMIC_RELEASE);
	writing = false;
}

/* ---- samples: with the calls that led to them, which only the kernel side can copy in time ---- */

/* Bytes until the next one; 0: not drawn yet. As the kernel side does it for probes. */
static __thread uint64_t gap __attribute__((tls_model("initial-exec")));
static __thread uint32_t seed __attribute__((tls_model("initial-exec")));

void redframe_alloc_sample(uint64_t size, uint64_t fn, uint64_t caller);
/* The probe's place: a one-byte instruction that the kernel emulates, in a function of its own. */
EXPORT __attribute__((noinline, noclone)) void redframe_alloc_sample(uint64_t size, uint64_t fn, uint64_t caller)
{
	__asm__ volatile("nop" : : "r"(size), "r"(fn), "r"(caller) : "memory");
}

static uint32_t any_number(void)
{
	if (!seed)
		seed = (uint32_t)(preload__ticks() ^ (uintptr_t)&seed) | 1;
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed;
}

static __attribute__((cold, noinline)) void sample(enum alloc_fn fn, uint64_t size, uint64_t caller)
{
	uint64_t period = area->sample_bytes;

	if (!period || period > 1u << 30) {
		gap = UINT64_MAX;
		return;
	}
	if (size >= ALLOC_ALWAYS_BYTES)
		return; /* these are each in the recording, and never sampled */
	if (!gap)
		gap = (period * exponential(any_number()) >> 16) + 1;
	if (size < gap) {
		gap -= size;
		return;
	}
	gap = 0;
	redframe_alloc_sample(size, fn, caller);
}

/* Functions of an allocator call each other: only the game's call is recorded. */
static inline bool enter(enum alloc_fn fn, uint64_t size, uint64_t block, uint64_t caller)
{
	if (!is_recording())
		return false;
	if (inside++ && !writing)
		return true;
	record(fn, size, block, caller);
	if (__builtin_constant_p(size)) /* it frees */
		return true;
	if (size < gap && size < ALLOC_ALWAYS_BYTES)
		gap -= size;
	else
		sample(fn, size, caller);
	return true;
}

static inline void leave(const bool *entered)
{
	inside -= *entered;
}

/* The variable's end is the call's end: by return, or by bad_alloc on its way through. */
#define RECORD(fn, size, block, caller)                                                                                \
	bool entered __attribute__((cleanup(leave))) = enter(fn, size, (uint64_t)(uintptr_t)(block), caller)

/* ---- start-up ---- */

/* dlsym allocates, before there is anything to allocate with: from here, and never freed */
static char early[16 << 10] __attribute__((aligned(16)));
static size_t early_used;

static void *early_alloc(size_t size)
{
	size_t at = __atomic_fetch_add(&early_used, (size + 31) & ~(size_t)15, __ATOMIC_RELAXED);

	if (size > sizeof(early) || at > sizeof(early) - size - 16)
		return NULL;
	memcpy(early + at, &size, sizeof(size)); /* for realloc */
	return early + at + 16;
}

static bool is_early(const void *p)
{
	return (const char *)p >= early && (const char *)p < early + sizeof(early);
}

static __thread bool resolving __attribute__((tls_model("initial-exec")));

/* NULL while dlsym itself allocates */
static void *next_of(void **real, const char *name)
{
	void *found = __atomic_load_n(real, __ATOMIC_RELAXED);

	if (found || resolving)
		return found;
	resolving = true;
	found = dlsym(RTLD_NEXT, name);
	resolving = false;
	__atomic_store_n(real, found, __ATOMIC_RELAXED);
	return found;
}

#define NEXT(name)                                                                                                     \
	({                                                                                                             \
		static void *next;                                                                                     \
		(__typeof__(&name))next_of(&next, #name);                                                              \
	})

static struct preload_area *map_area(void)
{
	const char *text = getenv(PRELOAD_FD_ENV);
	struct preload_area *a;
	struct stat st;
	int fd = text ? atoi(text) : -1;

	if (fd < 0 || fstat(fd, &st) || st.st_size != sizeof(*a))
		return NULL; /* a launcher has closed it: redframe says that nothing was covered */
	a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (a == MAP_FAILED)
		return NULL;
	if (a->magic == PRELOAD_MAGIC && a->slots == PRELOAD_SLOTS)
		return a;
	munmap(a, sizeof(*a));
	return NULL;
}

/* At the first call, which may come before any constructor. */
__attribute__((constructor)) static void begin(void)
{
	int saved = errno;
	uint32_t *page;
	struct preload_area *a;

	if (__atomic_exchange_n(&begun, 1, __ATOMIC_RELAXED))
		return;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	a = page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK) ? NULL : map_area();

	if (a) {
		*page = 1;
		ours = page;
		__atomic_fetch_add(&a->loaded, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&area, a, __ATOMIC_RELEASE);
	}
	errno = saved;
}

/* ---- C ---- */

EXPORT void *malloc(size_t size)
{
	__typeof__(&malloc) real = NEXT(malloc);
	RECORD(ALLOC_MALLOC, size, NULL, CALLER);

	return real ? real(size) : early_alloc(size);
}

EXPORT void free(void *p)
{
	__typeof__(&free) real;

	if (!p || is_early(p))
		return;
	real = NEXT(free);
	RECORD(ALLOC_FREE, 0, NULL, (uint64_t)(uintptr_t)p);
	if (real)
		real(p);
}

EXPORT void *calloc(size_t n, size_t size)
{
	__typeof__(&calloc) real = NEXT(calloc);
	size_t bytes;
	RECORD(ALLOC_CALLOC, n * size, NULL, CALLER);

	if (real)
		return real(n, size);
	return __builtin_mul_overflow(n, size, &bytes) ? NULL : early_alloc(bytes); /* zero from the start */
}

static void *realloc_early(void *p, size_t size)
{
	void *q = malloc(size);
	size_t had;

	memcpy(&had, (char *)p - 16, sizeof(had));
	return q ? memcpy(q, p, had < size ? had : size) : NULL;
}

EXPORT void *realloc(void *p, size_t size)
{
	__typeof__(&realloc) real = NEXT(realloc);

	if (is_early(p))
		return realloc_early(p, size);
	RECORD(ALLOC_REALLOC, size, p, CALLER);
	return real ? real(p, size) : p ? NULL : early_alloc(size);
}

EXPORT void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	__typeof__(&realloc) real = NEXT(realloc);

	if (is_early(p))
		return realloc_early(p, bytes);
	RECORD(ALLOC_REALLOC, bytes, p, CALLER);
	return real ? real(p, bytes) : NULL;
}

EXPORT int posix_memalign(void **out, size_t align, size_t size)
{
	__typeof__(&posix_memalign) real = NEXT(posix_memalign);
	RECORD(ALLOC_POSIX_MEMALIGN, size, NULL, CALLER);

	return real ? real(out, align, size) : ENOMEM;
}

#define ALIGNED(name)                                                                                                  \
	EXPORT void *name(size_t align, size_t size)                                                                   \
	{                                                                                                              \
		__typeof__(&name) real = NEXT(name);                                                                   \
		RECORD(ALLOC_ALIGNED, size, NULL, CALLER);                                                             \
                                                                                                                       \
		return real ? real(align, size) : NULL;                                                                \
	}
ALIGNED(aligned_alloc)
void *memalign(size_t align, size_t size);
ALIGNED(memalign)

EXPORT void *valloc(size_t size)
{
	__typeof__(&valloc) real = NEXT(valloc);
	RECORD(ALLOC_ALIGNED, size, NULL, CALLER);

	return real ? real(size) : NULL;
}

/* ---- C++: the caller of new is the game, that of the malloc in it is libstdc++ ---- */

struct nothrow; /* std::nothrow_t, by reference */

#define NEW(symbol, fn, params, args)                                                                                  \
	EXPORT void *symbol params;                                                                                    \
	EXPORT void *symbol params                                                                                     \
	{                                                                                                              \
		__typeof__(&symbol) real = NEXT(symbol);                                                               \
		RECORD(fn, size, NULL, CALLER);                                                                        \
                                                                                                                       \
		return real ? real args : malloc(size);                                                                \
	}
NEW(_Znwm, ALLOC_NEW, (size_t size), (size))
NEW(_Znam, ALLOC_NEW_ARRAY, (size_t size), (size))
NEW(_ZnwmRKSt9nothrow_t, ALLOC_NEW, (size_t size, const struct nothrow *t), (size, t))
NEW(_ZnamRKSt9nothrow_t, ALLOC_NEW_ARRAY, (size_t size, const struct nothrow *t), (size, t))
NEW(_ZnwmSt11align_val_t, ALLOC_NEW, (size_t size, size_t align), (size, align))
NEW(_ZnamSt11align_val_t, ALLOC_NEW_ARRAY, (size_t size, size_t align), (size, align))

#define DELETE(symbol, fn, params, args)                                                                               \
	EXPORT void symbol params;                                                                                     \
	EXPORT void symbol params                                                                                      \
	{                                                                                                              \
		__typeof__(&symbol) real;                                                                              \
                                                                                                                       \
		if (!p)                                                                                                \
			return;                                                                                        \
		real = NEXT(symbol);                                                                                   \
		RECORD(fn, 0, NULL, (uint64_t)(uintptr_t)p);                                                           \
		if (real)                                                                                              \
			real args;                                                                                     \
		else                                                                                                   \
			free(p);                                                                                       \
	}
DELETE(_ZdlPv, ALLOC_DELETE, (void *p), (p))
DELETE(_ZdaPv, ALLOC_DELETE_ARRAY, (void *p), (p))
DELETE(_ZdlPvm, ALLOC_DELETE, (void *p, size_t size), (p, size))
DELETE(_ZdaPvm, ALLOC_DELETE_ARRAY, (void *p, size_t size), (p, size))
DELETE(_ZdlPvSt11align_val_t, ALLOC_DELETE, (void *p, size_t align), (p, align))
DELETE(_ZdaPvSt11align_val_t, ALLOC_DELETE_ARRAY, (void *p, size_t align), (p, align))
DELETE(_ZdlPvmSt11align_val_t, ALLOC_DELETE, (void *p, size_t size, size_t align), (p, size, align))
DELETE(_ZdaPvmSt11align_val_t, ALLOC_DELETE_ARRAY, (void *p, size_t size, size_t align), (p, size, align))
