// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "jit.h"
#include "perf_map.h"
#include "recording.h"

static struct jit_code *find(const struct jit *j, u64 addr, u64 ts)
{
	return j->map && !dwfl_addrmodule(j->dwfl, addr) ? perf_map__find(j->map, addr, ts) : NULL;
}

bool jit__is_code(const struct jit *j, u64 addr, u64 ts)
{
	return find(j, addr, ts);
}

u32 jit__id(struct jit *j, u64 addr, u64 ts)
{
	struct jit_code *c = j->nameless ? NULL : find(j, addr, ts);
	struct ev_jit_symbol e = {.hdr = {.ts = j->ts, .kind = EV_JIT_SYMBOL}};
	const char *name;

	if (!c || c->id)
		return c ? c->id : 0;
	name = perf_map__name(j->map, c);
	e.id = c->id = ++j->n;
	e.addr = c->start;
	e.size = c->size;
	e.since = c->since;
	e.until = c->until;
	recording__append_text(j->w, &e, sizeof(e), name, strlen(name));
	return c->id;
}
