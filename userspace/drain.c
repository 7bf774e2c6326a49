// SPDX-License-Identifier: GPL-2.0-only
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "capture.h"
#include "drain.h"
#include "bpf_options.h"
#include "recording.h"
#include "stacks.h"

#define SLICE_NS (100 * NSEC_PER_MSEC) /* well below MERGE_WINDOW_NS */

u64 clock_boot_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static void note_mark(struct drain *d, u64 ts)
{
	d->marks++;
	if (d->mark_ts && ts > d->mark_ts) {
		d->mark_ns = ts - d->mark_ts;
		d->worst_ns = max(d->worst_ns, d->mark_ns);
	}
	d->mark_ts = ts;
}

static void note_switch(struct drain *d, const struct ev_switch *e)
{
	u64 *runs = e->hdr.cpu < DRAIN_CPUS ? &d->runs[e->hdr.cpu] : NULL;

	if (runs) {
		d->unseen_switches += *runs && *runs - 1 != e->hdr.tid;
		*runs = 1 + (u64)e->next_tid;
	}
	d->game_switches += !!(e->flags & (SWITCH_GAME | SWITCH_NEXT_GAME));
	d->kernel_stacks += !!e->kstack;
}

int drain__take(void *arg, void *data, size_t size)
{
	struct drain_ring *ring = arg;
	struct drain *d = ring->drain;
	const struct ev_hdr *h = data;
	size_t bytes = h->words * 8u; /* a text record reserves more than it uses */

	if (bytes > size || bytes < sizeof(*h))
		return -EPROTO; /* the kernel side never writes such a record */
	if (d->until && h->ts > d->until)
		return 1;
	if (h->kind == EV_FRAME)
		note_mark(d, h->ts);
	if (h->kind == EV_STACK && d->stacks && size >= sizeof(struct stack_copy))
		stacks__add(d->stacks, d->out->bytes, data, size);
	d->records++;
	d->kinds[h->kind]++;
	if (h->kind == EV_SWITCH)
		note_switch(d, (const struct ev_switch *)h);
	ring->pass_bytes += size + RING_WORD;
	return recording__append(d->out, data, bytes);
}

static int open_rings(struct drain *d)
{
	u32 n = capture__rings(d->capture);

	d->rings = calloc(n, sizeof(*d->rings));
	for (u32 i = 0; d->rings && i < n; i++)
		d->rings[i].drain = d;
	return d->rings ? 0 : -ENOMEM;
}

int drain__open(struct drain *d, struct capture *c, struct recording_writer *out)
{
	int cpus = libbpf_num_possible_cpus();

	*d = (struct drain){.capture = c, .out = out, .ring_bytes = capture__ring_bytes(c), .last_ts = clock_boot_ns()};
	d->cpus = cpus > 0 ? min(cpus, LOST_CPUS) : LOST_CPUS;
	d->lost_before = calloc(CLASS_COUNT * d->cpus, sizeof(u64));
	if (!d->lost_before)
		return -ENOMEM;
	return open_rings(d);
}

int drain__tell_loss(struct drain *d, u32 class, u32 cpu, u64 n, u64 ts)
{
	struct ev_lost e = {
		.hdr = {.ts = ts, .cpu = (u16)cpu, .kind = EV_LOST, .words = sizeof(e) / 8},
		.class = class,
		.count = (u32)min(n, (u64)UINT32_MAX),
		.since = d->last_ts,
	};

	d->lost += n;
	d->lost_class[class] += n;
	return recording__append(d->out, &e, sizeof(e));
}

static int tell_losses(struct drain *d, u64 ts)
{
	int err = 0;

	for (u32 class = 0; class < CLASS_COUNT; class ++) {
		for (u32 cpu = 0; cpu < d->cpus; cpu++) {
			u64 *before = &d->lost_before[class * d->cpus + cpu];
			u64 total = capture__lost(d->capture, class, cpu), n = total - *before;

			if (n) {
				d->rings[capture__ring_of(d->capture, cpu)].lost += n;
				err = drain__tell_loss(d, class, cpu, n, ts);
			}
			*before = total;
		}
	}
	return err;
}

/* From all rings what lies in the same slice of time, then the next one: after a long pause the rings are far from each
 * other, and merge waits only so long. 0 or -errno. */
static int take_slices(struct drain *d, u64 now)
{
	u32 rings = capture__rings(d->capture);
	bool more = true;

	for (d->until = d->last_ts + SLICE_NS; more; d->until += SLICE_NS) {
		more = false;
		for (u32 i = 0; i < rings; i++) {
			int err = capture__consume(d->capture, i, drain__take, &d->rings[i]);

			if (err < 0)
				return err;
			more |= err && d->until < now;
		}
	}
	return 0;
}

int drain__pass(struct drain *d)
{
	u32 rings = capture__rings(d->capture);
	u64 ts = clock_boot_ns();
	int err, told;

	d->wakeups++;
	d->pass_bytes = 0;
	err = take_slices(d, ts);
	for (u32 i = 0; i < rings; i++) {
		d->pass_bytes = max(d->pass_bytes, d->rings[i].pass_bytes);
		d->rings[i].pass_bytes = 0;
	}
	told = tell_losses(d, ts);
	d->last_ts = ts;
	return err ?: told;
}

int drain__pause_ms(const struct drain *d)
{
	/* at the pace of the last pass, the ring is an eighth full after the pause at most; and a wakeup takes a CPU
	 * from the game: where next to nothing comes, half as many do */
	return d->pass_bytes > d->ring_bytes / 8     ? 1
	       : d->pass_bytes > d->ring_bytes / 32  ? 2
	       : d->pass_bytes > d->ring_bytes / 256 ? 5
						     : 10;
}

void drain__close(struct drain *d)
{
	free(d->lost_before);
	free(d->rings);
	*d = (struct drain){};
}
