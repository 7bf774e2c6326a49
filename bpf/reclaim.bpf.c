// SPDX-License-Identifier: GPL-2.0-only
/* Direct reclaim: the game's thread wanted memory and had to free some first. */
#include "redframe.bpf.h"

SEC("?tp_btf/mm_vmscan_direct_reclaim_begin")
int reclaim__begin(u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *st;

	if (!traced(task))
		return 0;
	st = thread_state(task);
	if (!st)
		return lost(CLASS_RECLAIM);
	st->reclaim_ts = now();
	return 0;
}

SEC("?tp_btf/mm_vmscan_direct_reclaim_end")
int reclaim__end(u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *st;
	struct ev_reclaim *e;
	u64 ts, begun;

	if (!traced(task))
		return 0;
	st = thread_state_if_any(task);
	if (!st || !st->reclaim_ts)
		return 0;
	ts = now();
	begun = st->reclaim_ts;
	st->reclaim_ts = 0;
	e = reserve(reclaim);
	if (!e)
		return lost(CLASS_RECLAIM);
	*e = (struct ev_reclaim){HDR(RECLAIM, reclaim, ts, task->pid), .dur = ts - begun, .pages = ctx[0]};
	submit(e);
	return 0;
}
