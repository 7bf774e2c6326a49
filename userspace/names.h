/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What things are called: kinds of locks, by how glibc's primitives use futexes; the places that faults touch.
 */
#ifndef REDFRAME_NAMES_H
#define REDFRAME_NAMES_H

#include "model.h"

typedef int8_t s8;

#define LOCK_KINDS(X)                                                                                                  \
	X(NONE, "futex", NONE, 0)                                                                                      \
	X(MUTEX, "mutex", LOCK_WAIT, 0)                                                                                \
	X(PI_MUTEX, "priority-inheriting mutex", LOCK_WAIT, 0)                                                         \
	X(RWLOCK, "rwlock", LOCK_WAIT, 8)                                                                              \
	X(RWLOCK_WRITER, "rwlock", LOCK_WAIT, 12)                                                                      \
	X(LOW_LEVEL, "lock", LOCK_WAIT, 0)                                                                             \
	X(CONDVAR, "condition variable", THREAD_WAIT, 40)                                                              \
	X(CONDVAR_ODD, "condition variable", THREAD_WAIT, 44)                                                          \
	X(SEMAPHORE, "semaphore", THREAD_WAIT, 0)                                                                      \
	X(COND_OR_SEM, "condition variable or semaphore", THREAD_WAIT, 0)                                              \
	X(JOIN, "join", THREAD_WAIT, 0)                                                                                \
	X(BARRIER, "barrier", THREAD_WAIT, 4)                                                                          \
	X(MANY, "any of several futexes", THREAD_WAIT, 0)                                                              \
	X(OTHER, "futex", THREAD_WAIT, 0)
enum lock_kind {
#define X(NAME, name, cause, at) LOCK_##NAME,
	LOCK_KINDS(X)
#undef X
		LOCK_KIND_COUNT
};

const char *lock__word(enum lock_kind k);
enum cause lock__cause(enum lock_kind k);
/* Which primitive a LOCK_WAIT is a wait for, and who holds it (host tid; 0: not known). Rules: docs/attribution.md. */
enum lock_kind lock__classify(const struct model *m, const struct ev_lock_wait *w, u32 *owner);
/* The same by the caller in libc, where the event has a call chain that tells; else the guess. */
enum lock_kind lock__by_caller(const struct model *m, const struct ev_lock_wait *w, enum lock_kind guess, u32 *owner);
/* where the object begins whose futex word is addr */
u64 lock__object(enum lock_kind k, u64 addr);
/* "g_navmesh_mutex", "World::lock+0x10", "mutex at 0x7f…"; valid UTF-8 */
void lock__name(const struct model *m, enum lock_kind k, u64 addr, char *buf, size_t size);

/* what an address lies in, for a person: "/data/shaders.pak", "the heap", "a thread's stack", "anonymous memory" */
const char *mapping__name(const struct mapping *map);
extern const char heap_name[]; /* what it says of the main heap */
/* "AStar::expand"; false where no symbol is known. ip may be what code__at gave. */
bool function__name(const struct model *m, u64 ip, char *buf, size_t size);
/* What code counts as one: where the function begins, else the mapping of the file; CODE_NO_FILE of all code that no
 * file is behind, as a JIT makes it. */
#define CODE_NO_FILE 1u
#define CODE_PROBE   2u           /* redframe's own probes, at the game's cost */
#define CODE_JIT     (1ULL << 62) /* + its number: code made at run time that has a name */
u64 code__at(const struct model *m, u64 ip, u64 ts);
/* the name of what code__at gave; false: it has none */
bool code__name(const struct model *m, u64 code, char *buf, size_t size);
/* "RenderThread"; "process Xorg", "worker of process Xorg" where it is not the game's; "thread 42" without a name */
void thread__name(const struct model *m, u32 tid, char *buf, size_t size);
/* the same for JobWorker-1 and JobWorker-2: what they typically do is one thing */
u64 thread__group(const struct model *m, u32 tid);
const char *cause__phrase(enum cause c); /* "waiting for a lock" */

#endif
