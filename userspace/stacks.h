/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Copied stacks on their way from the ring to the unwinder: a file without a name beside the recording, for they are
 * large, hold whatever the game had on its stacks, and only their call chains are kept.
 */
#ifndef REDFRAME_STACKS_H
#define REDFRAME_STACKS_H

#include "common.h"
#include "stack.h"

#define STACKS_MAX_BYTES (4ull << 30)

struct stacks {
	int fd; /* -1: none is kept */
	char *buf;
	size_t used;
	u64 bytes; /* written and in the buffer */
	u64 n, dropped;
	int error; /* the first -errno; nothing is kept after it */
	void (*sink)(void *arg, const struct stack_copy *c, size_t size); /* takes each in place of the file; NULL */
	void *sink_arg;
};

/* What the file holds of each: then stack.bytes of the stack. */
struct stack_entry {
	u64 at; /* offset of its STACK record in the recording */
	struct stack_copy stack;
};

/* beside: the recording's descriptor. 0 or -errno: then the others do nothing. */
int stacks__open(struct stacks *s, int beside);
/* A stack_copy of `size` bytes whose STACK record lies at `at`. One that cannot be kept is counted in dropped. */
void stacks__add(struct stacks *s, u64 at, const struct stack_copy *c, size_t size);
/* The first entry, then the next of each call: 1, 0 at the end, -errno. `e` has room for STACK_ROOM bytes behind it. */
int stacks__rewind(struct stacks *s);
int stacks__next(struct stacks *s, struct stack_entry *e);
void stacks__close(struct stacks *s);

#endif
