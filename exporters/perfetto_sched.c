// SPDX-License-Identifier: GPL-2.0-only
/*
 * Switches and wakeups as compact bundles: arrays per CPU, one packet for up to SCHED_BATCH of each.
 *
 * The importer takes the thread that leaves, and the one that wakes, from the switch before. So what has none before it
 * (the first on a CPU, the first after a loss) goes out as an event of its own, which names both.
 */
#include "perfetto.h"
#include "strings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* include/linux/sched.h */
enum task_state {
	STATE_UNINTERRUPTIBLE = 0x2,
	STATE_REPORT = 0x7f, /* interruptible … parked, with exit_state's two */
	STATE_NOLOAD = 0x400,
	STATE_RTLOCK_WAIT = 0x1000, /* v5.15 5f220be21418 */
	STATE_FROZEN = 0x8000,      /* v6.1 f5d39b020809 */
	STATE_IDLE = STATE_UNINTERRUPTIBLE | STATE_NOLOAD,
	REPORT_IDLE = 0x80,
	REPORT_PREEMPTED = 0x100,
};

u32 sched__prev_state(u16 raw, bool preempt)
{
	u32 state = raw & STATE_REPORT;

	if (preempt)
		return REPORT_PREEMPTED; /* whatever it was about to do: it goes on */
	if ((raw & STATE_IDLE) == STATE_IDLE)
		return REPORT_IDLE;
	if (raw & (STATE_RTLOCK_WAIT | STATE_FROZEN))
		return STATE_UNINTERRUPTIBLE;
	return state ? 1u << (31 - __builtin_clz(state)) : 0; /* the highest one counts */
}

static const char *comm_of(const struct model *m, u32 tid)
{
	const struct thread *t = tid ? model__find_thread(m, tid) : NULL;

	return tid ? t ? t->name : "" : "swapper";
}

struct ftrace_mark ftrace__begin(struct perfetto *p, const struct ev_hdr *h, u64 ts, u32 tid, int flags, u32 field)
{
	struct pb *b = perfetto__packet_begin(p, 0);
	struct ftrace_mark m;

	m.bundle = pb__begin(b, PACKET_FTRACE_EVENTS);
	pb__uint(b, BUNDLE_CPU, h->cpu);
	m.event = pb__begin(b, BUNDLE_EVENT);
	pb__uint(b, FTRACE_TIMESTAMP, ts);
	pb__uint(b, FTRACE_PID, tid);
	if (flags != FLAGS_UNKNOWN)
		pb__uint(b, FTRACE_COMMON_FLAGS, (u32)flags);
	m.body = pb__begin(b, field);
	return m;
}

void ftrace__end(struct perfetto *p, struct ftrace_mark m)
{
	pb__end(p->pb, m.body);
	pb__end(p->pb, m.event);
	pb__end(p->pb, m.bundle);
	perfetto__packet_end(p);
}

enum column { COL_DELTA, COL_TID, COL_STATE, COL_COMM, COL_PRIO, COL_FLAGS };

static u64 cell(const struct sched_entry *e, enum column c)
{
	switch (c) {
	case COL_DELTA:
		return e->delta;
	case COL_TID:
		return e->tid;
	case COL_STATE:
		return e->state;
	case COL_COMM:
		return e->comm;
	case COL_PRIO:
		return e->prio;
	case COL_FLAGS:
		return e->flags;
	}
	return 0;
}

static void put_column(struct pb *b, u32 field, const struct sched_entry *e, u32 n, enum column c)
{
	size_t mark;

	if (!n)
		return;
	mark = pb__begin(b, field);
	for (u32 i = 0; i < n; i++)
		pb__varint(b, cell(&e[i], c));
	pb__end(b, mark);
}

static void put_compact(struct pb *b, const struct sched_cpu *c)
{
	size_t mark = pb__begin(b, BUNDLE_COMPACT);

	put_column(b, COMPACT_SWITCH_TS, c->sw, c->n_switch, COL_DELTA);
	put_column(b, COMPACT_SWITCH_PREV_STATE, c->sw, c->n_switch, COL_STATE);
	put_column(b, COMPACT_SWITCH_NEXT_PID, c->sw, c->n_switch, COL_TID);
	put_column(b, COMPACT_SWITCH_NEXT_PRIO, c->sw, c->n_switch, COL_PRIO);
	put_column(b, COMPACT_SWITCH_NEXT_COMM, c->sw, c->n_switch, COL_COMM);
	put_column(b, COMPACT_WAKING_TS, c->wk, c->n_waking, COL_DELTA);
	put_column(b, COMPACT_WAKING_PID, c->wk, c->n_waking, COL_TID);
	put_column(b, COMPACT_WAKING_CPU, c->wk, c->n_waking, COL_STATE);
	put_column(b, COMPACT_WAKING_PRIO, c->wk, c->n_waking, COL_PRIO);
	put_column(b, COMPACT_WAKING_COMM, c->wk, c->n_waking, COL_COMM);
	put_column(b, COMPACT_WAKING_FLAGS, c->wk, c->n_waking, COL_FLAGS);
	for (u32 i = 0; i < c->n_comms; i++)
		pb__str(b, COMPACT_COMMS, c->comms + c->comm_at[i]);
	pb__end(b, mark);
}

static void flush_cpu(struct perfetto *p, struct sched_cpu *c, u16 cpu)
{
	struct pb *b;
	size_t mark;

	if (!c->n_switch && !c->n_waking)
		return;
	b = perfetto__packet_begin(p, 0);
	mark = pb__begin(b, PACKET_FTRACE_EVENTS);
	pb__uint(b, BUNDLE_CPU, cpu);
	put_compact(b, c);
	pb__end(b, mark);
	perfetto__packet_end(p);
	c->n_switch = c->n_waking = c->n_comms = c->comm_used = 0;
	c->switch_ts = c->waking_ts = 0;
	memset(c->cache, 0, sizeof(c->cache));
}

static struct sched_cpu *cpu_of(struct perfetto *p, u16 cpu)
{
	if (!p->cpus)
		p->cpus = calloc(SCHED_CPUS, sizeof(*p->cpus));
	if (p->cpus && !p->cpus[cpu])
		p->cpus[cpu] = calloc(1, sizeof(**p->cpus));
	if (!p->cpus || !p->cpus[cpu]) {
		p->error = -ENOMEM;
		return NULL;
	}
	return p->cpus[cpu];
}

static u16 find_comm(const struct sched_cpu *c, const char *name)
{
	u16 i = 0;

	while (i < c->n_comms && strcmp(c->comms + c->comm_at[i], name))
		i++;
	return i;
}

/* The index of a thread's name in this bundle. Callers leave room for two of them: see full(). */
static u16 comm_index(struct perfetto *p, const struct model *m, struct sched_cpu *c, u32 tid, u64 ts)
{
	struct comm_slot *slot = &c->cache[tid % SCHED_CACHE];
	const char *name;
	size_t n;

	if (slot->gen == p->names_gen && slot->tid == tid)
		return slot->comm;
	if (tid)
		tasks__announce(p, m, tid, ts);
	name = comm_of(m, tid);
	*slot = (struct comm_slot){.tid = tid, .gen = p->names_gen, .comm = find_comm(c, name)};
	if (slot->comm < c->n_comms)
		return slot->comm;
	n = strlen(name) + 1;
	memcpy(c->comms + c->comm_used, name, n);
	c->comm_at[c->n_comms++] = c->comm_used;
	c->comm_used += (u16)n;
	return slot->comm;
}

static bool full(const struct sched_cpu *c)
{
	return c->n_switch == SCHED_BATCH || c->n_waking == SCHED_BATCH ||
	       SCHED_COMMS - c->comm_used < (int)sizeof(((struct thread *)0)->name) ||
	       c->n_comms == ARRAY_SIZE(c->comm_at);
}

static void plain_switch(struct perfetto *p, const struct model *m, const struct ev_switch *ev, u32 state)
{
	struct ftrace_mark f;

	tasks__announce(p, m, ev->hdr.tid, ev->hdr.ts);
	tasks__announce(p, m, ev->next_tid, ev->hdr.ts);
	f = ftrace__begin(p, &ev->hdr, ev->hdr.ts, ev->hdr.tid, FLAGS_UNKNOWN, FTRACE_SWITCH);
	pb__str(p->pb, SWITCH_PREV_COMM, comm_of(m, ev->hdr.tid));
	pb__uint(p->pb, SWITCH_PREV_PID, ev->hdr.tid);
	pb__uint(p->pb, SWITCH_PREV_PRIO, ev->prev_prio);
	pb__uint(p->pb, SWITCH_PREV_STATE, state);
	pb__str(p->pb, SWITCH_NEXT_COMM, comm_of(m, ev->next_tid));
	pb__uint(p->pb, SWITCH_NEXT_PID, ev->next_tid);
	pb__uint(p->pb, SWITCH_NEXT_PRIO, ev->next_prio);
	ftrace__end(p, f);
}

/* The thread that ran here left without a record (lost, or hidden: some kernels do not show some threads). The importer
 * takes a break in the chain for an error in the trace: so the thread leaves at the last moment possible, asleep as far
 * as anyone can tell, and the gap is counted and said. */
static void mend_gap(struct perfetto *p, const struct model *m, const struct ev_switch *ev, u32 running, u64 last_ts)
{
	const struct ev_switch left = {
		/* a ns earlier: of the same ts the importer may put the other switch first */
		.hdr = {.ts = ev->hdr.ts - (ev->hdr.ts > last_ts),
			.tid = running,
			.cpu = ev->hdr.cpu,
			.kind = EV_SWITCH},
		.next_tid = ev->hdr.tid,
		.next_prio = ev->prev_prio,
		.prev_prio = ev->prev_prio,
	};

	p->gaps++;
	plain_switch(p, m, &left, 1 /* TASK_INTERRUPTIBLE */);
}

void sched__switch(struct perfetto *p, const struct model *m, const struct ev_switch *ev)
{
	struct sched_cpu *c = cpu_of(p, ev->hdr.cpu);
	u32 state = sched__prev_state(ev->prev_state, ev->flags & SWITCH_PREEMPT);
	u64 ts = ev->hdr.ts;
	u16 comm;

	if (c && c->known && c->running != ev->hdr.tid)
		mend_gap(p, m, ev, c->running, c->last_ts);
	if (!c || !c->known) {
		plain_switch(p, m, ev, state);
	} else {
		if (full(c) || ts < c->switch_ts)
			flush_cpu(p, c, ev->hdr.cpu);
		comm = comm_index(p, m, c, ev->next_tid, ts);
		c->sw[c->n_switch++] = (struct sched_entry){.delta = ts - c->switch_ts,
			.tid = ev->next_tid,
			.state = (u16)state,
			.comm = comm,
			.prio = ev->next_prio};
		c->switch_ts = ts;
	}
	if (c) {
		c->known = true;
		c->running = ev->next_tid;
		c->last_ts = ts;
	}
}

static void plain_waking(struct perfetto *p, const struct model *m, const struct ev_waking *ev)
{
	u32 field = ev->flags & WAKE_NEW ? FTRACE_WAKEUP_NEW : FTRACE_WAKING;
	struct ftrace_mark f;

	tasks__announce(p, m, ev->hdr.tid, ev->hdr.ts);
	f = ftrace__begin(p, &ev->hdr, ev->hdr.ts, ev->waker, ev->flags & (WAKE_HARDIRQ | WAKE_SOFTIRQ), field);
	pb__str(p->pb, WAKING_COMM, comm_of(m, ev->hdr.tid));
	pb__uint(p->pb, WAKING_PID, ev->hdr.tid);
	pb__uint(p->pb, WAKING_PRIO, ev->prio);
	pb__uint(p->pb, WAKING_TARGET_CPU, ev->target_cpu);
	ftrace__end(p, f);
}

void sched__waking(struct perfetto *p, const struct model *m, const struct ev_waking *ev)
{
	struct sched_cpu *c = cpu_of(p, ev->hdr.cpu);
	u64 ts = ev->hdr.ts;
	u16 comm;

	if (!c || !c->known || c->running != ev->waker || ev->flags & WAKE_NEW) {
		plain_waking(p, m, ev);
		return;
	}
	if (full(c) || ts < c->waking_ts)
		flush_cpu(p, c, ev->hdr.cpu);
	comm = comm_index(p, m, c, ev->hdr.tid, ts);
	c->wk[c->n_waking++] = (struct sched_entry){.delta = ts - c->waking_ts,
		.tid = ev->hdr.tid,
		.state = ev->target_cpu,
		.comm = comm,
		.prio = ev->prio,
		.flags = ev->flags & (WAKE_HARDIRQ | WAKE_SOFTIRQ)};
	c->waking_ts = ts;
}

void sched__lost(struct perfetto *p, u16 cpu, u64 ts)
{
	struct pb *b;
	size_t mark;

	if (cpu >= SCHED_CPUS)
		return;
	if (p->cpus && p->cpus[cpu]) {
		flush_cpu(p, p->cpus[cpu], cpu);
		p->cpus[cpu]->known = false;
	}
	b = perfetto__packet_begin(p, 0);
	pb__uint(b, PACKET_TIMESTAMP, ts);
	mark = pb__begin(b, PACKET_FTRACE_EVENTS);
	pb__uint(b, BUNDLE_CPU, cpu);
	pb__uint(b, BUNDLE_LOST, 1);
	pb__end(b, mark);
	perfetto__packet_end(p);
}

void sched__flush(struct perfetto *p)
{
	for (u16 i = 0; p->cpus && i < SCHED_CPUS; i++)
		if (p->cpus[i])
			flush_cpu(p, p->cpus[i], i);
}

void sched__close(struct perfetto *p)
{
	for (u32 i = 0; p->cpus && i < SCHED_CPUS; i++)
		free(p->cpus[i]);
	free(p->cpus);
}
