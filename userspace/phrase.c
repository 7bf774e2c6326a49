/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#include "describe.h"
#include "names.h"
#include "phrase.h"
#include "syscalls.h"

void phrase__ns(struct str *s, u64 ns)
{
	char buf[32];

	str__add(s, fmt__ns(buf, sizeof(buf), ns));
}

void phrase__bytes(struct str *s, u64 bytes)
{
	char buf[32];

	str__add(s, fmt__bytes(buf, sizeof(buf), bytes));
}

static void add_count(struct str *s, u64 n, const char *one, const char *many)
{
	str__fmt(s, "%llu %s", (unsigned long long)n, n == 1 ? one : many);
}

/* how much of a thread's code is in the one function that is told */
#define ALL_PERCENT  90
#define MOST_PERCENT 50

static void say_code(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	const char *was = f == ING ? "" : "was ";

	if (!p->what)
		str__fmt(s, "%srunning code", was);
	else if (p->share >= ALL_PERCENT)
		str__fmt(s, "%s%s %s", was, f == ING ? "in" : "running", p->what);
	else
		str__fmt(s, "%srunning code, %s %s", was, p->share >= MOST_PERCENT ? "mostly" : "the most in", p->what);
	if (p->what && with_figures && p->detail)
		str__fmt(s, " (%s)", p->detail);
}

static void add_where(struct str *s, const struct part *p, bool with_figures)
{
	if (p->where && with_figures)
		str__fmt(s, " in %s", p->where);
}

static void say_kernel(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	str__add(s, f == ING ? "in the kernel" : "was in the kernel");
	if (p->what)
		str__fmt(s, " (%s)", p->what);
}

static void say_fault(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	str__add(s, f == ING ? "in " : "took ");
	if (with_figures && p->count)
		str__fmt(s, "%u ", p->count);
	str__add(s, p->count == 1 && with_figures ? "page fault" : "page faults");
	if (p->what)
		str__fmt(s, " on %s", p->what);
	if (with_figures && p->major)
		str__fmt(s, " (%u from disk)", p->major);
	else if (with_figures && p->huge)
		str__fmt(s, " (%u of 2 MiB)", p->huge);
	else if (with_figures && p->copied)
		str__fmt(s, " (%u copied a page)", p->copied);
	if (p->who)
		str__fmt(s, " while %s held the address space", p->who);
	if (p->where)
		str__fmt(s, " in %s", p->where);
}

static void add_others(struct str *s, const struct part *p)
{
	if (p->who_others)
		str__fmt(s, " and %s%u other%s", p->who_others == TALLY - 1 ? "at least " : "", p->who_others,
			p->who_others == 1 ? "" : "s");
}

static void say_lock(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	bool bare = p->what && strstr(p->what, " at 0x");

	str__add(s, f == ING ? "waiting" : "waited");
	add_where(s, p, with_figures);
	str__add(s, " for ");
	if (p->kind != EV_LOCK_WAIT)
		str__fmt(s, "a lock in %s", p->what ? p->what : "the kernel"); /* no record of it but the system call */
	else if (p->what && !bare)
		str__fmt(s, "%s %s", lock__word(p->lock), p->what);
	else
		str__add(s, p->what && with_figures ? p->what : "a lock");
	if (p->who)
		str__fmt(s, " held by %s", p->who);
	if (with_figures)
		add_others(s, p);
}

static void say_thread(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	bool bare = !p->what || strstr(p->what, " at 0x");

	str__add(s, f == ING ? "waiting" : "waited");
	add_where(s, p, with_figures);
	str__add(s, " for ");
	if (p->who)
		str__add(s, p->who);
	else
		str__fmt(s, "a signal");
	if (with_figures)
		add_others(s, p);
	if (p->kind == EV_LOCK_WAIT && p->lock == LOCK_JOIN)
		str__add(s, " to end");
	else if (p->what && p->kind == EV_LOCK_WAIT && !bare)
		str__fmt(s, " at %s %s", lock__word(p->lock), p->what);
	else if (p->what && p->kind != EV_LOCK_WAIT)
		str__fmt(s, " in %s", p->what);
	else if (p->what && !p->who)
		str__fmt(s, " at a %s", lock__word(p->lock));
}

static void say_read(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	str__fmt(s, "%s %s", f == ING ? "reading" : "read", p->what ? p->what : "files");
	if (!with_figures)
		return;
	str__add(s, p->cold_bytes ? " from disk (" : " (");
	add_count(s, p->count, "read", "reads");
	str__add(s, ", ");
	phrase__bytes(s, p->cold_bytes ? p->cold_bytes : p->bytes);
	if (p->sys == SYS_ID_io_uring_enter) /* whether it came from disk is not known */
		str__add(s, " through io_uring)");
	else
		str__add(s, p->cold_bytes ? " cold)" : ", all cached)");
	add_where(s, p, with_figures);
}

static void say_write(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	bool sync = p->kind == EV_FILE_SYNC;

	str__fmt(s, "%s %s", f == ING ? (sync ? "flushing" : "writing") : (sync ? "flushed" : "wrote"),
		p->what ? p->what : "files");
	if (!with_figures)
		return;
	str__add(s, " (");
	add_count(s, p->count, sync ? "call" : "write", sync ? "calls" : "writes");
	if (p->bytes) {
		str__add(s, ", ");
		phrase__bytes(s, p->bytes);
	}
	str__add(s, ")");
	add_where(s, p, with_figures);
}

static void say_call(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	char name[48];

	str__fmt(s, "%s %s", f == ING ? "in" : "was in", p->sys ? syscall__name(p->sys, name, sizeof(name)) : "a call");
	if (p->what && p->kind != EV_SYSCALL && p->kind)
		str__fmt(s, " of %s", p->what);
	if (with_figures && p->count > 1)
		str__fmt(s, " (%u calls)", p->count);
	if (p->who)
		str__fmt(s, " while %s held the address space", p->who);
	add_where(s, p, with_figures);
}

static void say_memory(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	char name[48];

	str__add(s, f == ING ? "in " : "was in ");
	if (with_figures && p->what)
		str__add(s, p->what);
	else
		str__add(s, p->sys ? syscall__name(p->sys, name, sizeof(name)) : "memory calls");
	if (with_figures && p->count > 1)
		str__fmt(s, " (%u calls)", p->count);
	if (p->who)
		str__fmt(s, " while %s held the address space", p->who);
	add_where(s, p, with_figures);
}

static void say_reclaim(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	str__add(s, f == ING ? "freeing memory for the system" : "freed memory for the system");
	if (with_figures && p->bytes) {
		str__add(s, " (");
		phrase__bytes(s, p->bytes);
		str__add(s, ")");
	}
}

static void say_cpu_wait(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	str__fmt(s, "%s a CPU", f == ING ? "waiting for" : "waited for");
	if (p->who || p->what) {
		str__fmt(s, " that %s", p->who ?: p->what);
		if (with_figures)
			add_others(s, p);
		str__add(s, " had");
	}
	if (with_figures && p->detail)
		str__fmt(s, " (%s)", p->detail);
}

static void say_interrupt(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	str__add(s, f == ING ? "in interrupts" : "was interrupted");
	if (p->what)
		str__fmt(s, " (%s)", p->what);
}

static void say_io(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	str__add(s, f == ING ? "waiting" : "waited");
	if (p->who)
		str__fmt(s, " for %s", p->who);
	if (p->through)
		str__fmt(s, " through %s", p->through);
	else if (p->what)
		str__fmt(s, " %s %s", p->kind == EV_SYSCALL || !p->kind ? "in" : "on", p->what);
	else if (!p->who)
		str__add(s, " for I/O");
	add_where(s, p, with_figures);
}

static void say_gpu(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	str__add(s, f == ING ? "waiting for the GPU" : "waited for the GPU");
	add_where(s, p, with_figures);
}

static void say_sleep(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	str__add(s, f == ING ? "asleep" : "slept");
	if (p->what)
		str__fmt(s, " in %s", p->what);
	add_where(s, p, with_figures);
	if (with_figures && p->detail)
		str__fmt(s, " (%s)", p->detail);
}

static void say_unexplained(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	if (p->detail == thread_ended && f == PAST) {
		str__add(s, "had ended");
		return;
	}
	str__add(s, f == ING ? "unexplained" : "did what is not explained");
	if (p->detail)
		str__fmt(s, " (%s)", p->detail);
}

static void (*const say[CAUSE_COUNT])(struct str *s, const struct part *p, enum form f, bool with_figures) = {
	[CAUSE_CODE] = say_code,
	[CAUSE_KERNEL] = say_kernel,
	[CAUSE_PAGE_FAULT] = say_fault,
	[CAUSE_LOCK_WAIT] = say_lock,
	[CAUSE_THREAD_WAIT] = say_thread,
	[CAUSE_FILE_READ] = say_read,
	[CAUSE_FILE_WRITE] = say_write,
	[CAUSE_FILE_META] = say_call,
	[CAUSE_MEMORY_MAP] = say_memory,
	[CAUSE_RECLAIM] = say_reclaim,
	[CAUSE_CPU_WAIT] = say_cpu_wait,
	[CAUSE_INTERRUPT] = say_interrupt,
	[CAUSE_IO_WAIT] = say_io,
	[CAUSE_GPU_WAIT] = say_gpu,
	[CAUSE_SLEEP] = say_sleep,
	[CAUSE_UNEXPLAINED] = say_unexplained,
};

void phrase__say(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	say[p->cause](s, p, f, with_figures);
}
