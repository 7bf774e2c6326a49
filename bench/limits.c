// SPDX-License-Identifier: GPL-2.0-only
/* limits PID PHASE empty|record: attaches the programs of limits.bpf.c for one phase of the workload, says "ready", and
 * stays until the process ends, emptying the ring as redframe does. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common.h"
#include "limits.skel.h"
#include "sites.h"
#include "uprobe_multi.h"

static int drop(void *ctx, void *data, size_t size)
{
	return 0;
}

static void attach_fault_end(struct bpf_program *prog)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS_MIN,
		.sample_period = 1};

	for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++)
		bpf_program__attach_perf_event(prog, syscall(SYS_perf_event_open, &attr, -1, cpu, -1, 0));
}

static void attach_malloc(struct bpf_program *prog, u32 tgid, bool with_free)
{
	struct site_list l = {};
	char why[256], path[64];
	int fd;

	sites__alloc(&l, tgid, with_free, why, sizeof(why));
	for (int i = 0; i < l.n; i++) {
		const struct site *s = &l.sites[i];

		snprintf(path, sizeof(path), "/proc/self/fd/%d", l.files[s->file].fd);
		fd = uprobe_multi__supported()
			     ? uprobe_multi__attach(bpf_program__fd(prog), path, tgid, &s->offset, NULL, NULL, 1)
			     : uprobe__attach(bpf_program__fd(prog), path, tgid, s->offset, 0, 0);
		if (fd < 0)
			fprintf(stderr, "limits: attach %s: %s\n", s->label, strerror(-fd));
	}
}

static void attach(struct bpf_program *prog, u32 tgid)
{
	const char *name = bpf_program__name(prog);

	if (!strcmp(name, "fault__end"))
		attach_fault_end(prog);
	else if (bpf_program__type(prog) == BPF_PROG_TYPE_KPROBE)
		attach_malloc(prog, tgid, !strcmp(name, "malloc__call"));
	else if (!bpf_program__attach(prog))
		fprintf(stderr, "limits: attach %s: %s\n", name, strerror(errno));
}

int main(int argc, char **argv)
{
	struct limits_bpf *skel = limits_bpf__open();
	struct bpf_program *prog;
	struct ring_buffer *ring;
	struct pollfd game;
	size_t n;

	if (argc != 4 || !skel)
		return 1;
	n = strlen(argv[2]);
	skel->rodata->tgid = atoi(argv[1]);
	skel->rodata->write_records = !strcmp(argv[3], "record");
	bpf_object__for_each_program(prog, skel->obj)
	{
		bpf_program__set_autoload(prog, !strncmp(bpf_program__name(prog), argv[2], n));
		if (bpf_program__type(prog) == BPF_PROG_TYPE_KPROBE && uprobe_multi__supported())
			bpf_program__set_expected_attach_type(prog, (enum bpf_attach_type)UPROBE_MULTI_ATTACH_TYPE);
	}
	if (limits_bpf__load(skel))
		return 1;
	bpf_object__for_each_program(prog, skel->obj) if (bpf_program__autoload(prog)) attach(prog, skel->rodata->tgid);
	ring = ring_buffer__new(bpf_map__fd(skel->maps.records), drop, NULL, NULL);
	game = (struct pollfd){.fd = syscall(SYS_pidfd_open, skel->rodata->tgid, 0), .events = POLLIN};
	printf("recording\n");
	fflush(stdout);
	while (!poll(&game, 1, 2))
		ring_buffer__consume(ring);
	return 0;
}
