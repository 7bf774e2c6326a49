/* SPDX-License-Identifier: GPL-2.0-only */
#include "model.h"
#include "names.h"
#include "spending.h"

static void add_lock(struct spending *s, const struct model *m, const struct ev_lock_wait *w)
{
	const struct frame_stream *of;
	u32 owner;

	if (lock__cause(lock__classify(m, w, &owner)) != CAUSE_LOCK_WAIT)
		return;
	for (u32 id = 0; id < SPENDING_STREAMS && (of = model__stream(m, id)); id++)
		if (of->tid == w->hdr.tid)
			s->lock_ns[id] += w->dur;
}

void spending__record(struct spending *s, const struct model *m, const struct ev_hdr *rec)
{
	u64 *sum = s->sum.of;

	switch (rec->kind) {
	case EV_ALLOC:
		sum[LIMIT_ALLOCS] += model__recorded(m, rec->tid);
		sum[LIMIT_ALLOC] += model__recorded(m, rec->tid) ? ((const struct ev_alloc *)rec)->size : 0;
		break;
	case EV_ALLOC_SUM:
		if (!model__recorded(m, rec->tid))
			break;
		sum[LIMIT_ALLOCS] += ((const struct ev_alloc_sum *)rec)->calls;
		sum[LIMIT_ALLOC] += ((const struct ev_alloc_sum *)rec)->bytes;
		break;
	case EV_FAULT:
		sum[LIMIT_FAULTS] += model__recorded(m, rec->tid);
		break;
	case EV_FILE_READ:
		sum[LIMIT_COLD] += model__recorded(m, rec->tid) ? ((const struct ev_file_read *)rec)->cold : 0;
		break;
	case EV_LOCK_WAIT:
		add_lock(s, m, (const struct ev_lock_wait *)rec);
		break;
	}
}

void spending__frame_ended(struct spending *s, const struct frame *f)
{
	u32 id = f->stream->id;
	struct spent *d = &s->ended[(s->first + s->n) % SPENDING_FRAMES];
	struct amounts sum = s->sum;

	if (s->n == SPENDING_FRAMES)
		return; /* explain gives them out long before */
	s->n++;
	*d = (struct spent){.stream = id, .index = f->index};
	d->did.of[LIMIT_FRAME] = f->end - f->start;
	if (id >= SPENDING_STREAMS)
		return;
	sum.of[LIMIT_LOCK] = s->lock_ns[id];
	for (int i = LIMIT_ALLOC; i < LIMIT_KINDS; i++)
		d->did.of[i] = sum.of[i] - s->before[id].of[i];
	s->before[id] = sum;
}

struct amounts spending__take(struct spending *s, const struct frame *f)
{
	const struct spent *d = &s->ended[s->first];
	struct amounts none = {.of = {[LIMIT_FRAME] = f->end - f->start}};

	if (!s->n || d->stream != f->stream->id || d->index != f->index)
		return none;
	s->first = (s->first + 1) % SPENDING_FRAMES;
	s->n--;
	return d->did;
}
