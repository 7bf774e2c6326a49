/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "partition.h"
#include "syscalls.h"

#define TASK_STOPPED_OR_TRACED 0x0cu /* __TASK_STOPPED | __TASK_TRACED of sched.h */

/* ---- which spans touch the interval ---- */

static int add_span(struct partition *p, const struct span *s)
{
	if (p->n_spans == p->cap_spans) {
		u32 cap = p->cap_spans ? p->cap_spans * 2 : 64;
		const struct span **spans = realloc(p->spans, cap * sizeof(*spans));
		const struct span **stack = spans ? realloc(p->stack, cap * sizeof(*stack)) : NULL;

		if (spans)
			p->spans = spans;
		if (stack)
			p->stack = stack;
		if (!spans || !stack)
			return -ENOMEM;
		p->cap_spans = cap;
	}
	p->spans[p->n_spans++] = s;
	return 0;
}

/* Outer before inner. Of two with the same times the later one in memory ended later, so it is the outer one. */
static int by_start(const void *a, const void *b)
{
	const struct span *x = *(const struct span *const *)a, *y = *(const struct span *const *)b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return x > y ? -1 : x < y;
}

static int gather(struct partition *p, const struct line *l, u64 start, u64 end)
{
	u64 longest = l ? line__longest(l) : 0;

	p->n_spans = 0;
	for (u32 i = l ? fifo__after(&l->spans, start) : 0; l && i < l->spans.n; i++) {
		const struct span *s = fifo__at(&l->spans, i);
		int err = s->start < end && s->start < s->end ? add_span(p, s) : 0;

		if (err)
			return err;
		if (s->end >= end && s->end - end >= longest)
			break; /* whatever ends later began later than end */
	}
	if (p->n_spans > 1)
		qsort(p->spans, p->n_spans, sizeof(*p->spans), by_start);
	return 0;
}

/* ---- what a moment is called ---- */

static bool waits_for_device(const struct span *s)
{
	return s && (s->kind == EV_FAULT || (s->kind >= EV_FILE_READ && s->kind <= EV_FILE_SYNC));
}

static enum cause runnable_cause(const struct off *o, const struct span *s)
{
	if (o->flags & OFF_DEAD)
		return CAUSE_UNEXPLAINED;
	/* while it waits for a device the kernel may yield hundreds of times */
	if (!(o->flags & OFF_PREEMPT) && !o->state && o->wake == o->out && waits_for_device(s))
		return s->blocked;
	return CAUSE_CPU_WAIT;
}

static enum cause blocked_cause(const struct off *o, const struct span *s)
{
	if (o->flags & OFF_DEAD)
		return CAUSE_UNEXPLAINED;
	if (s) /* which device an ioctl is for, its number may not tell */
		return s->kind == EV_SYSCALL && s->blocked == CAUSE_IO_WAIT && s->sys == SYS_ID_ioctl &&
				       o->kernel_cause != CAUSE_NONE
			       ? o->kernel_cause
			       : s->blocked;
	if (o->flags & OFF_LOST)
		return CAUSE_UNEXPLAINED;
	if (o->kernel_cause != CAUSE_NONE)
		return o->kernel_cause;
	if (o->flags & OFF_USER)
		return o->state & TASK_STOPPED_OR_TRACED ? CAUSE_UNEXPLAINED : CAUSE_PAGE_FAULT;
	return o->sys == SYS_NONE ? CAUSE_UNEXPLAINED : syscall__cause(o->sys);
}

static enum cause running_cause(const struct line *l, const struct span *s, bool lost)
{
	if (!s)
		return lost ? CAUSE_UNEXPLAINED : CAUSE_CODE;
	/* without scheduling records a wait cannot be told from work: call it what it mostly is */
	if (!l->switched && s->blocked != CAUSE_NONE)
		return s->blocked;
	return s->running;
}

/* ---- the sweep ---- */

struct sweep {
	struct partition *p;
	const struct timeline *t;
	const struct line *l;
	u64 now, end;
	u32 next_span, next_off, next_loss;
};

static const struct span *innermost(const struct sweep *w, bool may_block)
{
	for (u32 i = w->p->depth; i-- > 0;) {
		const struct span *s = w->p->stack[i];

		if (s->end > w->now && (!may_block || s->blocked != CAUSE_NONE))
			return s;
	}
	return NULL;
}

/* Opens the spans that have begun and closes the innermost ones that are over; returns when that changes next. */
static u64 step_spans(struct sweep *w)
{
	struct partition *p = w->p;
	u64 until = w->end;

	while (w->next_span < p->n_spans && p->spans[w->next_span]->start <= w->now)
		p->stack[p->depth++] = p->spans[w->next_span++];
	while (p->depth && p->stack[p->depth - 1]->end <= w->now)
		p->depth--;
	if (w->next_span < p->n_spans)
		until = min(until, p->spans[w->next_span]->start);
	if (p->depth)
		until = min(until, p->stack[p->depth - 1]->end);
	return until;
}

/* The stretch off the CPU that now falls into, or NULL. */
static const struct off *step_offs(struct sweep *w, u64 *until)
{
	const struct fifo *f = w->l ? &w->l->offs : NULL;
	const struct off *o;

	while (f && w->next_off < f->n && fifo__end(f, w->next_off) <= w->now)
		w->next_off++;
	if (!f || w->next_off == f->n)
		return NULL;
	o = fifo__at(f, w->next_off);
	if (o->out > w->now) {
		*until = min(*until, o->out);
		return NULL;
	}
	*until = min(*until, o->wake > w->now ? o->wake : o->in);
	return o;
}

static bool step_losses(struct sweep *w, u64 *until)
{
	const struct fifo *f = &w->t->losses;
	const struct loss *l;

	while (w->next_loss < f->n && fifo__end(f, w->next_loss) <= w->now)
		w->next_loss++;
	if (w->next_loss == f->n)
		return false;
	l = fifo__at(f, w->next_loss);
	*until = min(*until, l->start > w->now ? l->start : l->end);
	return l->start <= w->now;
}

static int emit(struct partition *p, const struct piece *piece)
{
	struct piece *last = p->n ? &p->pieces[p->n - 1] : NULL;

	if (last && last->off == piece->off && last->span == piece->span && last->phase == piece->phase &&
		last->cause == piece->cause) {
		last->end = piece->end;
		last->lost |= piece->lost;
		return 0;
	}
	if (p->n == p->cap) {
		u32 cap = p->cap ? p->cap * 2 : 128;
		struct piece *pieces = realloc(p->pieces, cap * sizeof(*pieces));

		if (!pieces)
			return -ENOMEM;
		p->pieces = pieces;
		p->cap = cap;
	}
	p->pieces[p->n++] = *piece;
	return 0;
}

static int step(struct sweep *w)
{
	u64 until = step_spans(w);
	const struct off *o = step_offs(w, &until);
	bool lost = step_losses(w, &until);
	struct piece piece = {.start = w->now, .end = until, .off = o, .lost = lost};

	piece.phase = !o ? PHASE_RUNNING : w->now < o->wake ? PHASE_BLOCKED : PHASE_RUNNABLE;
	piece.span = innermost(w, !!o);
	piece.code = !o && (!piece.span || piece.span->kind == EV_IRQ || piece.span->kind == EV_SOFTIRQ) &&
		     (!piece.span || (piece.span->blocked == CAUSE_NONE && !innermost(w, true)));
	if (piece.phase == PHASE_RUNNING)
		piece.cause = running_cause(w->l, piece.span, lost);
	else if (piece.phase == PHASE_BLOCKED)
		piece.cause = blocked_cause(o, piece.span);
	else
		piece.cause = runnable_cause(o, piece.span);
	w->now = until;
	return emit(w->p, &piece);
}

int partition__cut(struct partition *p, const struct timeline *t, const struct line *l, u64 start, u64 end)
{
	struct sweep w = {.p = p, .t = t, .l = l, .now = start, .end = end};
	int err = gather(p, l, start, end);

	p->n = p->depth = 0;
	w.next_off = l ? fifo__after(&l->offs, start) : 0;
	w.next_loss = fifo__after(&t->losses, start);
	while (!err && w.now < end)
		err = step(&w);
	return err;
}

void partition__rest(struct partition *p)
{
	if (p->cap > PARTITION_KEPT || p->cap_spans > PARTITION_KEPT)
		partition__free(p);
}

void partition__free(struct partition *p)
{
	free(p->pieces);
	free(p->spans);
	free(p->stack);
	memset(p, 0, sizeof(*p));
}
