// SPDX-License-Identifier: GPL-2.0-only
/* When recording has ended: where in the code its events happened. */
#include <errno.h>

#include "calls.h"
#include "capture.h"
#include "bpf_options.h"
#include "log.h"
#include "modules.h"
#include "session.h"
#include "sources.h"
#include "startup.h"
#include "symbolize.h"
#include "pe_modules.h"

void session__open_stacks(struct session *s)
{
	int err = s->o->stack && !s->stacks.sink ? stacks__open(&s->stacks, s->out.fd) : 0;

	if (err)
		session__note(s, 1, CLASS_META, "no call chains are recorded: %s", errstr(err));
	s->drain.stacks = s->o->stack && !err ? &s->stacks : NULL;
}

static void tell_stacks(struct session *s, const struct calls_result *r)
{
	u64 skipped[STACK_SKIPS], taken = capture__stacks(s->capture, skipped), all = s->stacks.dropped;
	u64 ts = clock_boot_ns(), no_room = s->stacks.dropped + r->beyond, unwound = r->stacks - r->failed, without;

	for (int i = 0; i < STACK_SKIPS; i++)
		all += skipped[i];
	meta__info(&s->out, ts, "stacks.taken", "%llu", (unsigned long long)taken);
	meta__info(&s->out, ts, "stacks.unwound", "%llu", (unsigned long long)unwound);
	meta__info(&s->out, ts, "stacks.truncated", "%llu", (unsigned long long)r->truncated);
	meta__info(&s->out, ts, "stacks.skipped", "%llu", (unsigned long long)all);
	log_debug("%llu stacks: %u calls, %llu truncated, %llu skipped, unwound in %.0f ms",
		(unsigned long long)r->stacks, r->calls, (unsigned long long)r->truncated, (unsigned long long)all,
		r->ns / 1e6);
	without = all + r->beyond;
	if (!without)
		return;
	session__note(s, 0, CLASS_META,
		"%llu events have no call chain: over a thread's budget of %u a second %llu, over the game's of %u "
		"%llu, the ring was half full %llu, no room %llu",
		(unsigned long long)without, CAPTURE_STACKS_PER_THREAD, (unsigned long long)skipped[STACK_SKIP_THREAD],
		CAPTURE_STACKS_PER_SECOND, (unsigned long long)skipped[STACK_SKIP_GAME],
		(unsigned long long)skipped[STACK_SKIP_RING], (unsigned long long)no_room);
}

static void unwind_stacks(struct session *s, Dwfl *dwfl, u64 ts)
{
	struct calls_result r = {};
	int err = calls__write(&s->out, &s->stacks, dwfl, ts, &r);

	if (err && err != s->out.error)
		session__note(s, 1, CLASS_META, "not all call chains could be found: %s", errstr(err));
	tell_stacks(s, &r);
}

static void name_addresses(struct session *s, Dwfl *dwfl, const struct pe_modules *pe, u64 ts)
{
	struct symbolize_result r;
	int err = symbolize__write(&s->out, dwfl, pe, ts, &r);

	if (err && err != s->out.error)
		session__note(s, 1, CLASS_META, "addresses stay without names: %s", errstr(err));
	if (r.beyond)
		session__note(s, 1, CLASS_META, "%u addresses stay without names: too many", r.beyond);
	log_debug("%u of %u addresses have names, %u a line", r.named, r.addresses, r.lines);
}

void session__name_code(struct session *s)
{
	u64 ts = clock_boot_ns();
	struct pe_modules pe = {};
	Dwfl *dwfl;

	images__refresh(&s->images, s->target.tgid);
	dwfl = modules__open(&s->images);
	if (!dwfl || pe_modules__open(&pe, &s->images)) {
		dwfl_end(dwfl);
		session__note(s, 1, CLASS_META, "addresses stay without names: %s", errstr(-ENOMEM));
		return;
	}
	if (s->drain.stacks)
		unwind_stacks(s, dwfl, ts);
	modules__write(&s->out, dwfl, ts); /* its error stays in s->out */
	pe_modules__write(&s->out, &pe, ts);
	if (!s->o->no_symbols)
		name_addresses(s, dwfl, &pe, ts);
	pe_modules__close(&pe);
	dwfl_end(dwfl);
}

int session__name_segment(struct session *s, struct recording_writer *w, struct stacks *stacks)
{
	struct symbolize_result named;
	struct calls_result calls;
	struct pe_modules pe = {};
	u64 ts = clock_boot_ns();
	Dwfl *dwfl = modules__open(&s->images);
	int err = dwfl ? pe_modules__open(&pe, &s->images) : -ENOMEM;

	if (!err && stacks->n)
		err = calls__write(w, stacks, dwfl, ts, &calls);
	if (!err)
		err = modules__write(w, dwfl, ts);
	if (!err)
		err = pe_modules__write(w, &pe, ts);
	if (!err && !s->o->no_symbols)
		err = symbolize__write(w, dwfl, &pe, ts, &named);
	pe_modules__close(&pe);
	if (dwfl)
		dwfl_end(dwfl);
	return err;
}
