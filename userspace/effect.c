// SPDX-License-Identifier: GPL-2.0-only
#include "effect.h"

/* ns, medians of what `make bench` measured on the development machine (the table is in README.md), in runs in which
 * redframe measured REFERENCE_UPROBE for an emulated uprobe: in better and worse runs all of them move together. */
#define REFERENCE_UPROBE       660
#define REFERENCE_STEPPED      9100 /* as it measured then */
#define REFERENCE_STACK        1600 /* "the copy of a stack of 16 KiB" */
#define REFERENCE_KERNEL_STACK 2500 /* "the kernel stack of a blocking switch" */
#define REFERENCE_OTHER_FAULT  280  /* begin and end, of a process that is not recorded */
#define REFERENCE_MEM_CALL     320  /* "madvise of a page" */
/* "a poll that returns at once" and "of a process that is not recorded" are 150 in the bench's loop; in vkcube and love
 * the caches are cold, and by the kernel's statistics the programs take 120 and 40 more */
#define REFERENCE_CALL       270
#define REFERENCE_OTHER_CALL 190
#define REFERENCE_TICK       14000 /* in a virtual machine, where each is an exit to the host */

static const u64 reference[CLASS_COUNT] = {
	[CLASS_FRAME] = 200, /* as an allocation that makes a record */
	[CLASS_SCHED] = 350,
	[CLASS_FAULT] = 400,
	[CLASS_LOCK] = 770,
	[CLASS_FILE] = 360,
	[CLASS_ALLOC] = 100,    /* most make no record; 200 for those that do */
	[CLASS_IRQ] = 290,      /* "softirq" */
	[CLASS_SYSCALL] = 1400, /* "a call of 50 us or more": as a rule it slept, and the caches are cold */
	[CLASS_RECLAIM] = 400, /* not measured: nothing makes it come at will. As a fault, whose programs do the same */
	[CLASS_SAMPLE] = 1400, /* not measured alone: guessed by what the program does */
};

struct prices effect__prices(u64 uprobe_ns, u64 stepped_ns, u64 tick_ns)
{
	u64 here = uprobe_ns ?: REFERENCE_UPROBE;
	struct prices p = {
		.uprobe = here,
		.stepped = stepped_ns ?: REFERENCE_STEPPED * here / REFERENCE_UPROBE,
		.stack = REFERENCE_STACK * here / REFERENCE_UPROBE,
		.kernel_stack = REFERENCE_KERNEL_STACK * here / REFERENCE_UPROBE,
		.other_fault = REFERENCE_OTHER_FAULT * here / REFERENCE_UPROBE,
		.mem_call = REFERENCE_MEM_CALL * here / REFERENCE_UPROBE,
		.call = REFERENCE_CALL * here / REFERENCE_UPROBE,
		.other_call = REFERENCE_OTHER_CALL * here / REFERENCE_UPROBE,
		.tick = tick_ns ?: REFERENCE_TICK,
		.calibrated = uprobe_ns != 0,
	};

	for (int i = 0; i < CLASS_COUNT; i++)
		p.class[i] = reference[i] * here / REFERENCE_UPROBE;
	return p;
}

u32 effect__sample_hz(u64 tick_ns, double max_percent)
{
	u64 may_ns = (u64)(max_percent / 6 / 100 * NSEC_PER_SEC);
	u32 hz = 1000;

	while (hz > 250 && max_percent > 0 && tick_ns * hz > may_ns)
		hz /= 2;
	return hz;
}

struct effect effect__of(const struct prices *p, const struct hits *h)
{
	struct effect e = {
		.stacks = h->stacks * p->stack,
		.other_kernel_faults = h->other_kernel_faults * p->other_fault,
		.other_user_faults = h->other_user_faults * p->other_fault,
		.other_calls = h->other_calls * p->other_call,
	};
	u64 stepped = min(h->stepped, h->class[CLASS_ALLOC]), marks = h->class[CLASS_FRAME];
	u64 recorded = h->class[CLASS_LOCK] + h->class[CLASS_FILE] + h->class[CLASS_SYSCALL] + h->mem_calls;

	for (int i = 0; i < CLASS_COUNT; i++)
		e.class[i] = h->class[i] * p->class[i];
	e.class[CLASS_SYSCALL] += h->mem_calls * p->mem_call + (h->calls - min(h->calls, recorded)) * p->call;
	e.class[CLASS_SCHED] += h->kernel_stacks * p->kernel_stack;
	e.class[CLASS_SAMPLE] += h->class[CLASS_SAMPLE] * p->tick;
	e.class[CLASS_FRAME] += (marks - min(marks, h->stepped_marks)) * p->uprobe + h->stepped_marks * p->stepped;
	e.class[CLASS_ALLOC] += (h->class[CLASS_ALLOC] - stepped) * p->uprobe + stepped * p->stepped;
	return e;
}
