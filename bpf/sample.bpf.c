// SPDX-License-Identifier: GPL-2.0-only
/* Where the game's threads are when they are on a CPU: a timer per CPU asks. */
#include "redframe.bpf.h"

SEC("?perf_event")
int sample__tick(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *user;
	struct ev_sample *e;
	u64 ip = REGS_IP(&ctx->regs), kernel = (s64)ip < 0;

	if (!traced(task))
		return 0;
	if (kernel) {
		user = (void *)bpf_task_pt_regs(task);
		ip = REGS_IP(user);
	}
	e = reserve(sample);
	if (!e)
		return lost(CLASS_SAMPLE);
	*e = (struct ev_sample){HDR(SAMPLE, sample, now(), task->pid), .ip = ip, .kernel = kernel};
	submit(e);
	return 0;
}
