/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "describe.h"
#include "kernel_wait.h"
#include "strings.h"
#include "syscalls.h"
#include "where.h"

static const char *file_kind(u32 mode)
{
	if (S_ISFIFO(mode))
		return "a pipe";
	if (S_ISSOCK(mode))
		return "a socket";
	if (S_ISCHR(mode))
		return "a device";
	return mode && !(mode & S_IFMT) ? "an eventfd or the like" : NULL;
}

static const char *file_name(struct arena *a, const struct tree *tree, const struct model *m, const struct span *s)
{
	const char *path = intern__text(&tree->t->names, s->what);

	if (!path)
		path = model__path(m, s->dev, s->ino);
	if (path && *path)
		return arena__text(a, path);
	path = file_kind(s->mode);
	if (path || !s->ino)
		return path;
	return arena__fmt(a, "file with inode %llu", (unsigned long long)s->ino);
}

static const char *call_name(struct arena *a, u16 sys)
{
	char buf[48];

	return sys == SYS_NONE ? NULL : arena__text(a, syscall__name(sys, buf, sizeof(buf)));
}

static const char *memory_call(struct arena *a, const struct span *s)
{
	char name[48], bytes[32];

	return arena__fmt(
		a, "%s %s", syscall__name(s->sys, name, sizeof(name)), fmt__bytes(bytes, sizeof(bytes), s->bytes));
}

static const char *interrupt_name(struct arena *a, const struct span *s)
{
	static const char *const vecs[] = {"high tasklet", "timer", "network send", "network receive", "block", "poll",
		"tasklet", "scheduler", "hrtimer", "RCU"}; /* enum of include/linux/interrupt.h */

	if (s->kind == EV_IRQ)
		return s->flags == IRQ_TIMER ? "local timer" : arena__fmt(a, "irq %u", s->flags);
	return s->flags < ARRAY_SIZE(vecs) ? arena__fmt(a, "softirq: %s", vecs[s->flags]) : "softirq";
}

static const char *lock_name(struct arena *a, const struct model *m, const struct span *s)
{
	char name[300];

	if (s->lock == LOCK_MANY || s->foreign)
		return lock__word(s->lock);
	lock__name(m, s->lock, s->addr, name, sizeof(name));
	return arena__text(a, name);
}

static const char *span_name(
	struct part *p, struct arena *a, const struct tree *tree, const struct model *m, const struct span *s)
{
	switch (s->kind) {
	case EV_FAULT:
		return arena__text(a, intern__text(&tree->t->names, s->what) ?: "unknown memory");
	case EV_LOCK_WAIT:
		p->lock = s->lock;
		return lock_name(a, m, s);
	case EV_FILE_READ:
	case EV_FILE_WRITE:
	case EV_FILE_META:
	case EV_FILE_SYNC:
		return file_name(a, tree, m, s);
	case EV_MEM_CALL:
		return memory_call(a, s);
	case EV_IRQ:
	case EV_SOFTIRQ:
		return interrupt_name(a, s);
	case EV_SYSCALL:
		return call_name(a, s->sys);
	}
	return NULL;
}

const char thread_ended[] = "the thread had ended";

static const char *unexplained_reason(const struct node *n)
{
	if (n->off && n->off->flags & OFF_DEAD)
		return thread_ended;
	if (n->off && n->off->flags & OFF_LOST)
		return "off the CPU since before anything of it was recorded";
	if (n->off && n->foreign)
		return "asleep: of other processes only the scheduling is recorded";
	return n->off ? "off the CPU for no recorded reason" : "records were lost";
}

/* where in the kernel its longest piece was blocked */
static int describe_kernel(struct part *p, struct arena *a, const struct model *m, const struct node *n)
{
	char text[512] = "";

	if (n->off && n->blocked_ns)
		kernel_wait__text(m, n->off->kernel_chain, text, sizeof(text));
	if (!*text)
		return 0;
	p->kernel = arena__text(a, text);
	p->kernel_chain = n->off->kernel_chain;
	return p->kernel ? 0 : -ENOMEM;
}

int describe__code(struct part *p, struct arena *a, const struct model *m, u64 code, u32 hits, u32 samples)
{
	char name[256];

	if (!samples)
		return 0;
	if (code__name(m, code, name, sizeof(name)))
		p->what = arena__text(a, name);
	else if (hits == samples)
		return 0; /* many functions */
	if (p->what && function__name(m, code, name, sizeof(name)))
		p->where = p->what;
	p->share = hits * 100 / samples;
	p->detail = arena__fmt(a, "%u of %u samples", hits, samples);
	return p->detail ? 0 : -ENOMEM;
}

static const char *cgroup_of(struct arena *a, const struct model *m, u32 tid)
{
	const struct thread *t = model__find_thread(m, tid);
	const struct process *p = t ? model__find_process(m, t->tgid) : NULL;

	return p && p->cgroup ? arena__text(a, p->cgroup) : NULL;
}

static int describe_cpu_wait(struct part *p, struct arena *a, const struct model *m, const struct node *n)
{
	char idle[32], latency[32];

	if (!n->off) {
		p->what = "the hypervisor or firmware";
		p->detail = "no timer tick came";
		return 0;
	}
	p->what = p->who;
	p->who_cgroup = cgroup_of(a, m, p->who_tid);
	if (p->who_prio && p->who_prio < 100)
		p->detail = arena__fmt(a, "it has real-time priority %d", 99 - p->who_prio);
	else if (n->idle_elsewhere_ns > n->ns / 10)
		p->detail = arena__fmt(
			a, "another CPU was idle for %s of it", fmt__ns(idle, sizeof(idle), n->idle_elsewhere_ns));
	else if (n->latency_ns > n->ns / 10)
		p->detail = arena__fmt(
			a, "%s of it until its CPU took it up", fmt__ns(latency, sizeof(latency), n->latency_ns));
	return 0;
}

/* those beside the first that are worth counting */
static u32 others(const struct tally *t)
{
	u64 most, n = 0;

	tally__top(t, &most);
	for (int i = 0; i < TALLY; i++)
		n += t->n[i] && t->n[i] >= most / 4;
	return n ? n - 1 : 0;
}

static int describe_who(struct part *p, struct arena *a, const struct model *m, const struct node *n)
{
	u64 top = tally__top(&n->who, NULL);
	char name[160];

	p->who_tid = (u32)top;
	p->who_prio = (u8)(top >> 32);
	if (!p->who_tid)
		return 0;
	p->who_others = others(&n->who);
	if (n->reborn)
		snprintf(name, sizeof(name), "thread %u", p->who_tid);
	else
		thread__name(m, p->who_tid, name, sizeof(name));
	p->who = arena__text(a, name);
	p->through_tid = (u32)tally__top(&n->via, NULL);
	if (p->through_tid) {
		thread__name(m, p->through_tid, name, sizeof(name));
		p->through = arena__text(a, name);
	}
	return p->who && (p->through || !p->through_tid) ? 0 : -ENOMEM;
}

static int describe_span(
	struct part *p, struct arena *a, const struct tree *tree, const struct model *m, const struct node *n)
{
	const struct span *s = n->span;
	char name[256];

	p->what = s ? span_name(p, a, tree, m, s) : n->off ? call_name(a, n->off->sys) : NULL;
	p->sys = s ? s->sys : n->off ? n->off->sys : SYS_NONE;
	p->kind = s ? s->kind : 0;
	if (s && s->kind == EV_FAULT && function__name(m, s->ip, name, sizeof(name)))
		p->where = arena__text(a, name);
	if (where__fill(p, a, m, n->chain))
		return -ENOMEM;
	if (n->from < n->to) {
		p->from = n->from;
		p->to = n->to;
	}
	if (n->late_ns > n->ns / 10)
		p->detail = arena__fmt(
			a, "%s longer than it asked: the timer came late", fmt__ns(name, sizeof(name), n->late_ns));
	if (p->cycle)
		p->detail = "a cycle of waits, as in a deadlock";
	return 0;
}

int describe__node(
	struct part *p, struct arena *a, const struct tree *tree, const struct model *m, const struct node *n)
{
	int err = describe_who(p, a, m, n);

	if (err)
		return err;
	if (n->cause == CAUSE_CPU_WAIT)
		return describe_cpu_wait(p, a, m, n);
	err = describe_kernel(p, a, m, n);
	if (err || n->cause != CAUSE_UNEXPLAINED)
		return err ? err : describe_span(p, a, tree, m, n);
	p->detail = p->kernel ? arena__fmt(a, "blocked in %s", p->kernel) : unexplained_reason(n);
	return p->detail ? 0 : -ENOMEM;
}
