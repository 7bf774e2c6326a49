/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#include "describe.h"
#include "events_desc.h"
#include "intern.h"
#include "names.h"
#include "sentence.h"
#include "syscalls.h"

#define CHAIN_SHARE  4  /* a reason is told if it is at least 1/4 of what it explains */
#define SECOND_SHARE 10 /* a second cause, if at least 1/10 of the whole excess */
#define REST_SHARE   10
#define WORTH_NS     300000 /* less is not worth a word */

enum form { ING, PAST }; /* "reading x", "read x" */

static void add_ns(struct str *s, u64 ns)
{
	char buf[32];

	str__add(s, fmt__ns(buf, sizeof(buf), ns));
}

static void add_bytes(struct str *s, u64 bytes)
{
	char buf[32];

	str__add(s, fmt__bytes(buf, sizeof(buf), bytes));
}

static void add_count(struct str *s, u64 n, const char *one, const char *many)
{
	str__fmt(s, "%llu %s", (unsigned long long)n, n == 1 ? one : many);
}

/* ---- one phrase per cause; with_figures: counts and bytes, which differ from hitch to hitch ---- */

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
		str__fmt(s, " and %u other%s", p->who_others, p->who_others == 1 ? "" : "s");
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
	add_bytes(s, p->cold_bytes ? p->cold_bytes : p->bytes);
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
		add_bytes(s, p->bytes);
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
		add_bytes(s, p->bytes);
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

typedef void (*say_fn)(struct str *s, const struct part *p, enum form f, bool with_figures);
static const say_fn say[CAUSE_COUNT] = {
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

/* ---- what is told: one thing, or all code of a thread, whatever the functions ---- */

static u64 over(const struct part *p)
{
	return p->excess_ns > 0 ? p->excess_ns : 0;
}

struct told {
	const struct part *p; /* of code the function with most; NULL: nothing */
	u64 over, ns;
};

/* Of rows by excess, largest first: the k-th in that order, when all code counts as one. */
static struct told kth(const struct part *rows, u32 n, u32 k)
{
	struct told code = {}, one = {};

	for (u32 i = 0; i < n; i++) {
		if (rows[i].cause != CAUSE_CODE)
			continue;
		code.p = code.p ?: &rows[i];
		code.over += over(&rows[i]);
		code.ns += rows[i].ns;
	}
	for (u32 i = 0; i < n; i++) {
		if (rows[i].cause == CAUSE_CODE)
			continue;
		if (code.p && code.over >= over(&rows[i]) && !k--)
			return code;
		if (code.p && code.over >= over(&rows[i]))
			code.p = NULL;
		one = (struct told){&rows[i], over(&rows[i]), rows[i].ns};
		if (!k--)
			return one;
	}
	return code.p && !k ? code : (struct told){};
}

/* ---- along the chain ---- */

/* What accounts for a wait; p is NULL where nothing does for enough of it. */
static struct told reason(struct told t)
{
	struct told b = kth(t.p->because, t.p->n_because, 0);

	return b.p && b.over && b.over >= t.over / CHAIN_SHARE ? b : (struct told){};
}

static struct told of_part(const struct part *p)
{
	return (struct told){p, over(p), p->ns};
}

const struct part *sentence__lead(const struct verdict *v, s64 *excess_ns)
{
	struct told t = kth(v->parts, v->n_parts, 0);

	if (excess_ns)
		*excess_ns = t.over;
	return t.p;
}

const struct part *sentence__root(const struct part *p)
{
	for (struct told b = reason(of_part(p)); b.p; b = reason(b))
		p = b.p;
	return p;
}

static bool nearly(u64 a, u64 b)
{
	u64 d = a > b ? a - b : b - a;

	return d <= max(a, b) / 10;
}

/* A time is told again where it is another than the last one told. */
static void add_chain(struct str *s, struct told t)
{
	u64 last = t.over;

	for (struct told b = reason(t); b.p; t = b, b = reason(b)) {
		if (nearly(b.over, last)) {
			str__add(s, ", which ");
			say[b.p->cause](s, b.p, PAST, true);
		} else {
			str__add(s, ", which spent ");
			last = b.over;
			add_ns(s, last);
			str__add(s, " ");
			say[b.p->cause](s, b.p, ING, true);
		}
	}
	if (t.p->cycle)
		str__fmt(s, ": %s", t.p->detail);
}

/* Many allocations are told with the code that made them. */
static void add_allocations(struct str *s, const struct verdict *v, const struct part *p)
{
	if (p->cause != CAUSE_CODE && p->cause != CAUSE_PAGE_FAULT && p->cause != CAUSE_MEMORY_MAP)
		return;
	if (v->allocs < 1000 || v->allocs < 4 * v->typical_allocs)
		return;
	str__fmt(s, ", with %llu allocations of ", (unsigned long long)v->allocs);
	add_bytes(s, v->alloc_bytes);
	if (v->alloc_where) {
		str__add(s, ", the largest ");
		add_bytes(s, v->alloc_largest);
		str__fmt(s, " in %s", v->alloc_where);
	}
}

static void add_cause(struct str *s, const struct verdict *v, struct told t)
{
	u64 typical = t.ns - min(t.over, t.ns);

	add_ns(s, t.over);
	if (typical > t.ns / 10 && typical > WORTH_NS)
		str__add(s, v->warm_up ? " over the budget" : " more than usual");
	str__add(s, " ");
	say[t.p->cause](s, t.p, ING, true);
	add_chain(s, t);
	add_allocations(s, v, t.p);
}

static u64 total_excess(const struct verdict *v)
{
	u64 sum = 0;

	for (u32 i = 0; i < v->n_parts; i++)
		sum += over(&v->parts[i]);
	return sum;
}

static void add_rest(struct str *s, const struct verdict *v, u32 told, u64 rest, u64 total)
{
	struct told next = kth(v->parts, v->n_parts, told);
	u32 n = 0;

	for (u32 k = told; kth(v->parts, v->n_parts, k).over; k++)
		n++;
	if (!n || rest < total / REST_SHARE || rest < WORTH_NS)
		return;
	str__add(s, "; the rest, ");
	add_ns(s, rest);
	if (n == 1) {
		str__add(s, ", ");
		say[next.p->cause](s, next.p, ING, false);
	} else {
		str__fmt(s, ", in %u other ways", n);
	}
}

static void add_lost(struct str *s, const struct verdict *v)
{
	bool first = true;

	str__fmt(s, "unsure, %llu record%s lost", (unsigned long long)v->frame.lost,
		v->frame.lost == 1 ? " was" : "s were");
	for (int c = 0; c < CLASS_COUNT; c++) {
		if (!v->frame.lost_class[c])
			continue;
		str__fmt(s, "%s%s %llu", first ? " (" : ", ", class_names[c],
			(unsigned long long)v->frame.lost_class[c]);
		first = false;
	}
	str__add(s, first ? ": " : "): ");
}

/* Nothing is beyond the usual: the usual is beyond the budget. */
static void add_usual(struct str *s, const struct verdict *v)
{
	const struct part *largest = NULL;

	for (u32 i = 0; i < v->n_parts; i++)
		if (!largest || v->parts[i].ns > largest->ns)
			largest = &v->parts[i];
	str__add(s, "no more than usual");
	if (!largest)
		return;
	str__add(s, ": ");
	add_ns(s, largest->ns);
	str__add(s, " ");
	say[largest->cause](s, largest, ING, true);
}

void sentence__write(struct str *s, const struct verdict *v)
{
	u64 total = total_excess(v), rest = total;
	u32 told = 0;

	if (v->frame.lost)
		add_lost(s, v);
	else if (v->forgotten)
		str__add(s, "unsure, the frame was too long to keep all that happened in it: ");
	while (told < 2) {
		struct told t = kth(v->parts, v->n_parts, told);

		if (!t.over || (told && (t.over < total / SECOND_SHARE || t.over < WORTH_NS)))
			break;
		str__add(s, told ? "; " : "");
		add_cause(s, v, t);
		rest -= t.over;
		told++;
	}
	if (told)
		add_rest(s, v, told, rest, total);
	else
		add_usual(s, v);
	if (v->warm_up)
		str__add(s, " (one of the first frames: compared with the budget)");
}

void sentence__pattern(struct str *s, const struct part *p)
{
	say[p->cause](s, p, ING, false);
	for (struct told b = reason(of_part(p)); b.p; b = reason(b)) {
		str__add(s, ", which ");
		say[b.p->cause](s, b.p, PAST, false);
	}
}

u64 sentence__fingerprint(const struct part *p)
{
	u64 h = 0;

	for (struct told t = of_part(p); t.p; t = reason(t)) {
		const char *bare = t.p->what ? strstr(t.p->what, " at 0x") : NULL;

		h = hash64(h ^ (u64)t.p->cause);
		if (t.p->what && t.p->cause != CAUSE_MEMORY_MAP && t.p->cause != CAUSE_INTERRUPT && !bare)
			h = hash64(h ^ hash_bytes(t.p->what, strlen(t.p->what)));
		if (t.p->who)
			h = hash64(h ^ hash_bytes(t.p->who, strlen(t.p->who)));
	}
	return h;
}
