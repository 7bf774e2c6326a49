// SPDX-License-Identifier: GPL-2.0-only
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "calibrate.h"
#include "capture.h"
#include "maps.h"

void calibrate__emulated(void);
void calibrate__stepped(void);

/* a nop is emulated everywhere; the other is a move of a register to itself, which is not */
#if defined(__x86_64__)
#define STEPPED "lea 0(%rax), %rax"
#else
#define STEPPED "ldr x9, [sp]"
#endif
__asm__(".pushsection .text\n"
	".p2align 4\n"
	".type calibrate__emulated, %function\n"
	"calibrate__emulated: nop\n"
	"ret\n"
	".size calibrate__emulated, . - calibrate__emulated\n"
	".p2align 4\n"
	".type calibrate__stepped, %function\n"
	"calibrate__stepped: " STEPPED "\n"
	"ret\n"
	".size calibrate__stepped, . - calibrate__stepped\n"
	".popsection\n");

static u64 cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (u64)t.tv_sec * NSEC_PER_SEC + (u64)t.tv_nsec;
}

/* The least of some rounds: whatever else happens only adds. */
static u64 cost_of(void (*fn)(void), int calls)
{
	u64 best = UINT64_MAX, start;

	for (int round = 0; round < 5; round++) {
		start = cpu_ns();
		for (int i = 0; i < calls; i++)
			fn();
		best = min(best, cpu_ns() - start);
	}
	return best / (u64)calls;
}

/* ---- a probe ---- */

static u64 probe_cost(const struct capture *c, const struct maps *maps, void (*fn)(void), int calls)
{
	const struct map *m = maps__find(maps, (u64)fn);
	struct capture_trial *trial;
	u64 bare, with;

	if (!m)
		return 0;
	bare = cost_of(fn, calls);
	trial = capture__try(c, "/proc/self/exe", (u64)fn - m->start + m->offset);
	if (!trial)
		return 0;
	with = cost_of(fn, calls);
	capture__end_try(trial);
	return with > bare ? with - bare : 0;
}

void calibrate__uprobes(const struct capture *c, u64 *emulated_ns, u64 *stepped_ns)
{
	struct maps maps = {};

	*emulated_ns = *stepped_ns = 0;
	if (maps__read(&maps, (u32)getpid()))
		return;
	*emulated_ns = probe_cost(c, &maps, calibrate__emulated, 400);
	*stepped_ns = probe_cost(c, &maps, calibrate__stepped, 40);
	maps__free(&maps);
}

/* ---- a timer ---- */

#define TICK_PERIOD_NS 50000u
#define TICK_LOOPS     2000000 /* about a millisecond */

/* in a register: what an interrupt does to stores that are forwarded would be taken for its price */
static void spin(void)
{
	for (int i = 0; i < TICK_LOOPS; i++)
		__asm__ volatile("" : "+r"(i));
}

u64 calibrate__tick(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = TICK_PERIOD_NS,
		.disabled = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	u64 bare, with;

	if (fd < 0)
		return 0;
	bare = cost_of(spin, 1);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	with = cost_of(spin, 1);
	close(fd);
	return with > bare ? (with - bare) * TICK_PERIOD_NS / with : 0;
}
