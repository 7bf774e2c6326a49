// SPDX-License-Identifier: GPL-2.0-only
/* Interrupts and the deferred work behind them: whether the CPU is in one now (a wakeup from there is nobody's), and
 * how long they ran on the time of a game's thread. */
#include "redframe.bpf.h"

/* Other threads' need no time, only the mark. */
static __always_inline int begin(u64 *begun)
{
	*begun = opt.irq && traced(bpf_get_current_task_btf()) ? now() : 1;
	return 0;
}

/* The begin, if its duration is to be told. */
static __always_inline u64 end(u64 *begun)
{
	u64 ts = *begun;

	*begun = 0;
	return ts > 1 && traced(bpf_get_current_task_btf()) ? ts : 0;
}

static __always_inline int tell_irq(u64 begun, u32 irq)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 ts = now();
	struct ev_irq *e;

	if (!begun)
		return 0;
	e = reserve(irq);
	if (!e)
		return lost(CLASS_IRQ);
	*e = (struct ev_irq){HDR(IRQ, irq, ts, task->pid), .dur = ts - begun, .irq = irq};
	submit(e);
	return 0;
}

SEC("?tp_btf/irq_handler_entry")
int irq__entry(u64 *ctx)
{
	return begin(&cpu_state()->hard);
}

SEC("?tp_btf/irq_handler_exit")
int irq__exit(u64 *ctx)
{
	return tell_irq(end(&cpu_state()->hard), ctx[0]);
}

/* x86: the local timer's interrupt has no handler of the above kind */
SEC("?tp_btf/local_timer_entry")
int irq__timer_entry(u64 *ctx)
{
	return begin(&cpu_state()->timer);
}

SEC("?tp_btf/local_timer_exit")
int irq__timer_exit(u64 *ctx)
{
	return tell_irq(end(&cpu_state()->timer), IRQ_TIMER);
}

SEC("?tp_btf/softirq_entry")
int irq__soft_entry(u64 *ctx)
{
	return begin(&cpu_state()->soft);
}

SEC("?tp_btf/softirq_exit")
int irq__soft_exit(u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 begun = end(&cpu_state()->soft), ts;
	struct ev_softirq *e;

	if (!begun)
		return 0;
	ts = now();
	e = reserve(softirq);
	if (!e)
		return lost(CLASS_IRQ);
	*e = (struct ev_softirq){HDR(SOFTIRQ, softirq, ts, task->pid), .dur = ts - begun, .vec = (u32)ctx[0]};
	submit(e);
	return 0;
}
