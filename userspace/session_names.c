// SPDX-License-Identifier: GPL-2.0-only
/* When recording has ended: where in the code its events happened. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apart.h"
#include "calls.h"
#include "capture.h"
#include "debug_server.h"
#include "jit.h"
#include "bpf_options.h"
#include "kallsyms.h"
#include "kernel_stacks.h"
#include "log.h"
#include "modules.h"
#include "session.h"
#include "sources.h"
#include "startup.h"
#include "strings.h"
#include "symbolize.h"
#include "unwind.h"

#define NAMES_SECONDS 120 /* for all; the time that a server of debug data takes is the user's own choice */
#define NAMES_TRIES   8

void session__open_stacks(struct session *s)
{
	int err = s->o->stack && !s->stacks.sink ? stacks__open(&s->stacks, s->out.fd) : 0;

	if (err)
		session__note(s, 1, CLASS_META, "no call chains are recorded: %s", errstr(err));
	s->drain.stacks = s->o->stack && !err ? &s->stacks : NULL;
	if (!s->o->kernel_stacks || s->o->no_symbols)
		return;
	s->kallsyms_fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	if (s->kallsyms_fd < 0)
		s->kallsyms_fd = -errno;
}

/* "12 events have no call chain: no room 12" */
static void note_missing(
	struct session *s, enum ev_class class, u64 n, const char *what, const struct tally_row *rows, size_t n_rows)
{
	struct str why = {};

	str__tallies(&why, rows, n_rows);
	if (n)
		session__note(s, 0, class, "%llu %s: %s", (unsigned long long)n, what, why.s ?: "");
	str__free(&why);
}

#define TEXT_OF(number)     #number
#define BUDGET(whose, most) "over " whose " budget of " TEXT_OF(most) " a second"

static void tell_stacks(struct session *s, const struct calls_result *r)
{
	u64 skipped[STACK_SKIPS], taken = capture__stacks(s->capture, skipped), all = s->stacks.dropped;
	u64 ts = clock_boot_ns(), unwound = r->stacks - r->failed;

	for (int i = 0; i < STACK_SKIPS; i++)
		all += skipped[i];
	meta__info(&s->out, ts, "stacks.taken", "%llu", (unsigned long long)taken);
	meta__info(&s->out, ts, "stacks.unwound", "%llu", (unsigned long long)unwound);
	meta__info(&s->out, ts, "stacks.truncated", "%llu", (unsigned long long)r->truncated);
	meta__info(&s->out, ts, "stacks.skipped", "%llu", (unsigned long long)all);
	log_debug("%llu stacks: %u calls, %llu truncated, %llu skipped, unwound in %.0f ms",
		(unsigned long long)r->stacks, r->calls, (unsigned long long)r->truncated, (unsigned long long)all,
		r->ns / 1e6);
	const struct tally_row rows[] = {
		{BUDGET("a thread's", CAPTURE_STACKS_PER_THREAD), skipped[STACK_SKIP_THREAD]},
		{BUDGET("the game's", CAPTURE_STACKS_PER_SECOND), skipped[STACK_SKIP_GAME]},
		{"the ring was half full", skipped[STACK_SKIP_RING]},
		{"no room", s->stacks.dropped + r->beyond},
	};

	note_missing(s, CLASS_META, all + r->beyond, "events have no call chain", rows, ARRAY_SIZE(rows));
}

static void tell_kernel_stacks(struct session *s, const struct kernel_stacks *k)
{
	u64 skipped[KERNEL_STACK_SKIPS], all = 0, ts = clock_boot_ns();

	capture__kernel_stack_skips(s->capture, skipped);
	for (int i = 0; i < KERNEL_STACK_SKIPS; i++)
		all += skipped[i];
	meta__info(&s->out, ts, "stacks.kernel", "%u", k->n);
	meta__info(&s->out, ts, "stacks.kernel_skipped", "%llu", (unsigned long long)all);
	const struct tally_row rows[] = {
		{BUDGET("a CPU's", CAPTURE_KERNEL_STACKS_PER_SECOND), skipped[KERNEL_STACK_BUDGET]},
		{"its place was taken by another", skipped[KERNEL_STACK_COLLISION]},
		{"not to be had", skipped[KERNEL_STACK_FAILED]},
	};

	note_missing(s, CLASS_SCHED, all, "blocking waits have no kernel stack", rows, ARRAY_SIZE(rows));
}

/* How the kernel says who may see its addresses; -1: it does not. */
static int kptr_restrict(void)
{
	FILE *f = fopen("/proc/sys/kernel/kptr_restrict", "re");
	int value = -1;

	if (f && fscanf(f, "%d", &value) != 1)
		value = -1;
	if (f)
		fclose(f);
	return value;
}

/* Once: the list is long, and a soak run names the stacks of each segment. */
static const struct kallsyms *kernel_names(struct session *s)
{
	int err;

	if (s->kallsyms_read)
		return &s->kallsyms;
	s->kallsyms_read = true;
	if (s->kallsyms_fd >= 0)
		lseek(s->kallsyms_fd, 0, SEEK_SET); /* a process before this one that failed has read it */
	err = kallsyms__read(&s->kallsyms, s->kallsyms_fd);
	s->kallsyms_fd = -1;
	if (err == -EACCES)
		session__note(s, 0, CLASS_SCHED,
			"kernel stacks have no names: /proc/kallsyms shows no addresses here (kernel.kptr_restrict is "
			"%d)",
			kptr_restrict());
	else if (err)
		session__note(s, 0, CLASS_SCHED, "kernel stacks have no names: /proc/kallsyms: %s", errstr(err));
	return &s->kallsyms;
}

static int read_kernel_stacks(struct session *s, struct kernel_stacks *k)
{
	int err = kernel_stacks__read(k, s->capture);

	if (!err && k->n && !s->o->no_symbols)
		kernel_stacks__trim(k, kernel_names(s));
	return err;
}

static int name_kernel_stacks(struct session *s, struct recording_writer *w, const struct kernel_stacks *k, u64 ts)
{
	u32 n = 0;
	u64 *addrs;
	int err;

	if (!k->n || s->o->no_symbols)
		return 0;
	addrs = kernel_stacks__addresses(k, &n);
	err = kallsyms__write(kernel_names(s), w, ts, addrs, n);
	free(addrs);
	return err;
}

static void write_chains(struct session *s, struct jit *jit, u64 ts)
{
	struct calls_result r = {};
	struct unwinder *u = NULL;
	struct kernel_stacks k;
	int err = read_kernel_stacks(s, &k);

	if (!err)
		err = name_kernel_stacks(s, &s->out, &k, ts);
	if (!err && s->stacks.fd >= 0)
		err = unwinder__new(&u, jit->dwfl);
	if (!err)
		err = calls__write(&s->out, &s->stacks, &k, u, jit, ts, &r);
	if (err && err != s->out.error)
		session__note(s, 1, CLASS_META, "not all call chains could be found: %s", errstr(err));
	unwinder__free(u);
	if (s->drain.stacks)
		tell_stacks(s, &r);
	if (s->o->on[CLASS_SCHED] && s->o->kernel_stacks)
		tell_kernel_stacks(s, &k);
	kernel_stacks__free(&k);
}

/* It is no file's, and came when the first such probe was hit: nothing else in the recording tells of it. */
static int name_uprobes(const struct images *im, struct recording_writer *w, u64 ts)
{
	struct ev_symbol e = {.hdr = {.ts = ts, .kind = EV_SYMBOL}, .addr = im->uprobes, .size = 4096};

	return im->uprobes ? recording__append_text(w, &e, sizeof(e), UPROBES_NAME, strlen(UPROBES_NAME)) : 0;
}

static void name_addresses(struct session *s, const struct pe_modules *pe, struct jit *jit, u64 ts)
{
	struct symbolize_result r;
	int err = symbolize__write(&s->out, jit->dwfl, pe, jit, ts, &r);

	if (err && err != s->out.error)
		session__note(s, 1, CLASS_META, "addresses stay without names: %s", errstr(err));
	if (r.beyond)
		session__note(s, 1, CLASS_META, "%u addresses stay without names: too many", r.beyond);
	log_debug("%u of %u addresses have names, %u a line", r.named, r.addresses, r.lines);
}

/* what the game's map of code made at run time has until now */
static void finish_perf_map(struct session *s, u64 ts)
{
	struct perf_map *p = &s->perf_map;
	int err;

	perf_map__refresh(p, s->target.tgid, ts);
	err = p->error ? p->error : perf_map__settle(p);
	log_debug("%u codes made at run time in /tmp/%s, %llu bytes", p->n, p->base, (unsigned long long)p->read);
	if (p->refused)
		session__note(s, 1, CLASS_META, "/tmp/%s of the game is left alone: %s", p->base, p->refused);
	if (p->bad || p->beyond)
		session__note(s, 1, CLASS_META, "/tmp/%s of the game: %u lines make no sense, for %u there is no room",
			p->base, p->bad, p->beyond);
	if (err)
		session__note(s, 1, CLASS_META, "code made at run time stays without names: %s", errstr(err));
}

static void name_code(void *arg)
{
	struct session *s = arg;
	u64 ts = clock_boot_ns();
	struct jit jit = {.map = &s->perf_map, .w = &s->out, .ts = ts, .nameless = s->o->no_symbols};
	Dwfl *dwfl = modules__open(&s->images);
	struct pe_modules pe = {};
	char why[256];

	if (!dwfl || pe_modules__open(&pe, &s->images)) {
		dwfl_end(dwfl);
		session__note(s, 1, CLASS_META, "addresses stay without names: %s", errstr(-ENOMEM));
		return;
	}
	jit.dwfl = dwfl;
	write_chains(s, &jit, ts);
	modules__write(&s->out, dwfl, ts); /* its error stays in s->out */
	pe_modules__write(&s->out, &pe, ts);
	name_uprobes(&s->images, &s->out, ts); /* its error too */
	if (!s->o->no_symbols)
		name_addresses(s, &pe, &jit, ts);
	if (debug_server__gave_up(why, sizeof(why)))
		session__note(s, 0, CLASS_META, "%s", why);
	pe_modules__close(&pe);
	dwfl_end(dwfl);
}

/* the image that an address lies in, or the one below it; NULL: none */
static struct image *image_at(struct images *im, u64 addr)
{
	struct image *best = NULL;

	for (int i = 0; i < im->n; i++)
		if (im->v[i].start <= addr && (!best || im->v[i].start > best->start))
			best = &im->v[i];
	return best;
}

/* Again without the image that it failed on. */
void session__name_code(struct session *s)
{
	struct apart a = {.work = name_code,
		.arg = s,
		.result = &s->notes,
		.result_bytes = sizeof(s->notes),
		.seconds = getenv("DEBUGINFOD_URLS") ? 0 : NAMES_SECONDS};
	int err = -EPROTO;

	images__refresh(&s->images, s->target.tgid);
	finish_perf_map(s, clock_boot_ns());
	for (int tries = 0; err == -EPROTO && tries < NAMES_TRIES; tries++) {
		struct image *im;

		err = apart__run(&a, &s->out);
		im = err == -EPROTO ? image_at(&s->images, a.at) : NULL;
		if (im && !im->refused)
			session__note(s, 1, CLASS_META, "code of %s stays without names: it cannot be read: %s",
				im->path, a.how);
		if (!im || im->refused)
			break;
		im->refused = true;
	}
	if (err && err != s->out.error)
		session__note(
			s, 1, CLASS_META, "addresses stay without names: %s", err == -EPROTO ? a.how : errstr(err));
}

/* Once in a process, which ends without giving it back: what libdwfl has read and unpacked of the images serves the
 * next segment as well. */
static int open_naming(struct session *s)
{
	struct code_naming *n = &s->naming;
	int err = 0;

	if (!n->dwfl) {
		n->dwfl = modules__open(&s->images);
		err = n->dwfl ? pe_modules__open(&n->pe, &s->images) : -ENOMEM;
		if (!err)
			err = perf_map__settle(&s->perf_map);
		n->err = err ?: read_kernel_stacks(s, &n->kernel);
	}
	return n->err;
}

static int write_segment_chains(
	struct session *s, struct recording_writer *w, struct stacks *stacks, struct jit *jit, u64 ts)
{
	struct code_naming *n = &s->naming;
	struct calls_result calls;
	int err = name_kernel_stacks(s, w, &n->kernel, ts);

	if (!err && stacks->fd >= 0 && !n->unwinder)
		err = unwinder__new(&n->unwinder, n->dwfl);
	if (!err && (stacks->n || n->kernel.n))
		err = calls__write(w, stacks, &n->kernel, n->unwinder, jit, ts, &calls);
	return err;
}

/* In a process of its own already. */
int session__name_segment(struct session *s, struct recording_writer *w, struct stacks *stacks)
{
	int err = open_naming(s);
	struct code_naming *n = &s->naming;
	u64 ts = clock_boot_ns();
	struct jit jit = {.map = &s->perf_map, .dwfl = n->dwfl, .w = w, .ts = ts, .nameless = s->o->no_symbols};
	struct symbolize_result named;
	char why[256];

	perf_map__unname(&s->perf_map);
	if (!err)
		err = write_segment_chains(s, w, stacks, &jit, ts);
	if (!err)
		err = modules__write(w, n->dwfl, ts);
	if (!err)
		err = pe_modules__write(w, &n->pe, ts);
	if (!err)
		err = name_uprobes(&s->images, w, ts);
	if (!err && !s->o->no_symbols)
		err = symbolize__write(w, n->dwfl, &n->pe, &jit, ts, &named);
	if (!err && debug_server__gave_up(why, sizeof(why)))
		err = meta__note(w, ts, 0, CLASS_META, why);
	return err;
}
