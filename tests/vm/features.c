// SPDX-License-Identifier: GPL-2.0-only
/* What the running kernel has of what a tracer may use, tried and not read from a version: a line "feature NAME yes" or
 * "feature NAME no WHY" for each. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture_internal.h"
#include "maps.h"

static const struct bpf_insn nothing[] = {
	{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
	{.code = BPF_JMP | BPF_EXIT},
};

static void told(const char *name, int err)
{
	if (err < 0)
		printf("feature %s no %s\n", name, strerror(-err));
	else
		printf("feature %s yes\n", name);
}

static int btf_id(const char *name, u32 kind)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int id = btf ? btf__find_by_name_kind(btf, name, kind) : -errno;

	btf__free(btf);
	return id;
}

/* loads an empty program on a function or tracepoint of the kernel and attaches it */
static int attach_tracing(const char *name, u32 kind, enum bpf_attach_type type)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = type, .attach_btf_id = btf_id(name, kind));
	int prog, link;

	if ((int)opts.attach_btf_id < 0)
		return opts.attach_btf_id;
	prog = bpf_prog_load(BPF_PROG_TYPE_TRACING, "rf_try", "GPL", nothing, 2, &opts);
	if (prog < 0)
		return prog;
	link = bpf_raw_tracepoint_open(NULL, prog);
	close(prog);
	if (link >= 0)
		close(link);
	return link;
}

static int pmu_type(const char *pmu)
{
	char path[128];
	int type = -ENOENT;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", pmu);
	f = fopen(path, "re");
	if (f && fscanf(f, "%d", &type) != 1)
		type = -EINVAL;
	if (f)
		fclose(f);
	return type;
}

static int attach_probe(const char *pmu, const char *where, u64 offset)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .config1 = (u64)(uintptr_t)where, .config2 = offset};
	int type = pmu_type(pmu), fd, prog, err;

	if (type < 0)
		return type;
	attr.type = (u32)type;
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	prog = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "rf_try", "GPL", nothing, 2, NULL);
	err = prog < 0 ? prog : ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog) ? -errno : 0;
	if (prog >= 0)
		close(prog);
	close(fd);
	return err;
}

__attribute__((noinline)) static void probed(void)
{
	__asm__ volatile("nop");
}

static int attach_to_self(void)
{
	u64 addr = (u64)(uintptr_t)probed;
	struct maps maps = {};
	int err = maps__read(&maps, (u32)getpid());

	for (int i = 0; !err && i < maps.n; i++)
		if (addr - maps.v[i].start < maps.v[i].end - maps.v[i].start)
			err = attach_probe("uprobe", "/proc/self/exe", addr - maps.v[i].start + maps.v[i].offset) ?: 1;
	maps__free(&maps);
	return err ?: -ENOENT;
}

/* ---- is every hit of a single-stepped probe counted? An emulator may lose some; a machine does not ---- */

#define CALLS 3000

__asm__(".type stepped, @function\nstepped: lea 1(%rdi), %eax\nret\n.size stepped, .-stepped\n");
extern int stepped(int i);

static long count_stepped(u64 offset)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
		.type = (u32)pmu_type("uprobe"),
		.config1 = (u64)(uintptr_t) "/proc/self/exe",
		.config2 = offset};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	u64 count = 0;

	if (fd < 0)
		return -errno;
	for (int i = 0; i < CALLS; i++)
		if (stepped(i) != i + 1)
			return -EILSEQ;
	if (read(fd, &count, sizeof(count)) != sizeof(count))
		count = 0;
	close(fd);
	return (long)count;
}

static void tell_stepped(void)
{
	struct maps maps = {};
	u64 addr = (u64)(uintptr_t)stepped;
	int err = maps__read(&maps, (u32)getpid());
	long n = -ENOENT;

	for (int i = 0; !err && i < maps.n; i++)
		if (addr - maps.v[i].start < maps.v[i].end - maps.v[i].start)
			n = count_stepped(addr - maps.v[i].start + maps.v[i].offset);
	maps__free(&maps);
	if (n == CALLS)
		printf("feature stepped_hits yes\n");
	else
		printf("feature stepped_hits no %ld of %d were counted\n", n, CALLS);
}

static int call_helper(enum bpf_prog_type type, int helper)
{
	const struct bpf_insn insns[] = {
		{.code = BPF_JMP | BPF_CALL, .imm = helper},
		nothing[0],
		nothing[1],
	};
	int prog = bpf_prog_load(type, "rf_try", "GPL", insns, 3, NULL);

	if (prog >= 0)
		close(prog);
	return prog;
}

static int make_task_storage(void)
{
	struct btf *btf = btf__new_empty();
	int key = btf__add_int(btf, "int", 4, BTF_INT_SIGNED), err = btf__load_into_kernel(btf), map;
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC, .btf_key_type_id = (u32)key,
		.btf_value_type_id = (u32)key);

	opts.btf_fd = (u32)btf__fd(btf);
	map = err ? err : bpf_map_create(BPF_MAP_TYPE_TASK_STORAGE, "rf_try", 4, 4, 0, &opts);
	if (map >= 0)
		close(map);
	btf__free(btf);
	return map;
}

static int make_mapped_array(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "rf_try", 4, 4096, 1, &opts);

	if (map >= 0)
		close(map);
	return map;
}

static int make_ring_of_io(void)
{
	char params[120] = {}; /* struct io_uring_params */
	int fd = (int)syscall(SYS_io_uring_setup, 4, params);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int main(void)
{
	int err;

	libbpf_set_print(NULL);
	told("BTF", btf_id("task_struct", BTF_KIND_STRUCT));
	told("mapped_arrays", make_mapped_array());
	told("BTF_tracepoints", attach_tracing("btf_trace_sched_switch", BTF_KIND_TYPEDEF, BPF_TRACE_RAW_TP));
	told("task_storage", make_task_storage());
	told("BPF_cookies", call_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_attach_cookie));
	told("uprobes", attach_to_self());
	tell_stepped();
	err = uprobe_multi__supported() ? 0 : -EOPNOTSUPP;
	told("uprobe_multi", err);
	told("kprobes", attach_probe("kprobe", "do_nanosleep", 0));
	told("fentry", attach_tracing("do_nanosleep", BTF_KIND_FUNC, BPF_TRACE_FENTRY));
	told("io_uring", make_ring_of_io());
	err = access("/dev/ntsync", F_OK) ? -errno : 0;
	told("ntsync", err);
	return 0;
}
