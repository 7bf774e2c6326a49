// SPDX-License-Identifier: GPL-2.0-only
#include "governor.h"

const char *const shed_names[SHED_STEPS] = {
	[SHED_KERNEL_FAULT] = "page faults within system calls",
	[SHED_ALLOC] = "allocator calls",
	[SHED_SAMPLE] = "CPU samples",
	[SHED_STACK] = "call chains",
	[SHED_FILE] = "short calls on files",
	[SHED_CALL] = "system calls other than lock waits",
};

enum ev_class shed__class(enum shed_step step)
{
	switch (step) {
	case SHED_KERNEL_FAULT:
		return CLASS_FAULT;
	case SHED_ALLOC:
		return CLASS_ALLOC;
	case SHED_FILE:
		return CLASS_FILE;
	case SHED_CALL:
		return CLASS_SYSCALL;
	default:
		return CLASS_SAMPLE; /* call chains too: most of them are samples' */
	}
}

void governor__init(struct governor *g, double max_percent, u32 may)
{
	*g = (struct governor){.max_percent = max_percent, .may = may, .pause_ns = GOVERNOR_PAUSE_NS};
}

static double percent(u64 ns, u64 wall_ns)
{
	return wall_ns ? 100.0 * (double)ns / (double)wall_ns : 0;
}

/* The steps in their order until the rest is within the bound; those that save next to nothing stay. */
static u32 choose(const struct governor *g, const struct governor_look *l, u32 among)
{
	double left = g->percent, saves;
	u32 out = 0;

	for (int i = 0; i < SHED_STEPS && left > g->max_percent; i++) {
		saves = percent(l->ns[i], l->wall_ns);
		if (!(among & g->may & ~g->out & SHED_BIT(i)) || saves < g->max_percent / 10)
			continue;
		out |= SHED_BIT(i);
		left -= saves;
	}
	return out;
}

static void leave_out(struct governor *g, const struct governor_look *l, u32 more)
{
	/* it came back too early */
	if (g->resume_ts)
		g->pause_ns = min(2 * g->pause_ns, (u64)GOVERNOR_PAUSE_MAX_NS);
	g->out |= more;
	g->resume_ts = l->ts + g->pause_ns;
	g->over_since = 0;
}

static void over(struct governor *g, const struct governor_look *l)
{
	u32 more;

	g->calm_since = 0;
	if (!g->over_since) {
		g->over_since = l->ts;
		return; /* a short burst: one frame that loads something */
	}
	if (l->ts - g->over_since >= GOVERNOR_PATIENCE_NS)
		more = choose(g, l, ~0U);
	else if (l->ts - g->over_since >= GOVERNOR_HASTE_NS && g->percent >= GOVERNOR_HASTE * g->max_percent)
		more = choose(g, l, SHED_BIT(SHED_KERNEL_FAULT) | SHED_BIT(SHED_ALLOC)); /* such floods */
	else
		return;
	if (more)
		leave_out(g, l, more);
}

/* The last that went comes back first. What it will cost is not known while it is out: so it is tried. */
static void take_up(struct governor *g, const struct governor_look *l)
{
	if (l->ts < g->resume_ts || g->percent > GOVERNOR_CALM_SHARE * g->max_percent)
		return;
	for (int i = SHED_STEPS - 1; i >= 0; i--) {
		if (!(g->out & SHED_BIT(i)))
			continue;
		g->out &= ~SHED_BIT(i);
		g->resume_ts = l->ts + GOVERNOR_BETWEEN_NS;
		return;
	}
}

static void calm(struct governor *g, const struct governor_look *l)
{
	if (!g->calm_since)
		g->calm_since = l->ts;
	if (l->ts - g->calm_since < GOVERNOR_CALM_NS)
		return;
	g->pause_ns = GOVERNOR_PAUSE_NS;
	g->resume_ts = 0;
}

u32 governor__look(struct governor *g, const struct governor_look *l)
{
	u64 ns = l->fixed_ns;

	for (int i = 0; i < SHED_STEPS; i++)
		ns += l->ns[i];
	g->percent = percent(ns, l->wall_ns);
	if (!(g->max_percent > 0) || !l->wall_ns)
		return g->out;
	if (g->percent > g->max_percent) {
		over(g, l);
		return g->out;
	}
	g->over_since = 0;
	if (g->out)
		take_up(g, l);
	else
		calm(g, l);
	return g->out;
}
