/* SPDX-License-Identifier: GPL-2.0-only */
#include "events_desc.h"
#include "merge.h"
#include "shedding.h"

#define TELL_NS (2 * NSEC_PER_MSEC) /* before the frame is explained in which it happened */

static const u8 order[] = {CLASS_SAMPLE, CLASS_IRQ, CLASS_ALLOC, CLASS_SYSCALL, CLASS_FAULT, CLASS_FILE, CLASS_LOCK,
	CLASS_RECLAIM, CLASS_SCHED};

u32 shedding__levels(void)
{
	return ARRAY_SIZE(order);
}

enum ev_class shedding__class(u32 level)
{
	return order[level - 1];
}

/* As records that the ring had no room for. */
static void tell(struct shedding *s, u64 ts, struct merge *to)
{
	for (u32 class = 0; class < CLASS_COUNT; class ++) {
		u64 since = min(s->since, ts);
		struct ev_lost lost = {.hdr = {.ts = ts, .kind = EV_LOST, .words = sizeof(lost) / 8},
			.class = class,
			.count = (u32)min(s->now[class], (u64)UINT32_MAX),
			.since = since};

		if (s->now[class])
			merge__push(to, &lost.hdr);
		s->now[class] = 0;
	}
	s->since = ts;
}

bool shedding__drops(struct shedding *s, const struct ev_hdr *rec, struct merge *to)
{
	const struct ev_desc *d = s->level ? ev__desc(rec->kind) : NULL;

	if (!s->level)
		return false;
	if (rec->ts > s->since && rec->ts - s->since > TELL_NS)
		tell(s, rec->ts, to);
	if (!d || d->shape == SHAPE_META || ev__is_definition(rec->kind))
		return false;
	for (u32 i = 0; i < s->level; i++) {
		if (order[i] != d->class)
			continue;
		s->now[d->class]++;
		s->total[d->class]++;
		return true;
	}
	return false;
}

void shedding__set(struct shedding *s, u32 level, u64 ts, struct merge *to)
{
	tell(s, ts, to);
	s->level = min(level, (u32)ARRAY_SIZE(order));
}
