// SPDX-License-Identifier: GPL-2.0-only
/* What recording costs: redframe itself, counted; the game, estimated, and what is left out where that is too much. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "calibrate.h"
#include "capture.h"
#include "bpf_options.h"
#include "log.h"
#include "session.h"
#include "startup.h"

/* ---- of redframe itself ---- */

static u64 resident_bytes(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%*u %lu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * 4096;
}

u64 session__own_cpu_ns(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return (ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * NSEC_PER_SEC +
	       (ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1000ULL;
}

double session__cpu_percent(const struct session *s)
{
	return s->stop > s->start ? 100.0 * s->cpu_ns / (s->stop - s->start) : 0;
}

void session__tell_cost(struct session *s, u64 ts)
{
	struct ev_cost e = {
		.hdr = {.ts = ts, .kind = EV_COST, .words = sizeof(e) / 8},
		.bytes = s->out.bytes,
		.records = s->drain.records,
		.wakeups = s->drain.wakeups,
		.ring_used = s->drain.pass_bytes,
		.rss = resident_bytes(),
		.cpu_ns = session__own_cpu_ns() - s->cpu_before,
	};

	recording__append(&s->out, &e, sizeof(e));
}

/* ---- the estimate ---- */

static u64 sum_kinds(const struct drain *d, const u8 *kinds)
{
	u64 sum = 0;

	for (; *kinds; kinds++)
		sum += d->kinds[*kinds];
	return sum;
}

static void count_hits(const struct session *s, struct hits *h)
{
	const struct drain *d = &s->drain;
	u64 skipped[STACK_SKIPS];

	*h = (struct hits){};
	h->class[CLASS_FRAME] = d->kinds[EV_FRAME];
	h->class[CLASS_SCHED] = d->game_switches;
	h->class[CLASS_FAULT] = d->kinds[EV_FAULT];
	h->class[CLASS_LOCK] = d->kinds[EV_LOCK_WAIT];
	h->class[CLASS_FILE] = sum_kinds(d, (const u8[]){EV_FILE_READ, EV_FILE_WRITE, EV_FILE_META, EV_FILE_SYNC,
						    EV_URING_SUBMIT, EV_URING_DONE, 0});
	h->class[CLASS_IRQ] = sum_kinds(d, (const u8[]){EV_IRQ, EV_SOFTIRQ, 0});
	h->class[CLASS_RECLAIM] = d->kinds[EV_RECLAIM];
	h->class[CLASS_SYSCALL] = d->kinds[EV_SYSCALL];
	h->mem_calls = d->kinds[EV_MEM_CALL];
	h->class[CLASS_SAMPLE] = d->kinds[EV_SAMPLE];
	for (int i = CLASS_FRAME; i < CLASS_COUNT; i++)
		h->class[i] += d->lost_class[i]; /* a record that found no room cost as much */
	h->class[CLASS_ALLOC] = capture__alloc_calls(s->capture, &h->stepped);
	h->stepped_marks = capture__stepped_marks(s->capture);
	h->stacks = capture__stacks(s->capture, skipped);
	h->kernel_stacks = d->kernel_stacks;
	capture__other_faults(s->capture, &h->other_user_faults, &h->other_kernel_faults);
	capture__calls(s->capture, &h->calls, &h->other_calls);
}

void session__tell_effect(struct session *s, u64 ts)
{
	struct effect effect;
	struct hits hits;

	count_hits(s, &hits);
	effect = effect__of(&s->prices, &hits);
	effect.class[CLASS_SAMPLE] += effect.stacks; /* most of them are samples' */
	for (u32 i = CLASS_FRAME; i < CLASS_COUNT; i++) {
		struct ev_effect e = {
			.hdr = {.ts = ts, .kind = EV_EFFECT, .words = sizeof(e) / 8},
			.class = i,
			.hits = hits.class[i],
			.ns = effect.class[i],
		};

		if (s->o->on[i] || i == CLASS_FRAME || e.ns)
			recording__append(&s->out, &e, sizeof(e));
	}
}

static void tell_others(struct session *s, u64 ts)
{
	struct effect e;
	struct hits h;
	u64 ns;

	count_hits(s, &h);
	e = effect__of(&s->prices, &h);
	ns = e.other_user_faults + e.other_kernel_faults + e.other_calls;
	meta__info(&s->out, ts, "cost.others", "user_faults=%llu kernel_faults=%llu ns=%llu calls=%llu",
		(unsigned long long)h.other_user_faults, (unsigned long long)h.other_kernel_faults,
		(unsigned long long)ns, (unsigned long long)h.other_calls);
}

/* ---- the governor ---- */

static u32 may_shed(const struct record_options *o)
{
	u32 may = SHED_BIT(SHED_STACK);

	/* with --alloc all the user has asked for every call */
	if (o->on[CLASS_ALLOC] && o->alloc == ALLOC_LARGE)
		may |= SHED_BIT(SHED_ALLOC);
	if (o->on[CLASS_FAULT])
		may |= SHED_BIT(SHED_KERNEL_FAULT);
	if (o->on[CLASS_SAMPLE])
		may |= SHED_BIT(SHED_SAMPLE);
	if (o->on[CLASS_FILE])
		may |= SHED_BIT(SHED_FILE);
	if (o->on[CLASS_LOCK] || o->on[CLASS_FILE] || o->on[CLASS_ALLOC] || o->on[CLASS_SYSCALL])
		may |= SHED_BIT(SHED_CALL);
	return o->stack ? may : may & ~SHED_BIT(SHED_STACK);
}

static void look_at(struct session *s, u64 ts, struct governor_look *l)
{
	struct effect *before = &s->effect_before, e;
	struct hits hits;

	count_hits(s, &hits);
	e = effect__of(&s->prices, &hits);
	*l = (struct governor_look){.ts = ts, .wall_ns = ts - s->effect_ts};
	l->ns[SHED_KERNEL_FAULT] = e.other_kernel_faults - before->other_kernel_faults;
	l->ns[SHED_ALLOC] = e.class[CLASS_ALLOC] - before->class[CLASS_ALLOC];
	l->ns[SHED_SAMPLE] = e.class[CLASS_SAMPLE] - before->class[CLASS_SAMPLE];
	l->ns[SHED_FILE] = e.class[CLASS_FILE] - before->class[CLASS_FILE];
	l->ns[SHED_CALL] = e.class[CLASS_SYSCALL] - before->class[CLASS_SYSCALL];
	l->ns[SHED_STACK] = e.stacks - before->stacks;
	for (int i = CLASS_FRAME; i < CLASS_COUNT; i++)
		if (i != CLASS_ALLOC && i != CLASS_SAMPLE && i != CLASS_FILE && i != CLASS_SYSCALL)
			l->fixed_ns += e.class[i] - before->class[i];
	s->effect_before = e;
	s->effect_ts = ts;
}

/* While they were gone, the game may have mapped and unmapped. */
static int apply_calls(struct session *s, u32 thin, bool out)
{
	int err;

	if (out)
		capture__thin(s->capture, thin);
	err = capture__syscalls(s->capture, !out);
	if (!out && !err) {
		capture__thin(s->capture, thin);
		startup__maps(&s->out, session__stamp(s), s->target.tgid);
	}
	return err;
}

static int apply(struct session *s, enum shed_step step, bool out)
{
	u32 thin = (s->governor.out & SHED_BIT(SHED_STACK) ? THIN_STACK : 0) |
		   (s->governor.out & SHED_BIT(SHED_FILE) ? THIN_FILE : 0) |
		   (s->governor.out & SHED_BIT(SHED_CALL) ? THIN_CALLS : 0);

	switch (step) {
	case SHED_KERNEL_FAULT:
		return capture__kernel_faults(s->capture, !out);
	case SHED_ALLOC:
		if (!out)
			return session__attach_again(s, PROBE_ALLOC);
		session__leave_out(s, PROBE_ALLOC);
		return 0;
	case SHED_SAMPLE:
		return capture__sample(s->capture, !out);
	case SHED_CALL:
		return apply_calls(s, thin, out);
	default:
		capture__thin(s->capture, thin);
		return 0;
	}
}

static void tell_class(struct session *s, enum ev_class class, const char *what, bool out)
{
	struct ev_shed e = {
		.hdr = {.kind = EV_SHED},
		.percent = (u64)llround(s->governor.percent),
		.class = class,
		.out = out,
	};

	e.hdr.ts = session__stamp(s);
	recording__append_text(&s->out, &e, sizeof(e), what, strlen(what));
}

static void tell_shed(struct session *s, enum shed_step step, bool out)
{
	tell_class(s, shed__class(step), shed_names[step], out);
	if (step == SHED_CALL && s->o->on[CLASS_FILE])
		tell_class(s, CLASS_FILE, "calls on files", out);
	if (step == SHED_CALL && s->o->on[CLASS_ALLOC])
		tell_class(s, CLASS_ALLOC, "calls that map memory", out);
}

/* Words come last: the game waits. What goes is told before it does, what comes back after it has: so no frame seems
 * whole that is not. */
static void change(struct session *s, enum shed_step step, bool out)
{
	u64 before = clock_boot_ns();
	int err;

	if (out)
		tell_shed(s, step, true);
	err = apply(s, step, out);
	if (err) {
		session__note(
			s, 1, shed__class(step), "%s cannot be recorded again: %s", shed_names[step], errstr(err));
		return;
	}
	if (!out)
		tell_shed(s, step, false);
	log_debug("%s: the change took %.1f ms", shed_names[step], (clock_boot_ns() - before) / 1e6);
	if (out)
		log_warn("%s are left out for %llu s: probes cost the game%s about %.1f %% of a CPU (--max-overhead "
			 "%g)",
			shed_names[step], (unsigned long long)(s->governor.pause_ns / NSEC_PER_SEC),
			step == SHED_KERNEL_FAULT ? ", and others by their faults," : "", s->governor.percent,
			s->governor.max_percent);
	else
		log_info("%s are recorded again", shed_names[step]);
}

/* It was called rarely, or not at all, when it was chosen. What the user has named stays. */
static void leave_hot_source(struct session *s, u64 ts)
{
	if (!s->have_frames || strcmp(s->o->frame, "auto") ||
		!stepped_rate__look(&s->stepped_rate, ts, capture__stepped_marks(s->capture)))
		return;
	session__note(s, 1, CLASS_FRAME,
		"%s has been called %llu times a second, each single-stepped: no frames are recorded from here on, "
		"unless another source is found; --frame %s records them at that cost",
		s->source, (unsigned long long)s->stepped_rate.calls_per_sec, s->source);
	session__replace_frame_source(s);
	s->stepped_rate = (struct stepped_rate){0};
}

void session__govern(struct session *s, u64 ts)
{
	u32 before = s->governor.out, changed;
	struct governor_look look;

	if (ts - s->effect_ts < GOVERNOR_TICK_NS)
		return;
	leave_hot_source(s, ts);
	look_at(s, ts, &look);
	changed = governor__look(&s->governor, &look) ^ before;
	for (int i = 0; i < SHED_STEPS; i++)
		if (changed & SHED_BIT(i))
			change(s, i, s->governor.out & SHED_BIT(i));
}

double session__effect_percent(const struct session *s)
{
	u64 ns = s->effect_before.stacks;

	for (int i = 0; i < CLASS_COUNT; i++)
		ns += s->effect_before.class[i];
	return s->stop > s->start ? 100.0 * (double)ns / (double)(s->stop - s->start) : 0;
}

/* ---- begin and end ---- */

void session__choose_rate(struct session *s)
{
	const struct record_options *o = s->o;

	if (!o->on[CLASS_SAMPLE])
		return;
	s->tick_ns = calibrate__tick();
	s->sample_hz = o->sample_auto ? effect__sample_hz(s->tick_ns, o->max_overhead) : o->sample_hz;
	log_debug("a timer's tick takes %.1f us: %u CPU samples a second", s->tick_ns / 1e3, s->sample_hz);
}

void session__begin_cost(struct session *s)
{
	u64 emulated, stepped, ts;

	calibrate__uprobes(s->capture, &emulated, &stepped);
	s->prices = effect__prices(emulated, stepped, s->tick_ns);
	s->effect_ts = clock_boot_ns();
	governor__init(&s->governor, s->o->max_overhead, may_shed(s->o));
	ts = session__stamp(s);
	meta__info(&s->out, ts, "cost.probe_ns", "%llu", (unsigned long long)s->prices.uprobe);
	meta__info(&s->out, ts, "cost.stepped_probe_ns", "%llu", (unsigned long long)s->prices.stepped);
	meta__info(&s->out, ts, "cost.tick_ns", "%llu", (unsigned long long)s->prices.tick);
	meta__info(&s->out, ts, "cost.calibrated", "%s", s->prices.calibrated ? "yes" : "no");
	meta__info(&s->out, ts, "cost.max_percent", "%g", s->o->max_overhead);
	if (!s->o->bpf_stats)
		return;
	s->stats_fd = capture__keep_stats();
	if (s->stats_fd < 0)
		session__note(s, 1, CLASS_META, "--bpf-stats: runs of the BPF programs are not counted: %s",
			errstr(s->stats_fd));
}

void session__end_cost(struct session *s)
{
	u64 ts = clock_boot_ns(), runs, ns;
	const char *name;
	char key[96];

	session__tell_effect(s, ts);
	tell_others(s, ts);
	for (int i = 0; s->stats_fd >= 0 && capture__runs(s->capture, i, &name, &runs, &ns); i++) {
		if (!runs)
			continue;
		snprintf(key, sizeof(key), "cost.program.%s", name);
		meta__info(&s->out, ts, key, "runs=%llu ns=%llu", (unsigned long long)runs, (unsigned long long)ns);
	}
}
