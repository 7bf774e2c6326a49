// SPDX-License-Identifier: GPL-2.0-only
/* The one pair of programs at the system call entry and exit, for every class that wants calls: a second pair would
 * cost the game as much again. It keeps the time, and hands each call to its class. Most calls of a game are wakes,
 * polls and receives that return at once: those that can take long only by sleeping begin at the switch that ends their
 * run, so that one without a switch costs next to nothing. */
#include "syscalls.bpf.h"

extern const volatile struct bpf_syscall syscalls[SYSCALL_NRS];
extern struct calls calls[LOST_CPUS];

static __always_inline void enter(struct task_struct *task, struct thread_state *st, struct pt_regs *regs, u8 handler)
{
	if (opt.file && handler == HANDLE_CLOSE)
		file__close(task, st, REGS_ARG0(regs));
	else if (opt.alloc && handler == HANDLE_BRK)
		st->call_was = task->mm->brk;
}

static __always_inline const volatile struct bpf_syscall *call_of(long nr)
{
	return &syscalls[nr & (SYSCALL_NRS - 1)];
}

void syscall__sleep(struct task_struct *task, struct pt_regs *regs, u8 handler, u64 ts)
{
	struct thread_state *st;

	if (handler == HANDLE_FUTEX && !futex__waits(REGS_ARG1(regs)))
		return;
	st = thread_state(task);
	if (!st) {
		lost(CLASS_SYSCALL);
		return;
	}
	if (st->call_ts && !(thin & THIN_CALLS))
		return; /* not the first time in this call */
	if (opt.lock && handler >= HANDLE_FUTEX && handler <= HANDLE_FUTEX2)
		lock__begin(st, regs, handler);
	st->call_ts = ts;
}

SEC("?tp_btf/sys_enter")
int syscall__enter(u64 *ctx)
{
	struct calls *seen = &calls[bpf_get_smp_processor_id() & (LOST_CPUS - 1)];
	struct task_struct *task = bpf_get_current_task_btf();
	const volatile struct bpf_syscall *call;
	struct thread_state *st;

	if (!traced(task)) {
		seen->others++;
		return 0;
	}
	seen->game++;
	call = call_of(ctx[1]);
	if (!call->on)
		return 0;
	if (call->sleeps) {
		st = thread_state_if_any(task);
		if (st)
			st->call_ts = 0; /* should the end of an earlier call have been missed */
		return 0;
	}
	st = thread_state(task);
	if (!st)
		return lost(CLASS_SYSCALL);
	if (call->changes_fds)
		__sync_fetch_and_add(&fd_changing, 1);
	st->call_cold = task->ioac.read_bytes;
	enter(task, st, (struct pt_regs *)ctx[0], call->handler);
	st->call_ts = now();
	return 0;
}

#define ETIMEDOUT 110

/* What it returns is not known yet: woken by nobody, it is late as a rule. */
void syscall__wake(struct task_struct *task, u64 ts)
{
	struct thread_state *st = thread_state_if_any(task);
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	const volatile struct bpf_syscall *call = call_of(REGS_NR(regs));
	struct call c = {.ts = ts, .task = task, .st = st, .sys = call->id, .away = true};

	if (!st || !st->call_ts)
		return;
	c.dur = ts - st->call_ts;
	c.ret = st->waker ? 0 : -ETIMEDOUT;
	st->call_ts = 0;
	if (opt.lock && call->on && call->handler >= HANDLE_FUTEX && call->handler <= HANDLE_FUTEX2)
		lock__exit(&c, regs, call->handler);
}

/* include/linux/errno.h: what the exit tracepoint sees of a call that a signal broke off, restarted or not. The game
 * sees EINTR, or nothing of it. */
#define ERESTARTSYS           512
#define ERESTART_RESTARTBLOCK 516

static __always_inline s64 result(s64 ret)
{
	return ret <= -ERESTARTSYS && ret >= -ERESTART_RESTARTBLOCK ? -4 /* EINTR */ : ret;
}

static __always_inline int leave(struct call *c, struct pt_regs *regs, u8 handler)
{
	if (handler == HANDLE_OTHER)
		return opt.syscall ? other__exit(c, regs) : 0;
	if (opt.file && handler <= HANDLE_SYNC)
		return file__exit(c, regs, handler);
	if (opt.lock && handler >= HANDLE_FUTEX && handler <= HANDLE_FUTEX2)
		return lock__exit(c, regs, handler);
	if (opt.alloc && handler >= HANDLE_MMAP)
		return memory__exit(c, regs, handler);
	return 0;
}

SEC("?tp_btf/sys_exit")
int syscall__exit(u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (void *)ctx[0];
	const volatile struct bpf_syscall *call;
	struct thread_state *st;
	struct call c;

	if (!traced(task))
		return 0;
	call = call_of(REGS_NR(regs));
	if (!call->on)
		return 0;
	st = thread_state_if_any(task);
	if (!st || st->call_ts <= calls_since)
		return 0; /* it did not sleep, or began before we did */
	c.ts = now();
	c.dur = c.ts - st->call_ts;
	c.ret = result((s64)ctx[1]);
	c.task = task;
	c.st = st;
	c.sys = call->id;
	c.away = false;
	st->call_ts = 0;
	if (call->changes_fds) {
		__sync_fetch_and_add(&fd_changes, 1);
		__sync_fetch_and_add(&fd_changing, -1);
	}
	return leave(&c, regs, call->handler);
}

#define SYSCALL(id, name, cause, handler) SYS_ID_##name = id,
enum {
#include "../probes/syscalls.def"
};
#undef SYSCALL

#define TIMER_ABSTIME   1
#define CLOCK_MONOTONIC 1
#define CLOCK_BOOTTIME  7

struct timespec_arg {
	s64 sec, nsec;
};

/* How much later than asked a sleep ended: a timer that came late, and the wait for a CPU after it. 0 where it cannot
 * be told: it was broken off, or waited for a time of day. */
static __always_inline u64 overslept(struct call *c, struct pt_regs *regs)
{
	bool clock = c->sys == SYS_ID_clock_nanosleep;
	u64 id = clock ? REGS_ARG0(regs) : CLOCK_MONOTONIC, deadline, at;
	struct timespec_arg asked = {};

	if (c->ret || (!clock && c->sys != SYS_ID_nanosleep))
		return 0;
	bpf_probe_read_user(&asked, sizeof(asked), (void *)(clock ? REGS_ARG2(regs) : REGS_ARG0(regs)));
	deadline = (u64)asked.sec * 1000000000 + (u64)asked.nsec;
	if (!clock || !(REGS_ARG1(regs) & TIMER_ABSTIME))
		return c->dur > deadline ? c->dur - deadline : 0;
	if (id != CLOCK_MONOTONIC && id != CLOCK_BOOTTIME)
		return 0;
	at = id == CLOCK_BOOTTIME ? c->ts : bpf_ktime_get_ns();
	if (at <= deadline)
		return 0;
	return at - deadline < c->dur ? at - deadline : c->dur;
}

/* A call that no class knows: worth a record when it took long. */
int other__exit(struct call *c, struct pt_regs *regs)
{
	struct ev_syscall *e;
	struct file_id id = {};
	struct file *file;

	if (c->dur < opt.syscall_min_ns)
		return 0;
	file = file__of_fd(c->task, REGS_ARG0(regs));
	if (file && file__identify(file, &id))
		path__tell(file, &id, c->st, c->task->pid);
	stack__tell(c->ts, c->dur >= opt.stack_wait_ns, STACK_WAIT);
	e = reserve(syscall);
	if (!e)
		return lost(CLASS_SYSCALL);
	*e = (struct ev_syscall){
		HDR(SYSCALL, syscall, c->ts, c->task->pid),
		.dur = c->dur,
		.arg0 = REGS_ARG0(regs),
		.arg1 = REGS_ARG1(regs),
		.ret = c->ret,
		.sys = c->sys,
		.fd_mode = id.mode,
		.late = overslept(c, regs),
	};
	submit(e);
	return 0;
}
