// SPDX-License-Identifier: GPL-2.0-only
/* Who runs where: switches and wakeups of the whole system (Perfetto's thread states need all of them), the life of
 * threads, and for the game's threads why they left. */
#include "syscalls.bpf.h"

#define EEXIST 17

extern const volatile struct bpf_syscall syscalls[SYSCALL_NRS];

static __always_inline u16 state_of(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;
	u32 exit_state = task->exit_state;

	if (bpf_core_field_exists(task->__state))
		return task->__state | exit_state;
	return BPF_CORE_READ(old, state) | exit_state;
}

static __always_inline u32 cpu_of(struct task_struct *task)
{
	struct task_struct___before_5_16 *old = (void *)task;

	if (bpf_core_field_exists(task->thread_info.cpu))
		return task->thread_info.cpu;
	return BPF_CORE_READ(old, cpu);
}

/* The system call that a thread is in; NULL where it is in none. */
static __always_inline const volatile struct bpf_syscall *call_of(struct pt_regs *regs)
{
	long nr = REGS_NR(regs);

	return nr < 0 ? NULL : &syscalls[nr & (SYSCALL_NRS - 1)];
}

/* How long it will wait is not known yet, so each one is bounded by a budget instead. Where the system call itself says
 * what is waited for (a lock, a timer, a poll) the stack would say nothing new, and those are the waits that come by
 * the ten thousand. */
static __always_inline u32 kernel_stack(u64 *ctx)
{
	struct kernel_stack_count *n = &kernel_stack_counts[bpf_get_smp_processor_id() & (LOST_CPUS - 1)];
	u32 second = now() >> 30;
	long id;

	if (n->window != second) {
		n->window = second;
		n->taken = 0;
	}
	if (n->taken++ >= opt.kernel_stacks_per_second) {
		n->skipped[KERNEL_STACK_BUDGET]++;
		return 0;
	}
	id = bpf_get_stackid(ctx, &kernel_stacks, 0);
	if (id < 0)
		n->skipped[id == -EEXIST ? KERNEL_STACK_COLLISION : KERNEL_STACK_FAILED]++;
	return id < 0 ? 0 : id + 1;
}

SEC("?tp_btf/sched_switch")
int sched__switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	u16 flags = ctx[0] ? SWITCH_PREEMPT : 0, sys = SYS_NONE, state;
	const volatile struct bpf_syscall *call;
	struct pt_regs *regs;
	struct ev_switch *e;
	u64 ts = now();
	u32 kstack = 0;

	state = opt.switch_has_state ? (u16)ctx[3] | (u16)prev->exit_state : state_of(prev);
	if (traced(prev)) {
		regs = (struct pt_regs *)bpf_task_pt_regs(prev);
		call = call_of(regs);
		flags |= call ? SWITCH_GAME : SWITCH_GAME | SWITCH_USER;
		sys = call ? call->id : SYS_NONE;
		if (opt.kernel_stacks_per_second && (!call || call->kernel_stack) && state && !ctx[0] &&
			!prev->exit_state)
			kstack = kernel_stack(ctx);
		/* with THIN_CALLS each absence is a wait of its own: not that of one who is preempted on its way back
		 */
		if (call && call->sleeps && (!(thin & THIN_CALLS) || (state && !ctx[0])))
			syscall__sleep(prev, regs, call->handler, ts);
	}
	if (traced(next)) {
		flags |= SWITCH_NEXT_GAME;
		if (thin & THIN_CALLS)
			syscall__wake(next, ts);
	}
	if (!opt.sched)
		return 0;
	e = reserve(switch);
	if (!e)
		return lost(CLASS_SCHED);
	*e = (struct ev_switch)
	{
		HDR(SWITCH, switch, ts, prev->pid), .next_tid = next->pid, .prev_state = state, .next_prio = next->prio,
						    .prev_prio = prev->prio, .sys = sys, .flags = flags,
						    .kstack = kstack,
	};
	submit(e);
	return 0;
}

static __always_inline int waking(struct task_struct *task, u8 flags, u16 target)
{
	u32 waker = bpf_get_current_task_btf()->pid;
	struct thread_state *st;
	struct ev_waking *e;

	if (opt.lock && traced(task)) {
		st = thread_state_if_any(task);
		if (st)
			st->waker = flags & (WAKE_HARDIRQ | WAKE_SOFTIRQ) ? 0 : waker;
	}
	if (!opt.sched)
		return 0;
	e = reserve(waking);
	if (!e)
		return lost(CLASS_SCHED);
	*e = (struct ev_waking){
		HDR(WAKING, waking, now(), task->pid),
		.waker = waker,
		.target_cpu = target,
		.prio = task->prio,
		.flags = flags,
	};
	submit(e);
	return 0;
}

SEC("?tp_btf/sched_waking")
int sched__waking(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];

	return waking(task, irq_context(), cpu_of(task));
}

SEC("?tp_btf/sched_wakeup_new")
int sched__wakeup_new(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];

	return waking(task, WAKE_NEW, cpu_of(task));
}

/* The thread's id in the innermost pid namespace: what the game itself writes into its mutexes. */
static __always_inline u32 nstid_of(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	u32 level = BPF_CORE_READ(pid, level), nr = 0;

	bpf_core_read(&nr, sizeof(nr),
		(void *)&pid->numbers + level * bpf_core_type_size(struct upid) + __builtin_offsetof(struct upid, nr));
	return nr;
}

#define CLONE_THREAD 0x10000

/* A new process joins those that are recorded, or takes the number of one that was. */
static __always_inline void follow(struct task_struct *child, struct task_struct *parent)
{
	u32 tgid = child->tgid;
	u8 yes = 1;

	if (!traced(parent))
		bpf_map_delete_elem(&games, &tgid);
	else if (bpf_map_update_elem(&games, &tgid, &yes, BPF_ANY))
		lost(CLASS_SCHED);
}

SEC("?tp_btf/task_newtask")
int sched__newtask(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct task_struct *parent = bpf_get_current_task_btf();
	struct ev_fork *e;

	if (opt.follow && !(ctx[1] & CLONE_THREAD))
		follow(task, parent);
	e = reserve(fork);
	if (!e)
		return lost(CLASS_SCHED);
	*e = (struct ev_fork){
		HDR(FORK, fork, now(), task->pid),
		.tgid = task->tgid,
		.parent = parent->pid,
		.clone_flags = ctx[1],
		.nstid = nstid_of(task),
	};
	bpf_probe_read_kernel_str(e->comm, sizeof(e->comm), task->comm);
	submit(e);
	return 0;
}

SEC("?tp_btf/sched_process_exec")
int sched__exec(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct ev_exec *e = reserve(exec);

	if (!e)
		return lost(CLASS_SCHED);
	*e = (struct ev_exec){
		HDR(EXEC, exec, now(), task->pid),
		.old_tid = (u32)ctx[1],
		.tgid = task->tgid,
	};
	bpf_probe_read_kernel_str(e->comm, sizeof(e->comm), task->comm);
	submit(e);
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int sched__exit(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u32 tgid = task->tgid;
	struct ev_exit *e;

	if (traced(task))
		threads__remove(task->pid);
	if (opt.follow && task->signal->nr_threads <= 1)
		bpf_map_delete_elem(&games, &tgid);
	if (!opt.sched && !opt.follow)
		return 0;
	e = reserve(exit);
	if (!e)
		return lost(CLASS_SCHED);
	*e = (struct ev_exit){
		HDR(EXIT, exit, now(), task->pid),
		.tgid = task->tgid,
		.code = task->exit_code,
	};
	submit(e);
	return 0;
}

SEC("?tp_btf/task_rename")
int sched__rename(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct ev_rename *e = reserve(rename);

	if (!e)
		return lost(CLASS_SCHED);
	*e = (struct ev_rename){
		HDR(RENAME, rename, now(), task->pid),
		.tgid = task->tgid,
	};
	/* task->comm is still the old name: the tracepoint fires before the copy */
	bpf_probe_read_kernel_str(e->comm, sizeof(e->comm), (void *)ctx[1]);
	submit(e);
	return 0;
}

SEC("?tp_btf/sched_migrate_task")
int sched__migrate(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct ev_migrate *e;

	if (!traced(task))
		return 0;
	e = reserve(migrate);
	if (!e)
		return lost(CLASS_SCHED);
	*e = (struct ev_migrate){
		HDR(MIGRATE, migrate, now(), task->pid),
		.from_cpu = cpu_of(task),
		.to_cpu = (u32)ctx[1],
	};
	submit(e);
	return 0;
}
