// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"
#include "drain.h"
#include "intern.h"
#include "jit.h"
#include "kernel_stacks.h"
#include "recording.h"
#include "stacks.h"
#include "unwind.h"

#define CALLS_MAX (1u << 20) /* different ones; a game has some ten thousand */

struct call {
	u64 addr;
	u32 caller;
	u32 flags;
	u32 jit;
};

/* Chains share what they have in common: a tree, whose nodes are found by (caller, addr, flags, jit). */
struct tree {
	struct call *calls; /* by id - 1 */
	u32 *slots;         /* id, 0: free */
	u32 n, n_slots;     /* n_slots is a power of two */
	struct recording_writer *w;
	struct jit *jit;
	u64 ts;
};

static u32 *slot_of(const struct tree *t, const struct call *c)
{
	u32 i = hash64(c->addr ^ hash64((u64)c->caller << 32 | (c->jit ^ c->flags))) & (t->n_slots - 1);

	for (; t->slots[i]; i = (i + 1) & (t->n_slots - 1)) {
		const struct call *have = &t->calls[t->slots[i] - 1];

		if (have->addr == c->addr && have->caller == c->caller && have->flags == c->flags &&
			have->jit == c->jit)
			break;
	}
	return &t->slots[i];
}

static int grow(struct tree *t)
{
	u32 n = t->n_slots ? 2 * t->n_slots : 8192;
	struct call *calls = realloc(t->calls, n / 2 * sizeof(*calls));
	u32 *slots = calls ? calloc(n, sizeof(*slots)) : NULL;

	if (calls)
		t->calls = calls;
	if (!slots)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->n_slots = n;
	for (u32 i = 0; i < t->n; i++)
		*slot_of(t, &t->calls[i]) = i + 1;
	return 0;
}

/* Its id; 0: no room */
static u32 id_of(struct tree *t, const struct call *c)
{
	struct ev_call e = {.hdr = {.ts = t->ts, .kind = EV_CALL, .words = sizeof(e) / 8},
		.caller = c->caller,
		.addr = c->addr,
		.flags = c->flags,
		.jit = c->jit};
	u32 *slot;

	if (t->n >= t->n_slots / 2 && grow(t))
		return 0;
	slot = slot_of(t, c);
	if (*slot)
		return *slot;
	if (t->n == CALLS_MAX)
		return 0;
	t->calls[t->n++] = *c;
	*slot = e.id = t->n;
	return recording__append(t->w, &e, sizeof(e)) ? 0 : e.id;
}

/* outermost first, as of `at`; returns the innermost's id. flags: of each call, CALL_TRUNCATED of the outermost only */
static u32 chain_of(struct tree *t, const u64 *addrs, int n, u32 flags, u64 at)
{
	struct call c = {.flags = flags};
	u32 id = 0;

	while (n-- > 0) {
		c.addr = addrs[n];
		c.caller = id;
		c.jit = flags & CALL_KERNEL ? 0 : jit__id(t->jit, c.addr, at);
		id = id_of(t, &c);
		if (!id)
			return 0;
		c.flags = flags & ~(u32)CALL_TRUNCATED;
	}
	return id;
}

/* The STACK record is in the file already, with 0. */
static int fill_in(struct recording_writer *w, u64 at, u32 chain)
{
	errno = EIO; /* for a short write */
	if (pwrite(w->fd, &chain, sizeof(chain), (off_t)(at + offsetof(struct ev_stack, chain))) != sizeof(chain))
		return -errno;
	return 0;
}

static int unwind(struct tree *t, struct unwinder *u, const struct stack_entry *e, struct calls_result *out)
{
	u64 addrs[UNWIND_CALLS_MAX];
	bool truncated;
	int n = unwinder__walk(u, t->jit, &e->stack, addrs, &truncated);
	u32 chain = chain_of(t, addrs, n, truncated ? CALL_TRUNCATED : 0, e->stack.rec.hdr.ts);

	out->stacks++;
	out->truncated += truncated;
	out->failed += !n;
	out->beyond += n && !chain;
	return fill_in(t->w, e->at, chain); /* 0 as well: an attempt before this one may have failed */
}

static int write_kernel(struct tree *t, const struct kernel_stacks *kernel)
{
	int err = 0;

	for (u32 i = 0; i < kernel->n && !err; i++) {
		const struct kernel_stack *k = &kernel->v[i];
		struct ev_kstack e = {.hdr = {.ts = t->ts, .kind = EV_KSTACK, .words = sizeof(e) / 8}, .id = k->id};
		u32 cut = k->n == KERNEL_STACK_CALLS ? CALL_TRUNCATED : 0;

		e.chain = chain_of(t, k->addrs, (int)k->n, CALL_KERNEL | cut, 0);
		if (e.chain)
			err = recording__append(t->w, &e, sizeof(e));
	}
	return err;
}

int calls__write(struct recording_writer *w, struct stacks *s, const struct kernel_stacks *kernel, struct unwinder *u,
	struct jit *jit, u64 ts, struct calls_result *out)
{
	struct stack_entry *e = malloc(sizeof(*e) + STACK_ROOM);
	struct tree t = {.w = w, .jit = jit, .ts = ts};
	u64 begun = clock_boot_ns();
	int err = e ? recording__flush(w) : -ENOMEM, got = 0;

	*out = (struct calls_result){};
	if (!err)
		err = write_kernel(&t, kernel);
	if (!err)
		err = stacks__rewind(s);
	while (!err && (got = stacks__next(s, e)) > 0)
		err = unwind(&t, u, e, out);
	out->calls = t.n;
	out->ns = clock_boot_ns() - begun;
	free(t.calls);
	free(t.slots);
	free(e);
	return err ? err : got;
}
