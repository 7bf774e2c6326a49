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

static void say_code(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	if (!p->what) {
		str__add(s, f == ING ? "running code" : "was running code");
		return;
	}
	str__fmt(s, "%s %s", f == ING ? "running code, mostly" : "was running code, mostly", p->what);
	if (with_figures && p->detail)
		str__fmt(s, " (%s)", p->detail);
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

	str__fmt(s, "%s ", f == ING ? "waiting for" : "waited for");
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

	str__fmt(s, "%s ", f == ING ? "waiting for" : "waited for");
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
	str__add(s, p->cold_bytes ? " cold)" : ", all cached)");
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
	if (p->who || p->what)
		str__fmt(s, " that %s had", p->who ?: p->what);
	if (with_figures)
		add_others(s, p);
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
	if (p->what)
		str__fmt(s, " %s %s", p->kind == EV_SYSCALL || !p->kind ? "in" : "on", p->what);
	else if (!p->who)
		str__add(s, " for I/O");
}

static void say_gpu(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	str__add(s, f == ING ? "waiting for the GPU" : "waited for the GPU");
}

static void say_sleep(struct str *s, const struct part *p, enum form f, bool with_figures)
{
	str__add(s, f == ING ? "asleep" : "slept");
	if (p->what)
		str__fmt(s, " in %s", p->what);
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

/* ---- along the chain ---- */

static u64 over(const struct part *p)
{
	return p->excess_ns > 0 ? p->excess_ns : 0;
}

/* What accounts for a wait; NULL where nothing does for enough of it. */
static const struct part *reason(const struct part *p)
{
	const struct part *b = p->n_because ? &p->because[0] : NULL; /* by excess, largest first */

	return b && over(b) && over(b) >= over(p) / CHAIN_SHARE ? b : NULL;
}

const struct part *sentence__root(const struct part *p)
{
	for (const struct part *b = reason(p); b; b = reason(p))
		p = b;
	return p;
}

static bool nearly(u64 a, u64 b)
{
	u64 d = a > b ? a - b : b - a;

	return d <= max(a, b) / 10;
}

/* A time is told again where it is another than the last one told. */
static void add_chain(struct str *s, const struct part *p)
{
	u64 told = over(p);

	for (const struct part *b = reason(p); b; p = b, b = reason(b)) {
		if (nearly(over(b), told)) {
			str__add(s, ", which ");
			say[b->cause](s, b, PAST, true);
		} else {
			str__add(s, ", which spent ");
			told = over(b);
			add_ns(s, told);
			str__add(s, " ");
			say[b->cause](s, b, ING, true);
		}
	}
	if (p->cycle)
		str__fmt(s, ": %s", p->detail);
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

static void add_cause(struct str *s, const struct verdict *v, const struct part *p)
{
	u64 typical = p->ns - min(over(p), p->ns);

	add_ns(s, over(p));
	if (typical > p->ns / 10 && typical > WORTH_NS)
		str__add(s, v->warm_up ? " over the budget" : " more than usual");
	str__add(s, " ");
	say[p->cause](s, p, ING, true);
	add_chain(s, p);
	add_allocations(s, v, p);
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
	u32 n = 0;

	for (u32 i = told; i < v->n_parts; i++)
		n += over(&v->parts[i]) > 0;
	if (!n || rest < total / REST_SHARE || rest < WORTH_NS)
		return;
	str__add(s, "; the rest, ");
	add_ns(s, rest);
	if (n == 1) {
		str__add(s, ", ");
		say[v->parts[told].cause](s, &v->parts[told], ING, false);
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
	while (told < v->n_parts && told < 2) {
		u64 ns = over(&v->parts[told]);

		if (!ns || (told && (ns < total / SECOND_SHARE || ns < WORTH_NS)))
			break;
		str__add(s, told ? "; " : "");
		add_cause(s, v, &v->parts[told]);
		rest -= ns;
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
	const struct part *b;

	say[p->cause](s, p, ING, false);
	for (b = reason(p); b; b = reason(b)) {
		str__add(s, ", which ");
		say[b->cause](s, b, PAST, false);
	}
}

u64 sentence__fingerprint(const struct part *p)
{
	u64 h = 0;

	for (; p; p = reason(p)) {
		const char *bare = p->what ? strstr(p->what, " at 0x") : NULL;

		h = hash64(h ^ (u64)p->cause);
		if (p->what && p->cause != CAUSE_MEMORY_MAP && p->cause != CAUSE_INTERRUPT && !bare)
			h = hash64(h ^ hash_bytes(p->what, strlen(p->what)));
		if (p->who)
			h = hash64(h ^ hash_bytes(p->who, strlen(p->who)));
	}
	return h;
}
