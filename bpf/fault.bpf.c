// SPDX-License-Identifier: GPL-2.0-only
/* Page faults: they begin at the exception tracepoints, and end where the kernel counts them (the software perf
 * events PAGE_FAULTS_MIN and _MAJ, one per CPU, which fire when the fault has been handled). */
#include "redframe.bpf.h"

/* arch/x86/include/asm/trap_pf.h */
#define PF_PROT  1
#define PF_WRITE 2
#define PF_INSTR 16

#define HUGE_PAGES 512  /* 2 MiB of 4 KiB */
#define SLACK      64   /* what other threads may take from the counters meanwhile, and what these do not yet show */
#define HUGE_NS    8000 /* no less is needed to clear 2 MiB */

/* Pages of the game's memory. What one fault adds at once is seen at once if it is more than a batch of the counters:
 * twice the number of CPUs, at least 32. */
static __always_inline s64 resident(struct task_struct *task)
{
	struct mm_struct___before_6_2 *old = (void *)task->mm;
	struct mm_struct *mm = task->mm;
	long pages[4] = {};

	if (!mm)
		return 0;
	/* by a field, not by a type: for a type that the kernel lacks libbpf looks at its modules, which takes
	 * CAP_SYS_ADMIN */
	if (bpf_core_field_exists(mm->rss_stat[0].count))
		return mm->rss_stat[0].count + mm->rss_stat[1].count + mm->rss_stat[3].count;
	/* v6.1: the verifier does not look through the typedef of their elements */
	bpf_probe_read_kernel(pages, sizeof(pages), &old->rss_stat);
	return pages[0] + pages[1] + pages[3];
}

extern struct other_faults other_faults[LOST_CPUS];

/* What they cost others is part of what we cost: a game waits for its X server. */
static __always_inline int count_other(u64 flags)
{
	struct other_faults *o = &other_faults[bpf_get_smp_processor_id() & (LOST_CPUS - 1)];

	if (flags & FAULT_KERNEL)
		o->kernel++;
	else
		o->user++;
	return 0;
}

static __always_inline int begin(unsigned long addr, struct pt_regs *regs, unsigned long error, u64 flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *st;

	if (!traced(task))
		return count_other(flags);
	st = thread_state(task);
	if (!st)
		return lost(CLASS_FAULT);
	if (st->copying)
		return 0; /* the end of its stack: the read gives up, and no fault ends */
	st->fault_addr = addr;
	st->fault_ip = REGS_IP(regs);
	st->fault_flags = flags | (error & PF_PROT ? FAULT_PRESENT : 0) | (error & PF_WRITE ? FAULT_WRITE : 0) |
			  (error & PF_INSTR ? FAULT_EXEC : 0);
	st->fault_pages = resident(task);
	st->fault_ts = now();
	return 0;
}

SEC("?tp_btf/page_fault_user")
int fault__user(u64 *ctx)
{
	return begin(ctx[0], (void *)ctx[1], ctx[2], 0);
}

SEC("?tp_btf/page_fault_kernel")
int fault__kernel(u64 *ctx)
{
	return begin(ctx[0], (void *)ctx[1], ctx[2], FAULT_KERNEL);
}

static __always_inline int end(u64 addr, u64 major)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread_state *st;
	struct ev_fault *e;
	u64 ts, begun, at, ip, flags;

	if (!traced(task))
		return 0;
	st = thread_state_if_any(task);
	if (!st || !st->fault_ts)
		return 0; /* it began before we did */
	ts = now();
	begun = st->fault_ts;
	at = st->fault_addr;
	ip = st->fault_ip;
	flags = st->fault_flags;
	if (ts - begun >= HUGE_NS && resident(task) - st->fault_pages >= HUGE_PAGES - SLACK)
		flags |= FAULT_HUGE;
	/* its reads fault themselves, past the end of the stack: begin() sees that, and no end follows */
	stack__tell(ts, major || ts - begun >= opt.stack_wait_ns, STACK_FAULT);
	st->fault_ts = 0;
	e = reserve(fault);
	if (!e)
		return lost(CLASS_FAULT);
	*e = (struct ev_fault){
		HDR(FAULT, fault, ts, task->pid),
		.dur = ts - begun,
		.addr = at,
		.ip = ip,
		.flags = flags | major,
	};
	submit(e);
	return 0;
}

SEC("?perf_event")
int fault__minor(struct bpf_perf_event_data *ctx)
{
	return end(ctx->addr, 0);
}

SEC("?perf_event")
int fault__major(struct bpf_perf_event_data *ctx)
{
	return end(ctx->addr, FAULT_MAJOR);
}
