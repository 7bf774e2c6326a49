// SPDX-License-Identifier: GPL-2.0-only
/* Call chains: each that a program went through is recorded exactly, however the program was built. */
#include <stdlib.h>

#include "live.h"
#include "maps.h"
#include "names.h"
#include "syscalls.h"
#include "where.h"

struct chain {
	char text[4096]; /* of the target's own functions, innermost first, with '<' between them */
	char target[64];
	u32 n;
};

static bool add(const struct where_step *s, void *arg)
{
	struct chain *c = arg;
	size_t len = strlen(c->text);
	char name[256];

	if (!s->map || !s->map->path || strcmp(path__base(s->map->path), c->target))
		return false;
	where__name(s, name, sizeof(name));
	if (!strncmp(name, "_start", 6) || !strncmp(name, "__libc_start", 12))
		return false;
	/* a static program has the C library's functions too: without lines */
	if (strstr(c->target, "static") && !*s->file && strncmp(name, "leaf_", 5) && strcmp(name, "without_cfi"))
		return false;
	if (len < sizeof(c->text) - sizeof(name) - 2)
		snprintf(c->text + len, sizeof(c->text) - len, "%s%s", c->n ? "<" : "", name);
	c->n++;
	return false;
}

static struct chain chain_of(const struct live *l, u32 id, const char *target)
{
	struct chain c = {};

	snprintf(c.target, sizeof(c.target), "%s", target);
	where__each(l->model, id, add, &c);
	return c;
}

static bool is_truncated(const struct live *l, u32 id)
{
	const struct call *c = model__call(l->model, id);

	while (c && c->caller)
		c = model__call(l->model, c->caller);
	assert_non_null(c);
	return c->flags & CALL_TRUNCATED;
}

/* The one sleep between begin and end. Another thread's call may end there too: clone3, which this one came from. */
static const struct ev_hdr *sleep_between(const struct live *l, u64 begin, u64 end)
{
	const struct ev_hdr *found = NULL;
	const struct live_event *e;

	live__each(l, at, e, EV_SYSCALL)
	{
		if (((const struct ev_syscall *)e->hdr)->sys != SYS_ID_clock_nanosleep || e->hdr->ts < begin ||
			e->hdr->ts > end)
			continue;
		assert_null(found);
		found = e->hdr;
	}
	return found;
}

/* the one STACK of a wait */
static const struct ev_stack *stack_of(const struct live *l, const struct ev_hdr *wait)
{
	const struct ev_stack *found = NULL;
	const struct live_event *e;

	live__each(l, at, e, EV_STACK)
	{
		const struct ev_stack *s = (const struct ev_stack *)e->hdr;

		if (s->reason != STACK_WAIT || e->hdr->ts != wait->ts || e->hdr->tid != wait->tid)
			continue;
		assert_null(found);
		found = s;
	}
	return found;
}

static u32 chain_at(const struct live *l, size_t i, char *name, size_t size)
{
	const struct ev_hdr *wait;
	const struct ev_stack *s;

	live__word(l, "chain", i, 0, name, size);
	wait = sleep_between(l, (u64)live__num(l, "chain", i, 1), (u64)live__num(l, "chain", i, 2));
	s = wait ? stack_of(l, wait) : NULL;
	if (!s || !s->chain)
		fail_msg("%s: no call chain was recorded", name);
	return s->chain;
}

static void same_chain(const struct live *l, size_t i, const char *target)
{
	char name[64], want[1024];
	u32 id = chain_at(l, i, name, sizeof(name));
	struct chain c = chain_of(l, id, target);

	live__word(l, "chain", i, 3, want, sizeof(want));
	if (!strcmp(name, "deep")) {
		if (!is_truncated(l, id))
			fail_msg("not marked truncated: %u calls: %.200s", c.n, c.text);
		assert_int_equal(strncmp(c.text, "nap<deep<deep<", 14), 0);
		assert_null(strstr(c.text, "main"));
		return;
	}
	if (strcmp(c.text, want))
		fail_msg("%s of %s: the chain is\n%s\nand was recorded as\n%s", name, target, want, c.text);
	if (is_truncated(l, id))
		fail_msg("%s of %s is marked truncated", name, target);
}

static void same_fault_chain(const struct live *l, size_t i, const char *target)
{
	u64 addr = (u64)live__num(l, "fault", i, 1), ts = 0;
	const struct live_event *e;
	char want[256];

	live__word(l, "fault", i, 2, want, sizeof(want));
	live__each(l, at, e, EV_FAULT) if (((const struct ev_fault *)e->hdr)->addr == addr) ts = e->hdr->ts;
	assert_true(ts);
	live__each(l, at2, e, EV_STACK)
	{
		struct chain c;

		if (e->hdr->ts != ts)
			continue;
		c = chain_of(l, ((const struct ev_stack *)e->hdr)->chain, target);
		if (strcmp(c.text, want))
			fail_msg("the chain is\n%s\nand was recorded as\n%s", want, c.text);
		return;
	}
	fail_msg("no call chain for the fault of %s", want);
}

static void record(struct live *l, const char *target)
{
	live__init(l);
	live__start(l, target, l->dir, NULL);
	live__record(l, "--frame", "none", "--events", "syscall,fault,file,lock", NULL);
	live__run(l);
	assert_true(live__rows(l, "chain") > 0);
}

static void all_chains(const char *target)
{
	struct live l;

	record(&l, target);
	for (size_t i = 0; i < live__rows(&l, "chain"); i++)
		same_chain(&l, i, path__base(target));
	for (size_t i = 0; i < live__rows(&l, "fault"); i++)
		same_fault_chain(&l, i, path__base(target));
	live__free(&l);
}

static void test_optimised_code_without_frame_pointers(void **state)
{
	all_chains("calls");
}

static void test_a_stripped_program_with_a_debug_file(void **state)
{
	all_chains("stripped/calls");
}

static void test_a_static_program(void **state)
{
	all_chains("calls_static");
}

static void test_programs_of_every_shape(void **state)
{
	all_chains("calls_static_pie");
	all_chains("calls_fixed");
	all_chains("calls_far");
	all_chains("calls_shared_pages");
}

static void test_cxx_templates_virtual_calls_and_unwinding(void **state)
{
	all_chains("calls_cxx");
}

/* The addresses are right all the same; the names would be those of another build. */
static void test_a_debug_file_of_another_build_is_refused(void **state)
{
	struct live l;
	char name[64];

	record(&l, "stale/calls");
	for (size_t i = 0; i < live__rows(&l, "chain"); i++) {
		struct chain c = chain_of(&l, chain_at(&l, i, name, sizeof(name)), "calls");

		if (strncmp(c.text, "calls+0x", 8) || strstr(c.text, "nap") || strstr(c.text, "main"))
			fail_msg("%s: %s", name, c.text);
	}
	live__free(&l);
}

static void test_without_stacks_there_is_none_in_the_recording(void **state)
{
	struct live l;

	live__init(&l);
	live__start(&l, "calls", l.dir, NULL);
	live__record(&l, "--frame", "none", "--events", "syscall", "--stack", "0", NULL);
	live__run(&l);
	assert_int_equal(live__count(&l, EV_STACK), 0);
	assert_int_equal(live__count(&l, EV_CALL), 0);
	live__free(&l);
}

/* Of three hitches in less than two seconds each has more cold reads than a second's budget of call chains is for. */
static void test_the_next_slow_frame_of_a_second_has_its_call_chains_too(void **state)
{
	struct live l;
	char *record[] = {(char *)live__program(), "record", "-q", "--budget", "60", "--no-trace", "-o", l.recording,
		"--", LIVE_BUILD "/examples/hitches", "--quiet", "--hitch", "read", "--ms", "80", "--every", "30",
		"--rounds", "3", NULL};
	char *explain[] = {(char *)live__program(), "explain", l.recording, "--json", NULL}, *json;
	int status, n = 0;

	live__init(&l);
	free(live__output(&l, &status, record));
	assert_int_equal(status, 0);
	json = live__output(&l, &status, explain);
	assert_int_equal(status, 0);
	for (const char *at = json; (at = strstr(at, "\"func\": \"read_cold\"")); at++)
		n++;
	assert_true(n >= 3);
	free(json);
	live__free(&l);
}

/* The recording is of the stripped program; the names come from the unstripped one, elsewhere, by build-id. */
static void test_symbolize_adds_the_names_later(void **state)
{
	char named[160], dir[128],
		*argv[] = {(char *)live__program(), "symbolize", NULL, "--path", dir, "-o", named, NULL};
	char *cp[] = {"cp", NULL, dir, NULL}, *mkdir[] = {"mkdir", dir, NULL};
	struct live l;
	int status;

	live__init(&l);
	live__start(&l, "stale/calls", l.dir, NULL);
	live__record(&l, "--frame", "none", "--events", "syscall", "--no-symbols", NULL);
	live__run(&l);
	assert_int_equal(live__count(&l, EV_SYMBOL) + live__count(&l, EV_SOURCE), 0);
	assert_true(live__count(&l, EV_IMAGE) > 1);
	snprintf(dir, sizeof(dir), "%s/unstripped", l.dir);
	snprintf(named, sizeof(named), "%s/named.redframe", l.dir);
	free(live__output(&l, &status, mkdir));
	assert_int_equal(status, 0);
	cp[1] = (char *)live__target_path("calls");
	free(live__output(&l, &status, cp));
	assert_int_equal(status, 0);
	argv[2] = l.recording;
	free(live__output(&l, &status, argv));
	assert_int_equal(status, 0);
	for (size_t i = 0; i < l.n; i++) {
		free((void *)l.ev[i].hdr);
		free((void *)l.ev[i].path);
		free((void *)l.ev[i].arg);
	}
	l.n = 0;
	model__free(l.model);
	live__load_from(&l, named);
	for (size_t i = 0; i < live__rows(&l, "chain"); i++)
		same_chain(&l, i, "calls");
	live__free(&l);
}

/* The trace of it, made where the program is not to be found any more. */
static void test_a_recording_has_all_names_where_its_program_is_gone(void **state)
{
	char game[128], traces[2][128], script[2048], *said;
	char *cp[] = {"cp", (char *)live__target_path("calls"), game, NULL}, *argv[] = {game, NULL, NULL};
	struct live l;
	int status;

	live__init(&l);
	argv[1] = l.dir;
	snprintf(game, sizeof(game), "%s/calls", l.dir);
	free(live__output(&l, &status, cp));
	assert_int_equal(status, 0);
	live__start_program(&l, argv);
	assert_true(live__await(&l, "truth", "ready\n", l.target));
	live__record(&l, "--frame", "none", "--events", "syscall,fault,file,lock", NULL);
	live__run(&l);
	for (int i = 0; i < 2; i++)
		snprintf(traces[i], sizeof(traces[i]), "%s/%d.pftrace", l.dir, i);
	snprintf(script, sizeof(script),
		"exec 2>&1; %1$s export %2$s -o %3$s && rm %4$s && mount -t tmpfs none '%5$s/live/targets' && "
		"! ls %4$s '%5$s/live/targets/calls' && %1$s export %2$s -o %6$s && cmp %3$s %6$s",
		live__program(), l.recording, traces[0], game, LIVE_BUILD, traces[1]);
	said = live__output(&l, &status, (char *[]){"unshare", "-m", "sh", "-xc", script, NULL});
	if (status)
		fail_msg("status 0x%x: %s", status, said);
	free(said);
	for (size_t i = 0; i < live__rows(&l, "chain"); i++)
		same_chain(&l, i, "calls");
	assert_true(
		live__query(&l, traces[1],
			"select count(*) from stack_profile_frame f join stack_profile_symbol s using "
			"(symbol_set_id) where f.name = 'plain_b' and source_file like '%calls.c' and line_number > "
			"0") > 0);
	live__free(&l);
}

/* Samples in the kernel's code for games, and in the page where it runs what a probe cannot emulate. */
static void test_the_kernels_own_code_in_the_game_has_a_name(void **state)
{
	u32 vdso = 0, uprobes = 0;
	const struct live_event *e;
	char frame[PATH_MAX], name[128];
	struct live l;

	live__init(&l);
	live__start(&l, "stepped", NULL);
	snprintf(frame, sizeof(frame), "uprobe:%s:stepped", live__target_path("stepped"));
	live__record(&l, "--frame", frame, "--events", "sched,sample", NULL);
	live__run(&l);
	live__each(&l, at, e, EV_SAMPLE)
	{
		const struct ev_sample *s = (const struct ev_sample *)e->hdr;
		u64 code = code__at(l.model, s->ip, e->hdr->ts);

		if (s->ip >= (u64)live__num(&l, "vdso", 0, 0) && s->ip < (u64)live__num(&l, "vdso", 0, 1)) {
			vdso++;
			assert_true(code__name(l.model, code, name, sizeof(name)));
			assert_string_equal(name, "__vdso_clock_gettime");
		}
		if (s->ip >= (u64)live__num(&l, "uprobes", 0, 0) && s->ip < (u64)live__num(&l, "uprobes", 0, 1)) {
			uprobes++;
			assert_true(code__name(l.model, code, name, sizeof(name)));
			assert_string_equal(name, "[uprobes]");
		}
	}
	if (vdso < 5 || uprobes < 5) /* an emulator's timer is slow */
		fail_msg("%u samples in [vdso], %u in [uprobes]", vdso, uprobes);
	live__free(&l);
}

/* What crashes is another process, and it is tried again without the file. */
static void test_a_file_that_crashes_libelf_costs_its_own_names_only_and_that_is_said(void **state)
{
	bool said = false, libc = false, program = false;
	const struct live_event *e;
	struct live l;

	live__init(&l);
	live__start(&l, "calls", l.dir, NULL);
	setenv("LD_PRELOAD", live__target_path("crasher.so"), 1);
	setenv("CRASH_ON", "calls", 1);
	live__record(&l, "--frame", "none", "--events", "syscall,fault,file,lock", NULL);
	unsetenv("LD_PRELOAD");
	unsetenv("CRASH_ON");
	live__run(&l);
	live__each(&l, at, e, EV_NOTE) said |= strstr(live__text(e->hdr), "targets/calls stays without names") &&
					       strstr(live__text(e->hdr), "Segmentation fault");
	assert_true(said);
	live__each(&l, at2, e, EV_SYMBOL)
	{
		char text[EV_MAX_BYTES];

		ev__text(e->hdr, text, sizeof(text));
		libc |= !strncmp(text + strlen(text) + 1, "libc.so", 7);
		program |= !strcmp(text + strlen(text) + 1, "calls");
	}
	assert_true(libc);
	assert_false(program);
	live__free(&l);
}

/* While the kernel is at a probe, the address that it has of the thread lies behind the probe's first byte, which is
 * the middle of an instruction here: by its unwinding rules, or those of the next one, the chain would be another. */
static void test_a_sample_at_a_probe_is_where_the_thread_is(void **state)
{
	u32 at_probe = 0, behind = 0, chains = 0;
	const struct live_event *e;
	char frame[PATH_MAX];
	struct live l;
	u64 probe;

	live__init(&l);
	live__start(&l, "stepped", NULL);
	snprintf(frame, sizeof(frame), "uprobe:%s:stepped", live__target_path("stepped"));
	live__record(&l, "--frame", frame, "--events", "sched,sample", NULL);
	live__run(&l);
	probe = (u64)live__num(&l, "stepped", 0, 0);
	live__each(&l, at, e, EV_SAMPLE)
	{
		const struct ev_sample *s = (const struct ev_sample *)e->hdr;

		behind += s->kernel && s->ip == probe + 1;
		at_probe += s->kernel && s->ip == probe;
	}
	live__each(&l, at2, e, EV_STACK)
	{
		u32 id = ((const struct ev_stack *)e->hdr)->chain;
		const struct call *c = model__call(l.model, id);

		assert_false(c && c->addr == probe + 1);
		if (!c || c->addr != probe)
			continue;
		chains++;
		assert_string_equal(chain_of(&l, id, "stepped").text, "stepped<main");
	}
	if (behind || at_probe < 5)
		fail_msg("%u samples at the probe, %u behind its first byte, %u chains", at_probe, behind, chains);
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_optimised_code_without_frame_pointers),
	cmocka_unit_test(test_a_stripped_program_with_a_debug_file),
	cmocka_unit_test(test_a_static_program),
	cmocka_unit_test(test_programs_of_every_shape),
	cmocka_unit_test(test_cxx_templates_virtual_calls_and_unwinding),
	cmocka_unit_test(test_a_debug_file_of_another_build_is_refused),
	cmocka_unit_test(test_the_next_slow_frame_of_a_second_has_its_call_chains_too),
	cmocka_unit_test(test_symbolize_adds_the_names_later),
	cmocka_unit_test(test_a_recording_has_all_names_where_its_program_is_gone),
	cmocka_unit_test(test_the_kernels_own_code_in_the_game_has_a_name),
	cmocka_unit_test(test_a_file_that_crashes_libelf_costs_its_own_names_only_and_that_is_said),
	cmocka_unit_test(test_a_sample_at_a_probe_is_where_the_thread_is),
	cmocka_unit_test(test_without_stacks_there_is_none_in_the_recording),
};
LIVE_MAIN(tests)
