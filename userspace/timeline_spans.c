/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>
#include <sys/stat.h>

#include "alloc_sites.h"
#include "syscalls.h"
#include "timeline.h"

#define PATH_ARG_NS 20000ull /* shorter calls are no frame's trouble: their paths are not kept */

static bool is_file(u32 mode)
{
	/* 0: not known; an eventfd's and the like have permission bits, but no type */
	return !mode || S_ISREG(mode) || S_ISDIR(mode) || S_ISBLK(mode) || S_ISLNK(mode);
}

static void from_fault(struct span *s, struct timeline *t, const struct model *m, const struct ev_fault *e)
{
	s->blocked = s->running = CAUSE_PAGE_FAULT;
	s->addr = e->addr;
	s->ip = s->foreign ? 0 : e->ip;
	s->flags = e->flags;
	s->what =
		intern__id(&t->names, s->foreign ? "memory of its process" : mapping__name(model__mapping(m, e->addr)));
}

static u64 *condvar_slot(struct timeline *t, u64 addr)
{
	u64 *slot = &t->condvars[hash64(addr) & (TIMELINE_CONDVARS - 1)];

	return *slot == addr || !*slot ? slot : NULL;
}

/* A condition variable is waited for on two words in turn, and only one of them is certain: it tells of the other. */
static void learn_condvar(struct span *s, struct timeline *t, u64 word)
{
	u64 at = lock__object(s->lock == LOCK_COND_OR_SEM ? LOCK_CONDVAR : s->lock, word);
	u64 *slot = condvar_slot(t, at);

	if (!slot)
		return;
	if (s->lock == LOCK_CONDVAR_ODD || s->lock == LOCK_CONDVAR)
		*slot = at;
	else if (s->lock == LOCK_COND_OR_SEM && *slot == at)
		s->lock = LOCK_CONDVAR;
}

static void from_lock_wait(struct span *s, struct timeline *t, const struct model *m, const struct ev_lock_wait *e)
{
	s->lock = lock__classify(m, e, &s->owner);
	learn_condvar(s, t, e->addr);
	s->blocked = s->running = lock__cause(s->lock);
	if (s->owner == e->hdr.tid)
		s->owner = 0;
	s->waker = e->waker;
	s->addr = e->addr;
	s->ip = s->foreign ? 0 : e->ip;
	s->ret = e->ret;
	s->flags = e->words;
}

/* FILE_READ and FILE_WRITE have the same fields */
static void from_file(struct span *s, const struct ev_file_read *e, enum cause cause)
{
	bool file = is_file(e->mode);

	s->blocked = file ? cause : CAUSE_IO_WAIT;
	s->running = file ? cause : CAUSE_KERNEL;
	s->ino = e->ino;
	s->dev = e->dev;
	s->mode = e->mode;
	s->offset = e->offset;
	s->ret = e->ret;
	s->bytes = e->ret > 0 ? e->ret : 0;
	s->cold = e->cold;
	s->sys = e->sys;
}

static void from_file_meta(struct span *s, struct timeline *t, const struct model *m, const struct ev_file_meta *e)
{
	const char *path = e->dur >= PATH_ARG_NS ? model__path_arg(m, &e->hdr) : NULL;

	s->blocked = s->running = CAUSE_FILE_META;
	s->ino = e->ino;
	s->dev = e->dev;
	s->mode = e->mode;
	s->ret = e->ret;
	s->cold = e->cold;
	s->sys = e->sys;
	s->what = path && !e->ino ? intern__id(&t->names, path) : 0;
}

static void from_file_sync(struct span *s, const struct ev_file_sync *e)
{
	s->blocked = s->running = CAUSE_FILE_WRITE;
	s->ino = e->ino;
	s->dev = e->dev;
	s->mode = e->mode;
	s->ret = e->ret;
	s->sys = e->sys;
}

static void from_mem_call(struct span *s, const struct ev_mem_call *e)
{
	s->blocked = s->running = CAUSE_MEMORY_MAP;
	s->addr = e->addr;
	s->bytes = e->len;
	s->ret = e->ret;
	s->offset = e->was;
	s->sys = e->sys;
	s->flags = e->flags;
	if (e->sys == SYS_ID_brk) /* brk: the new end is where it was asked to be */
		s->bytes = e->addr > e->was ? e->addr - e->was : e->was - e->addr;
}

static enum cause ioctl_cause(const struct ev_syscall *e)
{
	u32 type = e->arg1 >> 8 & 0xff;

	if (!S_ISCHR(e->fd_mode))
		return CAUSE_IO_WAIT;
	if (type == 'd' || type == 'F') /* DRM; NVIDIA's own driver */
		return CAUSE_GPU_WAIT;
	return type == 'N' ? CAUSE_THREAD_WAIT : CAUSE_IO_WAIT; /* ntsync */
}

static void from_syscall(struct span *s, const struct ev_syscall *e)
{
	s->blocked = e->sys == SYS_ID_ioctl ? ioctl_cause(e) : syscall__cause(e->sys);
	s->running = CAUSE_KERNEL;
	s->addr = e->arg1;
	s->offset = min(e->late, e->dur);
	s->ret = e->ret;
	s->sys = e->sys;
	s->mode = e->fd_mode;
}

static void from_interrupt(struct span *s, u32 number)
{
	s->blocked = CAUSE_NONE; /* what it interrupted may have been switched out before it returned */
	s->running = CAUSE_INTERRUPT;
	s->flags = number;
}

static bool is_foreign(const struct model *m, u32 tid)
{
	const struct thread *t = model__find_thread(m, tid);

	return t && t->tgid && !t->game;
}

bool span__from(struct span *s, struct timeline *t, const struct model *m, const struct ev_hdr *rec)
{
	/* the duration is the first field of every record that has one */
	u64 dur = ((const struct ev_irq *)rec)->dur;

	if (rec->kind < EV_FAULT || rec->kind > EV_SYSCALL)
		return false;
	memset(s, 0, sizeof(*s));
	s->kind = rec->kind;
	s->foreign = is_foreign(m, rec->tid);
	s->chain = model__chain(m, rec);
	s->end = rec->ts;
	s->start = rec->ts - min(dur, rec->ts);
	switch (rec->kind) {
	case EV_FAULT:
		from_fault(s, t, m, (const struct ev_fault *)rec);
		return true;
	case EV_LOCK_WAIT:
		from_lock_wait(s, t, m, (const struct ev_lock_wait *)rec);
		return true;
	case EV_FILE_READ:
		from_file(s, (const struct ev_file_read *)rec, CAUSE_FILE_READ);
		return true;
	case EV_FILE_WRITE:
		from_file(s, (const struct ev_file_read *)rec, CAUSE_FILE_WRITE);
		return true;
	case EV_FILE_META:
		from_file_meta(s, t, m, (const struct ev_file_meta *)rec);
		return true;
	case EV_FILE_SYNC:
		from_file_sync(s, (const struct ev_file_sync *)rec);
		return true;
	case EV_MEM_CALL:
		from_mem_call(s, (const struct ev_mem_call *)rec);
		return true;
	case EV_IRQ:
		from_interrupt(s, ((const struct ev_irq *)rec)->irq);
		return true;
	case EV_SOFTIRQ:
		from_interrupt(s, ((const struct ev_softirq *)rec)->vec);
		return true;
	case EV_RECLAIM:
		s->blocked = s->running = CAUSE_RECLAIM;
		s->bytes = min(((const struct ev_reclaim *)rec)->pages, 1ull << 40) * 4096;
		return true;
	case EV_SYSCALL:
		from_syscall(s, (const struct ev_syscall *)rec);
		if (s->sys == SYS_ID_io_uring_enter)
			uring__wait(s, t, rec->tid);
		return true;
	}
	return false;
}

static void from_alloc_sample(
	struct allocation *a, struct timeline *t, const struct model *m, const struct ev_alloc_sample *e)
{
	char where[256];

	alloc__where(m, model__chain(m, &e->hdr), is_foreign(m, e->hdr.tid) ? 0 : e->caller, e->hdr.ts, where,
		sizeof(where));
	*a = (struct allocation){
		.ts = e->hdr.ts, .sampled = alloc_sample__bytes(e), .site = intern__id(&t->names, where)};
}

bool allocation__from(struct allocation *a, struct timeline *t, const struct model *m, const struct ev_hdr *rec)
{
	const struct ev_alloc_sum *sum = (const struct ev_alloc_sum *)rec;
	const struct ev_alloc *one = (const struct ev_alloc *)rec;

	if (rec->kind == EV_ALLOC)
		*a = (struct allocation){.ts = rec->ts,
			.bytes = one->size,
			.largest = one->size,
			.caller = one->caller,
			.calls = 1,
			.chain = model__chain(m, rec)};
	else if (rec->kind == EV_ALLOC_SUM)
		*a = (struct allocation){
			.ts = rec->ts, .bytes = sum->bytes, .largest = sum->largest, .calls = sum->calls};
	else if (rec->kind == EV_ALLOC_SAMPLE)
		from_alloc_sample(a, t, m, (const struct ev_alloc_sample *)rec);
	else
		return false;
	return true;
}
