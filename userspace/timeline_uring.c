/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A wait in io_uring_enter is a wait for whatever completed in it: a read of a file, as a rule.
 */
#include <linux/io_uring.h>

#include "syscalls.h"
#include "timeline.h"

void uring__done(struct timeline *t, const struct ev_uring_done *e)
{
	t->done[t->n_done++ % TIMELINE_URING] = (struct completion){
		.ts = e->hdr.ts,
		.offset = e->offset,
		.ino = e->ino,
		.ret = e->ret,
		.dev = e->dev,
		.tid = e->hdr.tid,
		.op = (u8)min(e->op, 255u),
	};
}

static enum cause cause_of(u8 op)
{
	switch (op) {
	case IORING_OP_READV:
	case IORING_OP_READ_FIXED:
	case IORING_OP_READ:
		return CAUSE_FILE_READ;
	case IORING_OP_WRITEV:
	case IORING_OP_WRITE_FIXED:
	case IORING_OP_WRITE:
	case IORING_OP_FSYNC:
		return CAUSE_FILE_WRITE;
	default:
		return CAUSE_NONE;
	}
}

/* The last that completed within the call is the one that ended it; of two threads' own requests rather the thread's.
 */
static const struct completion *ended_by(const struct timeline *t, const struct span *s, u32 tid)
{
	const struct completion *found = NULL;

	for (u64 i = t->n_done; i-- > 0 && t->n_done - i <= TIMELINE_URING;) {
		const struct completion *c = &t->done[i % TIMELINE_URING];

		if (c->ts < s->start || c->ts > s->end || !c->ino || cause_of(c->op) == CAUSE_NONE)
			continue;
		if (c->tid == tid)
			return c;
		found = found ?: c;
	}
	return found;
}

void uring__wait(struct span *s, const struct timeline *t, u32 tid)
{
	const struct completion *c = ended_by(t, s, tid);

	if (!c)
		return;
	s->kind = cause_of(c->op) == CAUSE_FILE_READ ? EV_FILE_READ : EV_FILE_WRITE;
	s->blocked = s->running = (s8)cause_of(c->op);
	s->ino = c->ino;
	s->dev = c->dev;
	s->offset = c->offset;
	s->ret = c->ret;
	s->bytes = c->ret > 0 ? (u64)c->ret : 0;
	s->mode = 0;
}
