// SPDX-License-Identifier: GPL-2.0-only
/* What redframe adds is to be seen beside these: a program that only looks whether the thread is the game's, which no
 * tracer on these hooks can do without, and one that also writes a 32-byte record into the kernel's ring buffer, as
 * small as a tracer's record gets. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

const volatile u32 tgid;
const volatile bool write_records;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} records SEC(".maps");

struct record {
	u64 ts, a, b, c;
};

static __always_inline int record(bool of_game)
{
	struct record *r;

	if (!of_game || !write_records)
		return 0;
	r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	if (!r)
		return 0;
	*r = (struct record){.ts = bpf_ktime_get_boot_ns()};
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline bool current_is_game(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return (u32)task->tgid == tgid;
}

SEC("?tp_btf/sched_switch")
int switch__switch(u64 *ctx)
{
	return record(true);
}

SEC("?tp_btf/sched_waking")
int switch__waking(u64 *ctx)
{
	return record(true);
}

SEC("?tp_btf/page_fault_user")
int fault__begin(u64 *ctx)
{
	return current_is_game() ? 0 : 0;
}

SEC("?perf_event")
int fault__end(void *ctx)
{
	return record(current_is_game());
}

SEC("?tp_btf/sys_enter")
int pread__enter(u64 *ctx)
{
	return current_is_game() ? 0 : 0;
}

SEC("?tp_btf/sys_exit")
int pread__exit(u64 *ctx)
{
	return record(current_is_game());
}

SEC("?tp_btf/softirq_entry")
int softirq__entry(u64 *ctx)
{
	return current_is_game() ? 0 : 0;
}

SEC("?tp_btf/softirq_exit")
int softirq__exit(u64 *ctx)
{
	return record(current_is_game());
}

SEC("?tp_btf/sys_enter")
int lock__enter(u64 *ctx)
{
	return current_is_game() ? 0 : 0;
}

/* FUTEX_WAIT and its kin: not the wake, which makes no record */
static __always_inline bool waits(struct pt_regs *regs)
{
	u32 op = REGS_ARG1(regs) & 0x7f;

	return !op || op == 9;
}

SEC("?tp_btf/sys_exit")
int lock__exit(u64 *ctx)
{
	return record(current_is_game() && waits((void *)ctx[0]));
}

SEC("?tp_btf/sched_waking")
int lock__waking(u64 *ctx)
{
	return 0;
}

SEC("?uprobe")
int malloc__call(void *ctx)
{
	return record(current_is_game());
}

SEC("?uprobe")
int large__call(void *ctx)
{
	return record(current_is_game());
}
