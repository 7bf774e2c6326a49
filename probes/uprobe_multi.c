// SPDX-License-Identifier: GPL-2.0-only
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "maps.h"
#include "uprobe_multi.h"

/* The part of union bpf_attr that BPF_LINK_CREATE reads, as of v6.6; the kernel's headers may be older than the kernel.
 */
struct link_create_attr {
	u32 prog_fd, target_fd, attach_type, flags;
	struct {
		u64 path, offsets, semaphores, cookies;
		u32 n, flags, tgid;
	} multi;
};

int uprobe_multi__attach(
	int prog_fd, const char *path, u32 tgid, const u64 *offsets, const u64 *semaphores, const u64 *cookies, u32 n)
{
	struct link_create_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr)); /* padding too: the kernel refuses what it does not know */
	attr.prog_fd = prog_fd;
	attr.attach_type = UPROBE_MULTI_ATTACH_TYPE;
	attr.multi.path = (uintptr_t)path;
	attr.multi.offsets = (uintptr_t)offsets;
	attr.multi.semaphores = (uintptr_t)semaphores;
	attr.multi.cookies = (uintptr_t)cookies;
	attr.multi.n = n;
	attr.multi.tgid = tgid;
	fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	return fd < 0 ? -errno : fd;
}

static int pmu_type(void)
{
	static int type;
	char *text;

	if (type)
		return type;
	text = proc__read("/sys/bus/event_source/devices/uprobe/type", 64, NULL);
	type = text ? atoi(text) : -ENODEV;
	free(text);
	return type;
}

int uprobe__attach(int prog_fd, const char *path, u32 tgid, u64 offset, u64 semaphore, u64 cookie)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = cookie);
	struct perf_event_attr attr = {.size = sizeof(attr), .config2 = offset};
	int type = pmu_type(), event, link;

	if (type < 0)
		return type;
	attr.type = (u32)type;
	attr.config1 = (u64)(uintptr_t)path;
	attr.config = semaphore << 32; /* ref_ctr_offset: bits 32-63, in config of the uprobe PMU */
	/* pid -1, cpu 0: a program on a uprobe runs on every CPU, whatever the event says */
	event = (int)syscall(
		SYS_perf_event_open, &attr, tgid ? (int)tgid : -1, tgid ? -1 : 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (event < 0)
		return -errno;
	link = bpf_link_create(prog_fd, event, BPF_PERF_EVENT, &opts);
	close(event); /* the link holds it: one descriptor a probe */
	return link;
}

static bool try_it(void)
{
	static const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = (enum bpf_attach_type)UPROBE_MULTI_ATTACH_TYPE);
	u64 offset = 0;
	int prog = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "rf_multi", "GPL", insns, ARRAY_SIZE(insns), &opts), err;

	if (prog < 0)
		return false;
	/* a folder is no file to probe: only a kernel that knows the link gets as far as to say so */
	err = uprobe_multi__attach(prog, "/", 0, &offset, NULL, NULL, 1);
	if (err >= 0)
		close(err);
	close(prog);
	return err == -EBADF;
}

bool uprobe_multi__supported(void)
{
	static int known = -1;

	if (known < 0)
		known = try_it();
	return known;
}
