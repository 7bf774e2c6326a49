// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <unistd.h>

#include "drain.h"
#include "toggle.h"

#define SETTLE_NS    (100 * NSEC_PER_MSEC) /* after a change: attaching disturbs the game itself */
#define FRAMES_LEAST 3                     /* in a block: with fewer it has no median worth the name */
#define BLOCK_LONGER 9                     /* so many lengths are waited for these */
#define LOOK_US      2000

int frame_times__take(void *arg, void *data, size_t size)
{
	const struct ev_frame *e = data;
	struct frame_times *f = arg;

	if (size < sizeof(*e) || e->hdr.kind != EV_FRAME)
		return 0;
	if (!f->first.hdr.kind)
		f->first = *e;
	if (e->hdr.tid != f->first.hdr.tid || e->stream != f->first.stream || e->mark != f->first.mark)
		return 0;
	if (f->last >= f->not_before && e->hdr.ts > f->last && f->n < TOGGLE_FRAMES)
		f->ms[f->n++] = (double)(e->hdr.ts - f->last) / 1e6;
	f->last = e->hdr.ts;
	return 0;
}

/* The median frame time of one block; 0: too few frames. */
static double block(const struct toggle *t, struct frame_times *f)
{
	u64 end, ts;

	f->not_before = clock_boot_ns() + SETTLE_NS;
	end = f->not_before + t->block_ns;
	t->empty(t->arg);
	f->n = 0;
	while (!t->over(t->arg)) {
		ts = clock_boot_ns();
		if (ts >= (f->n < FRAMES_LEAST ? end + BLOCK_LONGER * t->block_ns : end))
			break;
		usleep(LOOK_US);
		t->empty(t->arg);
	}
	return f->n < FRAMES_LEAST ? 0 : paired__median(f->ms, f->n);
}

/* without, with; with, without; …: what drifts slowly cancels out, and each change serves two blocks */
int toggle__measure(const struct toggle *t, struct frame_times *f, struct toggle_result *out)
{
	double difference[PAIRED_MAX], without[PAIRED_MAX];
	int err = t->set(t->arg, false);
	bool on = false;

	*out = (struct toggle_result){0};
	for (u32 i = 0; i < t->pairs && !err; i++) {
		double ms[2];

		for (int k = 0; k < 2 && !err; k++) {
			bool want = (k == 1) != (i % 2 == 1);

			err = want != on ? t->set(t->arg, want) : 0;
			on = want;
			ms[want] = err ? 0 : block(t, f);
		}
		if (!err && (!ms[0] || !ms[1]))
			err = -ENODATA;
		if (err)
			break;
		without[i] = ms[0];
		difference[i] = ms[1] - ms[0];
	}
	t->set(t->arg, false);
	if (err)
		return err;
	out->shift = paired__shift(difference, t->pairs);
	out->pairs = t->pairs;
	out->median_ms = paired__median(without, t->pairs);
	return 0;
}
