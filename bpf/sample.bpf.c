// SPDX-License-Identifier: GPL-2.0-only
/* Where the game's threads are when they are on a CPU: a timer per CPU asks. */
#include "redframe.bpf.h"

static __always_inline void tell_stack(struct task_struct *task, u64 ts)
{
	struct thread_state *st = opt.stack_bytes ? thread_state(task) : NULL;

	/* not each: a thousand a second would cost the game more than they tell */
	if (st && !(thin & THIN_STACK) && opt.stack_sample_every && !(++st->samples % opt.stack_sample_every))
		stack__copy(ts, STACK_SAMPLE);
}

SEC("?perf_event")
int sample__tick(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *user;
	struct ev_sample *e;
	u64 ts, ip = REGS_IP(&ctx->regs), kernel = (s64)ip < 0;

	if (!traced(task))
		return 0;
	if (kernel) {
		user = (void *)bpf_task_pt_regs(task);
		ip = REGS_IP(user);
	}
	ts = now();
	tell_stack(task, ts);
	e = reserve(sample);
	if (!e)
		return lost(CLASS_SAMPLE);
	*e = (struct ev_sample){HDR(SAMPLE, sample, ts, task->pid), .ip = ip, .kernel = kernel};
	submit(e);
	return 0;
}
