/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A request is a write to a pipe or socket, and the read after it waits for the reply. A server works at one request at
 * a time and replies at its end, so what it does meanwhile is for that one: of the threads that are in the midst of a
 * request, the one that gets its reply first. Messages of one thread do not overlap.
 */
#include <sys/stat.h>

#include "relay.h"

#define LOOK_AROUND 64 /* spans of a thread between which its messages are looked for */

struct request {
	const struct span *write, *reply; /* NULL: in none */
};

static bool is_message(const struct span *s)
{
	return (s->kind == EV_FILE_WRITE || s->kind == EV_FILE_READ) && (S_ISFIFO(s->mode) || S_ISSOCK(s->mode));
}

/* the first message from i on, or before i; NULL: none near */
static const struct span *message(const struct fifo *spans, u32 i, int step)
{
	u32 k = step < 0 ? i - 1 : i;

	for (int n = 0; n < LOOK_AROUND && k < spans->n; n++, k += step)
		if (is_message(fifo__at(spans, k)))
			return fifo__at(spans, k);
	return NULL;
}

/* What a thread was in the midst of at that moment. */
static struct request request_at(const struct fifo *spans, u64 at)
{
	u32 i = fifo__after(spans, at);
	const struct span *write = message(spans, i, -1), *reply = message(spans, i, 1);

	if (reply && reply->kind == EV_FILE_WRITE && reply->start <= at) { /* the server was faster than its return */
		write = reply;
		reply = message(spans, fifo__after(spans, write->end), 1);
	}
	if (!write || !reply || write->kind != EV_FILE_WRITE || reply->kind != EV_FILE_READ)
		return (struct request){};
	return (struct request){write, reply};
}

/* The stretch off the CPU that a thread was in at that moment, or left last. */
static const struct off *off_before(const struct timeline *t, u32 tid, u64 at)
{
	const struct line *l = timeline__line(t, tid);
	u32 i = l ? fifo__after(&l->offs, at) : 0;
	const struct off *next = l && i < l->offs.n ? fifo__at(&l->offs, i) : NULL;

	if (next && next->out <= at)
		return next;
	return i ? fifo__at(&l->offs, i - 1) : NULL;
}

/* Not a request to another: the server did not sleep on when it was written, nor did another thread wake the asker. */
static bool may_serve(const struct timeline *t, u32 server, u32 asker, const struct request *r)
{
	const struct off *asleep = off_before(t, server, r->write->end);
	const struct off *waited = off_before(t, asker, r->reply->end);

	if (asleep && asleep->wake > r->write->end)
		return false;
	return !waited || waited->out < r->reply->start || !waited->waker || waited->waker == server;
}

/* Who woke the server last, if that was a thread of the game. */
static u32 woken_by(const struct timeline *t, const struct model *m, u32 server, u64 at)
{
	const struct off *o = off_before(t, server, at);

	return o && o->wake <= at && model__recorded(m, o->waker) ? o->waker : 0;
}

u32 relay__asker(const struct timeline *t, const struct model *m, u32 server, u32 waiter, u64 wake)
{
	const struct line *self = timeline__line(t, waiter);
	u64 first = TIME_OPEN;
	u32 asker = 0;

	if (self && request_at(&self->spans, wake).reply) /* it waits for the reply to its own request */
		return 0;
	for (u32 i = 0; i < t->n_slots; i++) {
		const struct line *l = t->lines[i];
		struct request r = l && l->tid != waiter ? request_at(&l->spans, wake) : (struct request){};

		if (r.reply && r.reply->end < first && model__recorded(m, l->tid) && may_serve(t, server, l->tid, &r)) {
			first = r.reply->end;
			asker = l->tid;
		}
	}
	if (!asker)
		asker = woken_by(t, m, server, wake);
	return asker == waiter ? 0 : asker;
}
