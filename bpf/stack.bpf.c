// SPDX-License-Identifier: GPL-2.0-only
/* Where in the game's code something happened: a copy of the user registers and of the top of the user stack, for the
 * few events that are worth it. The STACK record comes right before the event's own, with the same ts. */
#include "redframe.bpf.h"

__u64 stacks_taken = 0;
__u64 stacks_skipped[STACK_SKIPS] = {};

#define SECOND 1000000000ull

_Static_assert(sizeof(struct stack_copy) + STACK_ROOM + RING_WORD <= RING_TAIL, "a record fits behind a chunk");

static u64 game_due; /* as thread_state.stacks_due, of all threads */

static __always_inline int skip(enum stack_skip why)
{
	__sync_fetch_and_add(&stacks_skipped[why], 1);
	return 1;
}

/* The budgets are buckets that a second fills: who has spent all at once still gets one now and then, so that the next
 * slow frame, in the same second, has its call chains too. due: when all that was taken would be paid for. Two CPUs may
 * both take the last: no harm. */
static __always_inline int is_spent(u64 *due, u64 ts, u32 per_second)
{
	u64 from = *due > ts ? *due : ts;

	if (from - ts >= SECOND)
		return 1;
	*due = from + SECOND / per_second;
	return 0;
}

static __always_inline int over_budget(struct thread_state *st, u64 ts, u32 reason)
{
	if (reason != STACK_SAMPLE && is_spent(&st->stacks_due, ts, opt.stacks_per_thread))
		return skip(STACK_SKIP_THREAD);
	if (is_spent(&game_due, ts, opt.stacks_per_second))
		return skip(STACK_SKIP_GAME);
	/* never at the expense of events */
	if (ring__used(0) > opt.stack_ring_bytes)
		return skip(STACK_SKIP_RING);
	return 0;
}

/* How many bytes from base on may be the thread's stack: none lies above the thread pointer, where glibc keeps its
 * struct pthread at the stack's end, nor above where the kernel began the first thread's. Where neither is near (a
 * fiber, a signal's stack, another runtime) it is all that may be copied. */
static __always_inline u32 depth(struct task_struct *task, u64 sp, u64 base)
{
	u64 ends[] = {THREAD_POINTER(task), task->mm->start_stack}, most = opt.stack_bytes;

	for (int i = 0; i < 2; i++)
		if (ends[i] > sp && ends[i] - base < most)
			most = ends[i] - base;
	return most;
}

/* In pieces. A page in the midst of the stack may never have been touched: a big frame spans it. It reads as zeros, as
 * it would for the game (bpf_probe_read_user clears what it cannot read), and the copy goes on to the last piece there
 * is. How much is wanted and how much there is lies in the record meanwhile: what is read back from there the verifier
 * knows nothing of, so that the pieces look alike to it and are checked once instead of in every combination. */
static __always_inline void copy(struct stack_copy *c, u64 base, u32 most)
{
	volatile u32 *end = &c->bytes, *wanted = &c->more;

	c->base = base;
	*end = 0;
	*wanted = most;
	for (u32 at = 0; at < STACK_ROOM && at < *wanted; at += STACK_PIECE)
		if (!bpf_probe_read_user(c->data + at, STACK_PIECE, (void *)(base + at)))
			*end = at + STACK_PIECE;
}

static __always_inline int take(struct ev_stack *rec, struct pt_regs *regs, u32 behind, u64 base, u32 most)
{
	u32 bytes = sizeof(struct stack_copy) + (most + STACK_PIECE - 1) / STACK_PIECE * STACK_PIECE;
	struct stack_copy *c = ring_reserve(bytes);

	if (!c)
		return skip(STACK_SKIP_RING);
	c->rec = *rec;
	bpf_probe_read_kernel(c->regs, sizeof(*regs), regs);
	REGS_IP((struct pt_regs *)c->regs) -= behind;
	copy(c, base, most);
	c->more = most >= opt.stack_bytes && c->bytes >= most;
	submit_bytes(c, bytes);
	__sync_fetch_and_add(&stacks_taken, 1);
	return 0;
}

/* A global function, so that it is verified once. Of the current thread, for its event of ts that is recorded next.
 * behind: how far its saved address is behind the instruction that it is at, bytes. */
__noinline int stack__copy(u64 ts, u32 reason, u32 behind)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *st = thread_state_if_any(task);
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	struct ev_stack rec = {HDR(STACK, stack, ts, task->pid), .reason = reason};
	u64 sp, base;
	u32 most;

	if (!st || !is_game(task) || over_budget(st, ts, reason))
		return 0;
	sp = REGS_SP(regs);
	base = sp & ~(u64)(STACK_PIECE - 1);
	most = depth(task, sp, base);
	st->copying = 1;
	take(&rec, regs, behind, base, most);
	st->copying = 0;
	return 0;
}
