/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Programs at places in the game's code: which place it is, and its arguments.
 */
#ifndef REDFRAME_PROBE_BPF_H
#define REDFRAME_PROBE_BPF_H

#include "redframe.bpf.h"

struct probes {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* userspace sets it to the number of sites */
	__type(key, u32);
	__type(value, struct probe_desc);
};
extern struct probes probes SEC(".maps");

/* ctx is read as kernel memory: the verifier allows no variable offset into it. Not where most arguments are. */
static __always_inline u64 probe_reg(struct pt_regs *ctx, u32 offset)
{
	u64 value = 0;

	if (offset == __builtin_offsetof(struct pt_regs, REGS_FIRST_ARG))
		return ((volatile struct pt_regs *)ctx)->REGS_FIRST_ARG;
	if (offset == __builtin_offsetof(struct pt_regs, REGS_SECOND_ARG))
		return ((volatile struct pt_regs *)ctx)->REGS_SECOND_ARG;
	bpf_probe_read_kernel(&value, sizeof(value), (void *)ctx + offset);
	return value;
}

static __always_inline u64 fit(u64 value, const struct probe_arg *a)
{
	u32 unused = 64 - 8 * (a->size ? a->size : 8);

	if (a->is_signed)
		return (s64)(value << (unused & 63)) >> (unused & 63);
	return value << (unused & 63) >> (unused & 63);
}

static __always_inline u64 probe_arg(struct pt_regs *ctx, const struct probe_arg *a)
{
	u64 at, value = 0;

	if (a->from == ARG_CONST)
		return a->value;
	if (a->from == ARG_REG)
		return fit(probe_reg(ctx, a->reg), a);
	if (a->from != ARG_MEM && a->from != ARG_MEM_MEM)
		return 0;
	at = probe_reg(ctx, a->reg) + a->value;
	if (a->index != 0xffff)
		at += probe_reg(ctx, a->index) * a->scale;
	if (a->from == ARG_MEM_MEM && bpf_probe_read_user(&at, sizeof(at), (void *)at))
		return 0;
	bpf_probe_read_user(&value, sizeof(value), (void *)at);
	return fit(value, a);
}

/* NULL where the probe is not this game's: uprobes sit in the file, for everyone who maps it */
static __always_inline const struct probe_desc *probe_desc(struct pt_regs *ctx, struct task_struct *task)
{
	u32 i = bpf_get_attach_cookie(ctx);

	return traced(task) ? bpf_map_lookup_elem(&probes, &i) : NULL;
}

#endif
