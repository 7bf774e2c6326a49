// SPDX-License-Identifier: GPL-2.0-only
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "trial.h"
#include "uprobe_multi.h"

int trial__open(struct trial *t, u32 tgid)
{
	*t = (struct trial){.tgid = tgid};
	t->map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "redframe_trial", 4, 8, TRIAL_MAX, NULL);
	return t->map < 0 ? -errno : 0;
}

#define INSN(c, d, s, o, i) ((struct bpf_insn){.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)})

/* if (current's tgid == tgid) counts[index]++ */
static int load_counter(const struct trial *t, int index)
{
	const struct bpf_insn insns[] = {
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_pid_tgid),
		INSN(BPF_ALU64 | BPF_RSH | BPF_K, BPF_REG_0, 0, 0, 32),
		INSN(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_0, 0, 9, (s32)t->tgid),
		INSN(BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, -4, index),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, -4),
		INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, t->map),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 2, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_1, 0, 0, 1),
		INSN(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_0, BPF_REG_1, 0, BPF_ADD),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts);
	int fd;

	if (uprobe_multi__supported())
		opts.expected_attach_type = (enum bpf_attach_type)UPROBE_MULTI_ATTACH_TYPE;
	fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "redframe_trial", "GPL", insns, ARRAY_SIZE(insns), &opts);

	return fd < 0 ? -errno : fd;
}

static int attach(const struct trial *t, const struct site_list *l, const struct site *s, int prog)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", l->files[s->file].fd);
	if (uprobe_multi__supported())
		return uprobe_multi__attach(prog, path, t->tgid, &s->offset, &s->semaphore, NULL, 1);
	return uprobe__attach(prog, path, 0, s->offset, s->semaphore, 0);
}

int trial__add(struct trial *t, const struct site_list *l)
{
	int index = t->n, prog;

	if (index == TRIAL_MAX)
		return -ENOSPC;
	prog = load_counter(t, index);
	if (prog < 0)
		return prog;
	t->progs[t->n++] = prog;
	for (int i = 0; i < l->n && t->n_events < (int)ARRAY_SIZE(t->events); i++) {
		int fd = attach(t, l, &l->sites[i], prog);

		if (fd < 0)
			return fd;
		t->events[t->n_events++] = fd;
	}
	return index;
}

u64 trial__count(const struct trial *t, int candidate)
{
	u32 key = (u32)candidate;
	u64 count = 0;

	return bpf_map_lookup_elem(t->map, &key, &count) ? 0 : count;
}

void trial__close(struct trial *t)
{
	for (int i = 0; i < t->n_events; i++)
		close(t->events[i]);
	for (int i = 0; i < t->n; i++)
		close(t->progs[i]);
	if (t->map >= 0)
		close(t->map);
	*t = (struct trial){.map = -1};
}
