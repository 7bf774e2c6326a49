// SPDX-License-Identifier: GPL-2.0-only
/* Waits on futexes, where every lock of a game ends when it is contended. */
#include "syscalls.bpf.h"

struct futex_waitv_user {
	u64 val, uaddr;
	u32 flags, reserved;
};

/* The lock as it stands when the thread leaves the CPU for it: afterwards the owner is gone. */
void lock__begin(struct thread_state *st, struct pt_regs *regs, u8 handler)
{
	u64 words[3] = {};
	u64 addr = REGS_ARG0(regs);

	st->copying = 1;
	if (handler == HANDLE_FUTEX_WAITV)
		bpf_probe_read_user(
			&addr, sizeof(addr), (void *)addr + __builtin_offsetof(struct futex_waitv_user, uaddr));
	if (bpf_probe_read_user(words, sizeof(words), (void *)addr)) /* 24 bytes may cross into a page not mapped */
		bpf_probe_read_user(words, sizeof(u32), (void *)addr);
	st->lock_words = words[0];
	/* of an rwlock readers wait 16 bytes before the writer's id, writers 12 bytes before it, at an odd word */
	st->lock_owners = (u32)words[1] | (addr & 4 ? words[1] >> 32 : words[2]) << 32;
	st->copying = 0;
}

static __always_inline u64 woken_word(struct pt_regs *regs, s64 ret)
{
	u64 addr = 0, i = ret >= 0 && ret < 128 ? ret : 0;

	bpf_probe_read_user(&addr, sizeof(addr),
		(void *)REGS_ARG0(regs) + i * sizeof(struct futex_waitv_user) +
			__builtin_offsetof(struct futex_waitv_user, uaddr));
	return addr;
}

int lock__exit(struct call *c, struct pt_regs *regs, u8 handler)
{
	struct thread_state *st = c->st;
	struct ev_lock_wait *e;
	u64 addr = REGS_ARG0(regs);
	u32 val = handler == HANDLE_FUTEX ? REGS_ARG2(regs) : handler == HANDLE_FUTEX2 ? REGS_ARG1(regs) : 0;

	if (handler == HANDLE_FUTEX_WAITV && !c->away)
		addr = woken_word(regs, c->ret);
	stack__tell(c->ts, !c->away && c->dur >= opt.stack_wait_ns, STACK_WAIT);
	e = reserve(lock_wait);
	if (!e)
		return lost(CLASS_LOCK);
	*e = (struct ev_lock_wait){
		HDR(LOCK_WAIT, lock_wait, c->ts, c->task->pid),
		.dur = c->dur,
		.addr = addr,
		.ip = REGS_IP(regs),
		.val = val,
		.word = (u32)st->lock_words,
		.owner = (u32)st->lock_owners,
		.owner16 = val ? st->lock_owners >> 32 : st->lock_words >> 32,
		.waker = st->waker,
		.ret = c->ret,
		.op = handler == HANDLE_FUTEX    ? (u32)REGS_ARG1(regs)
		      : handler == HANDLE_FUTEX2 ? FUTEX_WAIT_BITSET
						 : FUTEX_OP_WAITV,
		.words = handler == HANDLE_FUTEX_WAITV ? (u32)REGS_ARG1(regs) : 1,
	};
	submit(e);
	return 0;
}
