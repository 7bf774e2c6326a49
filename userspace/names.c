/* SPDX-License-Identifier: GPL-2.0-only */
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>

#include "intern.h"
#include "names.h"
#include "strings.h"

static const struct {
	const char *word;
	enum cause cause;
	u32 at; /* offset of the futex word in the object, bytes, glibc 2.36 */
} lock_kinds[] = {
#define X(NAME, name, c, o) [LOCK_##NAME] = {name, CAUSE_##c, o},
	LOCK_KINDS(X)
#undef X
};

const char *lock__word(enum lock_kind k)
{
	return lock_kinds[k].word;
}

enum cause lock__cause(enum lock_kind k)
{
	return lock_kinds[k].cause;
}

u64 lock__object(enum lock_kind k, u64 addr)
{
	return addr - min((u64)lock_kinds[k].at, addr);
}

#define SEM_SHARED 128u /* glibc: what a semaphore that processes share has behind its counts; a private one has 0 */

/* A condvar's word is 40 or 44 bytes into it, a semaphore's is its first: the symbol around it tells, where there is
 * one. The odd word can only be a condvar's, for semaphores are 8-byte aligned. Else the word behind it tells: a
 * semaphore counts there who waits, at least this thread; of a condvar it is the other group's, nearly always 0. */
static enum lock_kind signal_kind(const struct model *m, const struct ev_lock_wait *w)
{
	const struct symbol *s = model__symbol(m, w->addr);
	u64 addr = w->addr;

	if (addr & 4)
		return LOCK_CONDVAR_ODD;
	if (s && s->addr == addr)
		return LOCK_SEMAPHORE;
	if (s && addr - s->addr == 40 && s->size == 48)
		return LOCK_CONDVAR;
	if (!w->owner16)
		return LOCK_CONDVAR;
	return w->owner == 0 || w->owner == SEM_SHARED ? LOCK_SEMAPHORE : LOCK_COND_OR_SEM;
}

static enum lock_kind bitset_kind(const struct model *m, const struct ev_lock_wait *w, u32 *owner)
{
	if (!(w->op & FUTEX_PRIVATE_FLAG) && w->val && model__host_tid(m, w->val)) {
		*owner = model__host_tid(m, w->val);
		return LOCK_JOIN;
	}
	if (w->val == 3) {
		*owner = w->owner16 ? model__host_tid(m, w->owner16) : 0;
		return w->addr & 4 ? LOCK_RWLOCK_WRITER : LOCK_RWLOCK;
	}
	if (w->val == 2) {
		*owner = w->owner ? model__host_tid(m, w->owner) : 0;
		if (*owner)
			return LOCK_MUTEX; /* with a timeout */
		return w->addr & 7 ? LOCK_LOW_LEVEL : LOCK_RWLOCK;
	}
	return w->val == 0 ? signal_kind(m, w) : LOCK_OTHER;
}

static enum lock_kind wait_kind(const struct model *m, const struct ev_lock_wait *w, u32 *owner)
{
	if (w->val == 2 && !(w->addr & 4)) {
		*owner = w->owner ? model__host_tid(m, w->owner) : 0;
		return *owner ? LOCK_MUTEX : LOCK_LOW_LEVEL;
	}
	if (w->val == 2 && w->owner && model__host_tid(m, w->owner)) {
		*owner = model__host_tid(m, w->owner);
		return LOCK_MUTEX;
	}
	/* pthread_barrier_t is 8-byte aligned and waits on its second word */
	return w->addr & 4 ? LOCK_BARRIER : LOCK_OTHER;
}

static enum lock_kind kind_by_words(const struct model *m, const struct ev_lock_wait *w, u32 *owner)
{
	if (w->op == FUTEX_OP_WAITV)
		return LOCK_MANY;
	switch (w->op & FUTEX_CMD_MASK) {
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		*owner = model__host_tid(m, w->word & FUTEX_TID_MASK);
		return LOCK_PI_MUTEX;
	case FUTEX_WAIT_BITSET:
		return bitset_kind(m, w, owner);
	case FUTEX_WAIT:
		return wait_kind(m, w, owner);
	case FUTEX_WAIT_REQUEUE_PI:
		return LOCK_CONDVAR;
	default:
		return LOCK_OTHER;
	}
}

enum lock_kind lock__classify(const struct model *m, const struct ev_lock_wait *w, u32 *owner)
{
	*owner = 0;
	return lock__by_caller(m, w, kind_by_words(m, w, owner), owner);
}

void lock__name(const struct model *m, enum lock_kind k, u64 addr, char *buf, size_t size)
{
	u64 at = lock__object(k, addr);
	const char *given = model__lock_name(m, at);
	const struct symbol *s = model__symbol(m, at);
	char raw[256];

	if (!given)
		given = model__lock_name(m, addr);
	if (given)
		snprintf(raw, sizeof(raw), "%s", given);
	else if (s && s->addr == at)
		snprintf(raw, sizeof(raw), "%s", s->name);
	else if (s)
		snprintf(raw, sizeof(raw), "%s+0x%llx", s->name, (unsigned long long)(at - s->addr));
	else
		snprintf(raw, sizeof(raw), "%s at 0x%llx", lock__word(k), (unsigned long long)at);
	utf8__sanitize(buf, size, raw, strlen(raw));
}

const char heap_name[] = "the heap";

const char *mapping__name(const struct mapping *map)
{
	if (!map)
		return "memory that no mapping is known of";
	if (!map->path || !*map->path || !strncmp(map->path, "[anon", 5))
		return map->prot & 0x100 ? "shared anonymous memory" : "anonymous memory";
	if (!strcmp(map->path, "[heap]"))
		return heap_name;
	if (!strncmp(map->path, "[stack", 6))
		return "the stack";
	return map->path;
}

bool function__name(const struct model *m, u64 ip, char *buf, size_t size)
{
	const struct symbol *s = ip & CODE_JIT && !(ip & CODE_JIT << 1) ? model__jit(m, ip & ~CODE_JIT)
				 : ip                                   ? model__symbol(m, ip)
									: NULL;

	if (!s || !s->name || !*s->name)
		return false;
	utf8__sanitize(buf, size, s->name, strlen(s->name));
	return true;
}

u64 code__at(const struct model *m, u64 ip, u64 ts)
{
	const struct symbol *sym = model__symbol(m, ip);
	const struct mapping *map = sym ? NULL : model__mapping(m, ip);
	u32 jit = sym ? 0 : model__jit_at(m, ip, ts);

	if (sym)
		return sym->addr;
	if (jit)
		return CODE_JIT + jit;
	return map && map->path && (map->path[0] == '/' || map->path[0] == '[') ? map->start : CODE_NO_FILE;
}

bool code__name(const struct model *m, u64 code, char *buf, size_t size)
{
	const struct mapping *map = model__mapping(m, code);
	const char *path = map && map->path ? map->path : "", *base = strrchr(path, '/');

	if (code == CODE_NO_FILE)
		return snprintf(buf, size, "code made at run time"), true;
	if (code == CODE_PROBE)
		return snprintf(buf, size, "redframe's own probes"), true;
	if (!code || function__name(m, code, buf, size))
		return code;
	base = base ? base + 1 : path;
	utf8__sanitize(buf, size, base, strlen(base));
	return *base;
}

#define KTHREADD 2u /* the parent of all threads of the kernel */

void thread__name(const struct model *m, u32 tid, char *buf, size_t size)
{
	const struct thread *t = model__find_thread(m, tid);
	const struct process *p;

	if (!t || !t->name[0])
		snprintf(buf, size, "thread %u", tid);
	else
		snprintf(buf, size, "%s", t->name);
	if (!t || t->game || !t->tgid)
		return;
	p = model__find_process(m, t->tgid);
	if (p && (p->tgid == KTHREADD || p->parent == KTHREADD))
		snprintf(buf, size, "kernel thread %s", p->name);
	else if (p && !strcmp(p->name, buf))
		snprintf(buf, size, "process %s", p->name);
	else if (p && p->name[0])
		snprintf(buf + strlen(buf), size - strlen(buf), " of process %s", p->name);
}

u64 thread__group(const struct model *m, u32 tid)
{
	const struct thread *t = tid ? model__find_thread(m, tid) : NULL;
	char stem[sizeof(t->name)];
	size_t n = 0;

	if (!t || !t->name[0])
		return tid;
	for (const char *c = t->name; *c; c++)
		if (*c < '0' || *c > '9')
			stem[n++] = *c;
	return hash_bytes(stem, n) ^ t->tgid;
}

const char *cause__phrase(enum cause c)
{
	static const char *const phrases[CAUSE_COUNT] = {
		[CAUSE_CODE] = "running code",
		[CAUSE_KERNEL] = "in the kernel",
		[CAUSE_PAGE_FAULT] = "in page faults",
		[CAUSE_LOCK_WAIT] = "waiting for a lock",
		[CAUSE_THREAD_WAIT] = "waiting for another thread",
		[CAUSE_FILE_READ] = "reading files",
		[CAUSE_FILE_WRITE] = "writing files",
		[CAUSE_FILE_META] = "opening and looking up files",
		[CAUSE_MEMORY_MAP] = "changing the memory map",
		[CAUSE_RECLAIM] = "freeing memory for the system",
		[CAUSE_CPU_WAIT] = "waiting for a CPU",
		[CAUSE_INTERRUPT] = "in interrupts",
		[CAUSE_IO_WAIT] = "waiting for I/O",
		[CAUSE_GPU_WAIT] = "waiting for the GPU",
		[CAUSE_SLEEP] = "asleep",
		[CAUSE_UNEXPLAINED] = "unexplained",
	};
	return c >= 0 && c < CAUSE_COUNT ? phrases[c] : "";
}
