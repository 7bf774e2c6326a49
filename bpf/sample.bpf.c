// SPDX-License-Identifier: GPL-2.0-only
/* Where the game's threads are when they are on a CPU: a timer per CPU asks. */
#include "redframe.bpf.h"

/* While the kernel is at a probe, the user's address lies behind the trap, as if the instruction in its place had run.
 */
static __always_inline u32 behind_trap(const struct thread_state *st, const struct pt_regs *user)
{
#ifdef TRAP_INSN
	u8 insn = 0;

	if (REGS_NR(user) == -1 && !(st && st->fault_ts) &&
		!bpf_probe_read_user(&insn, sizeof(insn), (void *)(REGS_IP(user) - TRAP_BYTES)) && insn == TRAP_INSN)
		return TRAP_BYTES;
#endif
	return 0;
}

static __always_inline void tell_stack(struct thread_state *st, u64 ts, u32 behind)
{
	/* not each: a thousand a second would cost the game more than they tell */
	if (st && !(thin & THIN_STACK) && opt.stack_sample_every && !(++st->samples % opt.stack_sample_every))
		stack__copy(ts, STACK_SAMPLE, behind);
}

SEC("?perf_event")
int sample__tick(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *st;
	struct pt_regs *user;
	struct ev_sample *e;
	u32 behind = 0;
	u64 ts, ip = REGS_IP(&ctx->regs), kernel = (s64)ip < 0;

	if (!traced(task))
		return 0;
	st = opt.stack_bytes ? thread_state(task) : NULL;
	if (kernel) {
		user = (void *)bpf_task_pt_regs(task);
		behind = behind_trap(st, user);
		ip = REGS_IP(user) - behind;
	}
	ts = now();
	tell_stack(st, ts, behind);
	e = reserve(sample);
	if (!e)
		return lost(CLASS_SAMPLE);
	*e = (struct ev_sample){HDR(SAMPLE, sample, ts, task->pid), .ip = ip, .kernel = kernel};
	submit(e);
	return 0;
}
