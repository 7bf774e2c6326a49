// SPDX-License-Identifier: GPL-2.0-only
/* count_calls PID FILE HEXOFFSET SECONDS: counts a process's calls of the code at that offset, by a plain uprobe
 * counter of the kernel's, and prints COUNT BEGIN END (BOOTTIME, ns). Which count a tracer must come to. */
#include <dirent.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include "target.h"

#define MAX_THREADS 1024

static int fds[MAX_THREADS];
static int n;

static int uprobe_type(void)
{
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int type;

	MUST(f && fscanf(f, "%d", &type) == 1);
	fclose(f);
	return type;
}

/* one counter per thread: the calls of threads that begin later are inherited */
static void open_counters(int pid, const char *file, unsigned long offset)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = uprobe_type(),
		.uprobe_path = (unsigned long)file,
		.probe_offset = offset,
		.inherit = 1,
		.disabled = 1,
	};
	char path[64];
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	MUST(dir);
	while ((d = readdir(dir))) {
		int tid = atoi(d->d_name), fd;

		if (!tid || n == MAX_THREADS)
			continue;
		fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
		MUST(fd >= 0 || errno == ESRCH);
		if (fd >= 0)
			fds[n++] = fd;
	}
	closedir(dir);
}

int main(int argc, char **argv)
{
	unsigned long long begin, end, count, sum = 0;

	MUST(argc == 5);
	open_counters(atoi(argv[1]), argv[2], strtoul(argv[3], NULL, 16));
	begin = boot_ns();
	for (int i = 0; i < n; i++)
		ioctl(fds[i], PERF_EVENT_IOC_ENABLE, 0);
	sleep(atoi(argv[4]));
	for (int i = 0; i < n; i++)
		ioctl(fds[i], PERF_EVENT_IOC_DISABLE, 0);
	end = boot_ns();
	for (int i = 0; i < n; i++) {
		MUST(read(fds[i], &count, sizeof(count)) == sizeof(count));
		sum += count;
	}
	printf("%llu %llu %llu\n", sum, begin, end);
	return 0;
}
