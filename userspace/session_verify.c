// SPDX-License-Identifier: GPL-2.0-only
/* record --verify: all that recorded is taken on and off once more, but for the frames, and the frame times compared.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "capture.h"
#include "log.h"
#include "session.h"
#include "startup.h"
#include "toggle.h"

#define PAIRS    8
#define BLOCK_NS (300 * NSEC_PER_MSEC)

struct verify {
	struct session *s;
	struct frame_times frames;
	bool on;
};

static int set(void *arg, bool on)
{
	struct verify *v = arg;

	v->on = on;
	preload__pause(&v->s->preload, !on);
	if (on)
		return capture__resume(v->s->capture, &v->s->sites);
	capture__pause(v->s->capture);
	return 0;
}

static void empty(void *arg)
{
	struct verify *v = arg;

	capture__consume_all(v->s->capture, frame_times__take, &v->frames); /* drain has emptied them for good */
	preload__pause(&v->s->preload, !v->on);                             /* what is in its rings */
}

static bool over(void *arg)
{
	struct verify *v = arg;

	return session__interrupted(v->s) || !target__alive(&v->s->target);
}

static int measure(struct verify *v, struct toggle_result *r)
{
	const struct toggle t = {
		.set = set, .empty = empty, .over = over, .arg = v, .pairs = PAIRS, .block_ns = BLOCK_NS};
	int err = target__alive(&v->s->target) ? 0 : -ESRCH;

	if (!err)
		err = capture__attach_sites_again(v->s->capture, &v->s->sites, PROBE_FRAME);
	if (!err)
		err = toggle__measure(&t, &v->frames, r);
	capture__detach(v->s->capture);
	return err;
}

static void tell(struct session *s, const struct toggle_result *r)
{
	const struct shift *k = &r->shift;

	meta__info(&s->out, clock_boot_ns(), "cost.measured",
		"measurable=%d change_ms=%.6f low_ms=%.6f high_ms=%.6f confidence=%.4f median_ms=%.6f pairs=%u",
		k->measurable, k->estimate, k->low, k->high, k->confidence, r->median_ms, r->pairs);
	snprintf(s->verified, sizeof(s->verified),
		"recording changes the median frame of %.3f ms by %+.3f ms, %+.2f %% (%.1f %%: %+.3f to %+.3f ms)%s",
		r->median_ms, k->estimate, 100 * k->estimate / r->median_ms, 100 * k->confidence, k->low, k->high,
		k->measurable ? "" : ": not measurable");
}

void session__verify(struct session *s)
{
	struct verify *v = calloc(1, sizeof(*v));
	struct toggle_result r;
	int err = -ENOMEM;

	if (v) {
		v->s = s;
		log_info("measuring what recording does to the frame time; Ctrl-C ends");
		err = measure(v, &r);
	}
	if (!err) {
		tell(s, &r);
	} else {
		const char *why = err == -ESRCH     ? "the game has ended"
				  : err == -ENODATA ? "too few frames"
						    : errstr(err);

		meta__info(&s->out, clock_boot_ns(), "cost.measured", "not measured: %s", why);
		snprintf(s->verified, sizeof(s->verified), "not measured: %s", why);
	}
	free(v);
}
