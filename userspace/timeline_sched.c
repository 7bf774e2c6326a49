/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What switches, wakeups, forks and exits say of threads and CPUs.
 */
#include <errno.h>
#include <stdlib.h>

#include "kernel_wait.h"
#include "timeline_internal.h"

#define DEAD_SWEEP 256u /* so many ended threads are looked through at once */
#define WAKE_IRQ   (WAKE_HARDIRQ | WAKE_SOFTIRQ)

static struct off *off_push(struct timeline *t, struct line *l, u64 out, u8 flags)
{
	struct off *o = fifo__push(&l->offs, t->horizon, &t->bytes);

	if (o)
		*o = (struct off){
			.out = out, .wake = TIME_OPEN, .in = TIME_OPEN, .flags = flags, .kernel_cause = CAUSE_NONE};
	return o;
}

void line__end_off(struct line *l, u64 ts)
{
	struct off *o = fifo__last(&l->offs);

	if (!o || o->in != TIME_OPEN)
		return;
	o->in = max(ts, o->out);
	if (o->wake == TIME_OPEN)
		o->wake = o->in;
}

/* Times of one thread never go back, whatever a recording says. */
u64 line__time(struct line *l, u64 ts)
{
	l->last = max(l->last, ts);
	return l->last;
}

static int leave(struct timeline *t, const struct model *m, const struct ev_switch *e)
{
	struct line *l = timeline__get_line(t, e->hdr.tid);
	struct off *o;
	u64 ts;

	if (!l)
		return -ENOMEM;
	ts = line__time(l, e->hdr.ts);
	if (l->state == LINE_OFF) { /* the switch that brought it was lost */
		o = fifo__last(&l->offs);
		o->flags |= OFF_LOST;
		line__end_off(l, o->wake != TIME_OPEN ? o->wake : ts);
	}
	o = off_push(t, l, ts, 0);
	if (!o)
		return -ENOMEM;
	if ((e->flags & SWITCH_PREEMPT) || !e->prev_state)
		o->wake = ts;
	o->flags = (e->flags & SWITCH_PREEMPT ? OFF_PREEMPT : 0) | (e->flags & SWITCH_USER ? OFF_USER : 0) |
		   (e->prev_state & TASK_GONE ? OFF_DEAD : 0);
	o->next = e->next_tid;
	o->sys = e->sys;
	o->state = e->prev_state;
	o->cpu = o->wait_cpu = e->hdr.cpu;
	o->prio = e->prev_prio;
	o->next_prio = e->next_prio;
	o->kernel_chain = model__kernel_chain(m, e->kstack);
	o->kernel_cause = kernel_wait__cause(m, o->kernel_chain);
	l->state = LINE_OFF;
	l->switched = true;
	l->game |= !!(e->flags & SWITCH_GAME);
	t->n_dead += (o->flags & OFF_DEAD) && !l->dead;
	l->dead |= !!(o->flags & OFF_DEAD);
	return 0;
}

static int arrive(struct timeline *t, const struct ev_switch *e)
{
	struct line *l = timeline__get_line(t, e->next_tid);
	struct off *o;
	u64 ts;

	if (!l)
		return -ENOMEM;
	ts = line__time(l, e->hdr.ts);
	if (l->state != LINE_OFF) { /* when it left was not seen */
		o = off_push(t, l, min(l->seen, ts), OFF_LOST);
		if (!o)
			return -ENOMEM;
		o->wait_cpu = e->hdr.cpu;
	}
	line__end_off(l, ts);
	l->state = LINE_ON;
	l->seen = ts;
	l->switched = true;
	l->game |= !!(e->flags & SWITCH_NEXT_GAME);
	return 0;
}

static int cpu_switch(struct timeline *t, const struct ev_switch *e)
{
	u32 cpu = e->hdr.cpu;
	struct slot *s;

	if (cpu >= t->n_cpus) {
		struct fifo *cpus = realloc(t->cpus, (cpu + 1) * sizeof(*cpus));

		if (!cpus)
			return -ENOMEM;
		for (u32 i = t->n_cpus; i <= cpu; i++)
			cpus[i] = FIFO(struct slot, end);
		t->cpus = cpus;
		t->n_cpus = cpu + 1;
	}
	s = fifo__last(&t->cpus[cpu]);
	if (s)
		s->end = max(s->start, e->hdr.ts);
	s = fifo__push(&t->cpus[cpu], t->horizon, &t->bytes);
	if (!s)
		return -ENOMEM;
	*s = (struct slot){.start = e->hdr.ts, .end = TIME_OPEN, .tid = e->next_tid, .prio = e->next_prio};
	return 0;
}

int timeline__switch(struct timeline *t, const struct model *m, const struct ev_switch *e)
{
	int err = cpu_switch(t, e);

	if (!err && e->hdr.tid)
		err = leave(t, m, e);
	if (!err && e->next_tid)
		err = arrive(t, e);
	return err;
}

int timeline__waking(struct timeline *t, const struct ev_waking *e)
{
	struct line *l = timeline__get_line(t, e->hdr.tid);
	struct off *o;

	if (!l)
		return -ENOMEM;
	line__time(l, e->hdr.ts);
	if (l->state == LINE_UNKNOWN) {
		if (!off_push(t, l, min(l->seen, l->last), OFF_LOST))
			return -ENOMEM;
		l->state = LINE_OFF;
	}
	o = fifo__last(&l->offs);
	if (l->state != LINE_OFF || !o || o->wake != TIME_OPEN)
		return 0;
	o->wake = max(l->last, o->out);
	o->waker = e->flags & WAKE_IRQ ? 0 : e->waker;
	o->flags |= e->flags & WAKE_IRQ ? OFF_IRQ : 0;
	o->wait_cpu = e->target_cpu;
	return 0;
}

int timeline__fork(struct timeline *t, const struct ev_fork *e)
{
	struct line *l = timeline__get_line(t, e->hdr.tid);
	struct off *o;

	if (!l)
		return -ENOMEM;
	line__time(l, e->hdr.ts);
	line__end_off(l, l->last);
	if (l->dead)
		t->n_dead--;
	l->dead = false;
	o = off_push(t, l, l->last, OFF_NEW);
	if (!o)
		return -ENOMEM;
	o->wake = l->last;
	o->wait_cpu = e->hdr.cpu;
	l->state = LINE_OFF;
	return 0;
}

void timeline__exit(struct timeline *t, const struct ev_exit *e)
{
	struct line *l = timeline__line(t, e->hdr.tid);

	if (!l || l->dead)
		return;
	line__time(l, e->hdr.ts);
	l->dead = true;
	if (++t->n_dead > DEAD_SWEEP && t->n_dead > t->n_lines / 2)
		timeline__rehash(t, t->n_slots);
}

const struct fifo *timeline__cpu(const struct timeline *t, u32 cpu)
{
	return cpu < t->n_cpus ? &t->cpus[cpu] : NULL;
}

static u64 idle_in(const struct fifo *f, u64 start, u64 end)
{
	u64 idle = 0;

	for (u32 i = fifo__after(f, start); i < f->n; i++) {
		const struct slot *s = fifo__at(f, i);

		if (s->start >= end)
			break;
		if (!s->tid)
			idle += min(s->end, end) - max(s->start, start);
	}
	return idle;
}

bool timeline__idle_elsewhere(const struct timeline *t, u32 cpu, u64 start, u64 end)
{
	for (u32 c = 0; c < t->n_cpus; c++)
		if (c != cpu && idle_in(&t->cpus[c], start, end) > (end - start) / 2)
			return true;
	return false;
}
