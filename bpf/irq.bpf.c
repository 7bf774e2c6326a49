// SPDX-License-Identifier: GPL-2.0-only
/* Interrupts and the deferred work behind them, as far as they ran on the time of a game's thread. */
#include "redframe.bpf.h"

struct irq_begin {
	u64 hard, soft;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct irq_begin);
} irq_begins SEC(".maps");

static __always_inline struct irq_begin *begins(struct task_struct *task)
{
	u32 zero = 0;

	return traced(task) ? bpf_map_lookup_elem(&irq_begins, &zero) : NULL;
}

SEC("?tp_btf/irq_handler_entry")
int irq__entry(u64 *ctx)
{
	struct irq_begin *b = begins(bpf_get_current_task_btf());

	if (b)
		b->hard = now();
	return 0;
}

SEC("?tp_btf/irq_handler_exit")
int irq__exit(u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct irq_begin *b = begins(task);
	struct ev_irq *e;
	u64 ts, begun;

	if (!b || !b->hard)
		return 0;
	ts = now();
	begun = b->hard;
	b->hard = 0;
	e = reserve(irq);
	if (!e)
		return lost(CLASS_IRQ);
	*e = (struct ev_irq){HDR(IRQ, irq, ts, task->pid), .dur = ts - begun, .irq = (u32)ctx[0]};
	submit(e);
	return 0;
}

SEC("?tp_btf/softirq_entry")
int irq__soft_entry(u64 *ctx)
{
	struct irq_begin *b = begins(bpf_get_current_task_btf());

	if (b)
		b->soft = now();
	return 0;
}

SEC("?tp_btf/softirq_exit")
int irq__soft_exit(u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct irq_begin *b = begins(task);
	struct ev_softirq *e;
	u64 ts, begun;

	if (!b || !b->soft)
		return 0;
	ts = now();
	begun = b->soft;
	b->soft = 0;
	e = reserve(softirq);
	if (!e)
		return lost(CLASS_IRQ);
	*e = (struct ev_softirq){HDR(SOFTIRQ, softirq, ts, task->pid), .dur = ts - begun, .vec = (u32)ctx[0]};
	submit(e);
	return 0;
}
