// SPDX-License-Identifier: GPL-2.0-only
/* What the kernel side and the kernel itself counted: losses, stacks, calls, runs of programs. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "capture_internal.h"

u64 capture__lost(const struct capture *c, enum ev_class class, u32 cpu)
{
	return __atomic_load_n(&c->skel->bss->lost_records[class][cpu & (LOST_CPUS - 1)], __ATOMIC_RELAXED);
}

u64 capture__stacks(const struct capture *c, u64 skipped[])
{
	memcpy(skipped, c->skel->bss->stacks_skipped, sizeof(c->skel->bss->stacks_skipped));
	return c->skel->bss->stacks_taken;
}

bool capture__next_kernel_stack(const struct capture *c, u32 *place, u64 *ips)
{
	int fd = bpf_map__fd(c->skel->maps.kernel_stacks);

	return c->o.kernel_stacks && !bpf_map_get_next_key(fd, *place == ~0U ? NULL : place, place) &&
	       !bpf_map_lookup_elem(fd, place, ips);
}

void capture__kernel_stack_skips(const struct capture *c, u64 skipped[])
{
	for (int why = 0; why < KERNEL_STACK_SKIPS; why++) {
		skipped[why] = 0;
		for (int i = 0; i < LOST_CPUS; i++)
			skipped[why] += c->skel->bss->kernel_stack_counts[i].skipped[why];
	}
}

u64 capture__skipped(const struct capture *c, char *worst, size_t size)
{
	u64 sum = 0, most = 0;

	for (int i = 0; i < c->n_programs; i++) {
		struct bpf_prog_info info = {};
		u32 len = sizeof(info);

		if (!c->programs[i].attached ||
			bpf_obj_get_info_by_fd(bpf_program__fd(c->programs[i].prog), &info, &len))
			continue;
		sum += info.recursion_misses;
		if (info.recursion_misses <= most)
			continue;
		most = info.recursion_misses;
		snprintf(worst, size, "%s", c->programs[i].name);
	}
	return sum;
}

u64 capture__alloc_calls(const struct capture *c, u64 *stepped)
{
	u64 sum = 0;

	*stepped = 0;
	for (int i = 0; i < min(c->n_cpus, LOST_CPUS); i++) {
		sum += c->skel->bss->alloc_calls[i].n;
		*stepped += c->skel->bss->alloc_calls[i].stepped;
	}
	return sum;
}

void capture__other_faults(const struct capture *c, u64 *user, u64 *kernel)
{
	*user = *kernel = 0;
	for (int i = 0; i < min(c->n_cpus, LOST_CPUS); i++) {
		*user += c->skel->bss->other_faults[i].user;
		*kernel += c->skel->bss->other_faults[i].kernel;
	}
}

void capture__calls(const struct capture *c, u64 *game, u64 *others)
{
	*game = *others = 0;
	for (int i = 0; i < min(c->n_cpus, LOST_CPUS); i++) {
		*game += c->skel->bss->calls[i].game;
		*others += c->skel->bss->calls[i].others;
	}
}

u64 capture__stepped_marks(const struct capture *c)
{
	return __atomic_load_n(&c->skel->bss->stepped_marks, __ATOMIC_RELAXED);
}

int capture__keep_stats(void)
{
	int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);

	return fd < 0 ? -errno : fd;
}

bool capture__runs(const struct capture *c, int i, const char **name, u64 *runs, u64 *ns)
{
	struct bpf_prog_info info = {};
	u32 len = sizeof(info);

	if (i >= c->n_programs)
		return false;
	*name = c->programs[i].name;
	if (c->programs[i].attached)
		bpf_obj_get_info_by_fd(bpf_program__fd(c->programs[i].prog), &info, &len);
	*runs = info.run_cnt;
	*ns = info.run_time_ns;
	return true;
}

bool capture__attached(const struct capture *c, enum ev_class class)
{
	int n = 0;

	for (int i = 0; i < c->n_programs; i++) {
		const struct program *p = &c->programs[i];

		if (p->class != class || !p->wanted)
			continue;
		if (!p->attached)
			return false;
		n++;
	}
	return n > 0;
}

bool capture__program(const struct capture *c, int i, const char **name, enum ev_class *class, bool *attached)
{
	if (i >= c->n_programs)
		return false;
	*name = c->programs[i].name;
	*class = c->programs[i].class;
	*attached = c->programs[i].attached;
	return true;
}
