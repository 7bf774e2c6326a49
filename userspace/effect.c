// SPDX-License-Identifier: GPL-2.0-only
#include "effect.h"

/* as `make bench` measures them on the development machine; docs/overhead.md */
#define REFERENCE_UPROBE  480
#define REFERENCE_STEPPED 14000
#define REFERENCE_STACK   4000
#define REFERENCE_TICK    14000 /* in a virtual machine, where each is an exit to the host */

static const u64 reference[CLASS_COUNT] = {
	[CLASS_FRAME] = 250,
	[CLASS_SCHED] = 240,
	[CLASS_FAULT] = 470,
	[CLASS_LOCK] = 600,
	[CLASS_FILE] = 475,
	[CLASS_ALLOC] = 70,
	[CLASS_IRQ] = 150,
	[CLASS_RECLAIM] = 300,
	[CLASS_SYSCALL] = 475,
	[CLASS_SAMPLE] = 1000,
};

struct prices effect__prices(u64 uprobe_ns, u64 stepped_ns, u64 tick_ns)
{
	u64 here = uprobe_ns ?: REFERENCE_UPROBE;
	struct prices p = {
		.uprobe = here,
		.stepped = stepped_ns ?: REFERENCE_STEPPED * here / REFERENCE_UPROBE,
		.stack = REFERENCE_STACK * here / REFERENCE_UPROBE,
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
	struct effect e = {.stacks = h->stacks * p->stack};
	u64 stepped = min(h->stepped, h->class[CLASS_ALLOC]), marks = h->class[CLASS_FRAME];

	for (int i = 0; i < CLASS_COUNT; i++)
		e.class[i] = h->class[i] * p->class[i];
	e.class[CLASS_SAMPLE] += h->class[CLASS_SAMPLE] * p->tick;
	e.class[CLASS_FRAME] += (marks - min(marks, h->stepped_marks)) * p->uprobe + h->stepped_marks * p->stepped;
	e.class[CLASS_ALLOC] += (h->class[CLASS_ALLOC] - stepped) * p->uprobe + stepped * p->stepped;
	return e;
}
