// SPDX-License-Identifier: GPL-2.0-only
/* Allocations: calls of the allocator (entry probes only: return probes kill games that use fibers or exceptions), and
 * the system calls that change the address space. */
#include "syscalls.bpf.h"
#include "probe.bpf.h"
#include "alloc.bpf.h"
#include "exponential.h"
#include "heap.bpf.h"

extern struct alloc_calls alloc_calls[LOST_CPUS];

#define SUM_NS    1000000 /* how long small allocations are summed before they are told */
#define SUM_CALLS 16      /* as often the clock is looked at, which costs a tenth of a call */
#define NEAR      1024    /* bytes: a return address this close to a probe lies in the same function */

int alloc__flush(struct task_struct *task, u64 ts)
{
	struct thread_state *st = opt.alloc ? thread_state_if_any(task) : NULL;
	struct ev_alloc_sum *e;

	if (!st || !(st->sum_calls | st->sum_frees))
		return 0;
	e = reserve(alloc_sum);
	if (!e)
		return lost(CLASS_ALLOC); /* the sum is kept: the next one tells it */
	*e = (struct ev_alloc_sum){
		HDR(ALLOC_SUM, alloc_sum, ts, task->pid),
		.bytes = st->sum_bytes,
		.largest = st->sum_largest,
		.calls = st->sum_calls,
		.frees = st->sum_frees,
		.since = st->sum_since,
	};
	submit(e);
	st->sum_calls = st->sum_frees = 0;
	st->sum_bytes = st->sum_largest = 0;
	return 0;
}

/* A function of its own for its small stack: from 64 bytes on (v6.13) a program's lies in memory of which the kernel
 * has to find out first, at each read into it, whether that is safe. */
static __noinline u64 user_word(u64 addr)
{
	u64 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (void *)addr);
	return word;
}

/* An allocator's functions call each other: operator new calls malloc, realloc(NULL) does, operator delete jumps to
 * free. Only the outer call is the game's. The inner one is known by its value (size or block) and by coming either
 * from right behind the outer one's probe, or, after a jump, with the outer one's stack pointer and return address. */
static __always_inline u64 caller_of(const struct probe_desc *p, u64 sp)
{
	return p->ret == ~0U ? 0 : user_word(sp);
}

/* realloc frees the old block once it has copied it, from however deep within: its return address is still there then.
 */
static __always_inline bool in_realloc(const struct thread_state *st, u64 value, u64 sp, u64 outer)
{
	u64 ret = 0;

	if (!st->nest_old || st->nest_old != value || sp >= outer)
		return false;
	bpf_probe_read_user(&ret, sizeof(ret), (void *)outer);
	return ret && ret == st->nest_ret;
}

static __always_inline bool nested(struct thread_state *st, const struct probe_desc *p, u64 value, u64 sp, bool is_free)
{
	u64 outer = st->nest_sp, caller;

	if (!outer)
		return false;
	if (is_free && in_realloc(st, value, sp, outer))
		return true;
	st->nest_sp = 0;
	if (st->nest_value != value)
		return false;
	caller = caller_of(p, sp);
	if (sp == outer ? caller != st->nest_ret : caller - st->nest_ip + NEAR >= 2 * NEAR)
		return false;
	if (st->nest_old) { /* that is freed after this */
		st->nest_sp = outer;
		st->nest_value = ~0ULL;
	}
	return true;
}

static __always_inline bool may_nest(u8 fn)
{
	return fn != ALLOC_MALLOC && fn != ALLOC_FREE && fn != ALLOC_CALLOC;
}

static __always_inline int sum(struct task_struct *task, struct thread_state *st, u64 size, bool is_free)
{
	u32 n = st->sum_calls + st->sum_frees;
	u64 ts = n % SUM_CALLS ? 0 : now();

	if (!n)
		st->sum_since = ts;
	if (is_free) {
		st->sum_frees++;
	} else {
		st->sum_calls++;
		st->sum_bytes += size;
		if (size > st->sum_largest)
			st->sum_largest = size;
	}
	return ts && ts - st->sum_since > SUM_NS ? alloc__flush(task, ts) : 0;
}

static __always_inline int tell_free(struct task_struct *task, const struct probe_desc *p, u64 addr, u64 ts)
{
	struct ev_free *e = reserve(free);

	if (!e)
		return lost(CLASS_ALLOC);
	*e = (struct ev_free){
		HDR(FREE, free, ts, task->pid),
		.addr = addr,
		.fn = p->sub,
		.site = p->site,
	};
	submit(e);
	return 0;
}

/* By bytes, a Poisson process on what each thread allocates: the gaps are exponential, and drawn anew behind a block
 * that was hit, so whether one is depends on its size alone. */
static __always_inline bool is_sampled(struct thread_state *st, u64 size)
{
	bool hit;

	if (!opt.alloc_sample_bytes || !size || size >= opt.stack_alloc_bytes)
		return false;
	if (!st->alloc_gap)
		st->alloc_gap = (opt.alloc_sample_bytes * exponential(bpf_get_prandom_u32()) >> 16) + 1;
	hit = size >= st->alloc_gap;
	st->alloc_gap = hit ? 0 : st->alloc_gap - size;
	return hit;
}

static __always_inline void tell_sample(
	struct task_struct *task, const struct probe_desc *p, u32 fn, u64 size, u64 caller, u64 ts)
{
	struct ev_alloc_sample *e;

	stack__tell(ts, true, STACK_ALLOC);
	e = reserve(alloc_sample);
	if (!e) {
		lost(CLASS_ALLOC);
		return;
	}
	*e = (struct ev_alloc_sample){
		HDR(ALLOC_SAMPLE, alloc_sample, ts, task->pid),
		.size = size,
		.period = opt.alloc_sample_bytes,
		.caller = caller,
		.fn = fn,
		.site = p->site,
	};
	submit(e);
}

/* The interposer in the game has taken a sample: it has counted the call itself. */
static __always_inline int marked(struct pt_regs *ctx, struct task_struct *task, const struct probe_desc *p)
{
	if (!thread_state(task))
		return lost(CLASS_ALLOC);
	tell_sample(
		task, p, probe_arg(ctx, &p->args[1]), probe_arg(ctx, &p->args[0]), probe_arg(ctx, &p->args[2]), now());
	return 0;
}

SEC("?uprobe")
int alloc__call(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct probe_desc *p = probe_desc(ctx, task);
	u64 size, old, sp, ts;
	struct thread_state *st;
	struct ev_alloc *e;
	struct alloc_calls *calls;
	bool is_free, inner;

	if (!p)
		return 0;
	if (p->what == PROBE_SAMPLED)
		return marked(ctx, task, p);
	calls = &alloc_calls[bpf_get_smp_processor_id() & (LOST_CPUS - 1)];
	calls->n++;
	calls->stepped += p->stepped;
	st = thread_state(task);
	if (!st)
		return lost(CLASS_ALLOC);
	is_free = p->sub == ALLOC_FREE || p->sub == ALLOC_DELETE || p->sub == ALLOC_DELETE_ARRAY;
	size = p->args[0].from ? probe_arg(ctx, &p->args[0]) : 0;
	if (p->sub == ALLOC_CALLOC)
		size *= probe_arg(ctx, &p->args[1]);
	old = p->args[2].from ? probe_arg(ctx, &p->args[2]) : 0;
	sp = REGS_SP(ctx) + p->ret;
	inner = nested(st, p, is_free ? old : size, sp, is_free);
	if (is_free && !old)
		return 0;       /* free(NULL) frees nothing */
	if (may_nest(p->sub)) { /* an inner one too: new[] calls new, which calls malloc */
		st->nest_sp = sp;
		st->nest_ip = REGS_IP(ctx);
		st->nest_value = is_free ? old : size;
		st->nest_old = p->sub == ALLOC_REALLOC ? old : 0;
		st->nest_ret = caller_of(p, sp);
	}
	if (inner)
		return 0;
	if (!is_free && is_sampled(st, size))
		tell_sample(task, p, p->sub, size, caller_of(p, sp), now());
	if (is_free ? opt.alloc_min : size < opt.alloc_min)
		return sum(task, st, size, is_free);
	ts = now();
	if (is_free)
		return tell_free(task, p, old, ts);
	stack__tell(ts, size >= opt.stack_alloc_bytes, STACK_ALLOC);
	e = reserve(alloc);
	if (!e)
		return lost(CLASS_ALLOC);
	*e = (struct ev_alloc){
		HDR(ALLOC, alloc, ts, task->pid),
		.size = size,
		.addr = old,
		.caller = caller_of(p, sp),
		.fn = p->sub,
		.site = p->site,
	};
	submit(e);
	return 0;
}

#define MAP_ANONYMOUS 0x20
#define MAP_SHARED    1

/* A file came into the address space: faults on it are to be named. */
static __always_inline void tell_map(struct call *c, struct pt_regs *regs)
{
	struct file *file = file__of_fd(c->task, REGS_ARG4(regs));
	struct file_id id = {};
	struct ev_map *e;

	if (!file || !file__identify(file, &id))
		return;
	path__tell(file, &id, c->st, c->task->pid);
	e = reserve(map);
	if (!e) {
		lost(CLASS_ALLOC);
		return;
	}
	*e = (struct ev_map){
		HDR(MAP, map, c->ts, c->task->tgid),
		.start = c->ret,
		.end = c->ret + ((REGS_ARG1(regs) + 4095) & ~4095UL),
		.offset = REGS_ARG5(regs),
		.ino = id.ino,
		.dev = id.dev,
		.prot = REGS_ARG2(regs) | (REGS_ARG3(regs) & MAP_SHARED ? 0x100 : 0),
	};
	submit(e);
}

int memory__exit(struct call *c, struct pt_regs *regs, u8 handler)
{
	bool failed = c->ret < 0 && c->ret > -4096;
	struct ev_mem_call *e;

	if (handler == HANDLE_BRK && REGS_ARG0(regs) == 0)
		return 0; /* it only asks */
	if (handler == HANDLE_BRK && (u64)c->ret > c->st->call_was && is_game(c->task))
		heap__look(c->st->call_was, c->ts, c->task->pid);
	stack__tell(c->ts, c->dur >= opt.stack_wait_ns, STACK_WAIT);
	e = reserve(mem_call);
	if (!e)
		return lost(CLASS_ALLOC);
	*e = (struct ev_mem_call){
		HDR(MEM_CALL, mem_call, c->ts, c->task->pid),
		.dur = c->dur,
		.addr = REGS_ARG0(regs),
		.len = handler == HANDLE_BRK      ? 0
		       : handler == HANDLE_MREMAP ? REGS_ARG2(regs)
						  : REGS_ARG1(regs),
		.ret = c->ret,
		.was = handler == HANDLE_BRK      ? c->st->call_was
		       : handler == HANDLE_MREMAP ? REGS_ARG1(regs)
						  : 0,
		.sys = c->sys,
		.flags = handler == HANDLE_MMAP || handler == HANDLE_MREMAP ? REGS_ARG3(regs) : REGS_ARG2(regs),
	};
	submit(e);
	if (handler == HANDLE_MMAP && !failed && !(REGS_ARG3(regs) & MAP_ANONYMOUS))
		tell_map(c, regs);
	return 0;
}
