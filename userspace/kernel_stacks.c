// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "kallsyms.h"
#include "kernel_stacks.h"

static int add(struct kernel_stacks *s, u32 id, const u64 *ips)
{
	struct kernel_stack *to;

	if (!(s->n & (s->n - 1))) {
		to = realloc(s->v, (s->n ? 2 * s->n : 1) * sizeof(*to));
		if (!to)
			return -ENOMEM;
		s->v = to;
	}
	to = &s->v[s->n++];
	*to = (struct kernel_stack){.id = id};
	/* return addresses point behind the call */
	while (to->n < KERNEL_STACK_CALLS && ips[to->n]) {
		to->addrs[to->n] = ips[to->n] - 1;
		to->n++;
	}
	return 0;
}

int kernel_stacks__read(struct kernel_stacks *s, const struct capture *c)
{
	u64 ips[KERNEL_STACK_CALLS];
	u32 place = ~0U;
	int err = 0;

	*s = (struct kernel_stacks){};
	while (!err && capture__next_kernel_stack(c, &place, ips))
		err = add(s, place + 1, ips);
	return err;
}

#define SCHEDULER_NEAR 8 /* the tracepoint's own functions come first */

void kernel_stacks__trim(struct kernel_stacks *s, const struct kallsyms *k)
{
	for (u32 i = 0; i < s->n; i++) {
		struct kernel_stack *st = &s->v[i];
		u32 cut = 0;

		for (u32 j = 0; j < st->n && j < SCHEDULER_NEAR; j++) {
			const char *name = kallsyms__name(k, st->addrs[j]);

			if (name && (!strcmp(name, "schedule") || !strcmp(name, "__schedule")))
				cut = j + 1;
		}
		if (cut == st->n)
			continue;
		st->n -= cut;
		memmove(st->addrs, st->addrs + cut, st->n * sizeof(*st->addrs));
	}
}

u64 *kernel_stacks__addresses(const struct kernel_stacks *s, u32 *n)
{
	u64 *all = s->n ? malloc(s->n * sizeof(s->v->addrs)) : NULL;

	*n = 0;
	for (u32 i = 0; all && i < s->n; i++) {
		memcpy(all + *n, s->v[i].addrs, s->v[i].n * sizeof(*all));
		*n += s->v[i].n;
	}
	return all;
}

void kernel_stacks__free(struct kernel_stacks *s)
{
	free(s->v);
	*s = (struct kernel_stacks){};
}
