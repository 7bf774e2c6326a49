// SPDX-License-Identifier: GPL-2.0-only
/* Kernel stacks of blocking waits: the right one, each kept once, and only where they tell something. */
#include <stdlib.h>
#include <unistd.h>

#include "kernel_wait.h"
#include "live.h"

static const struct {
	const char *name, *function; /* part of what the kernel's function is called, 5.15 to 6.18 */
} ways[] = {{"pipe", "pipe_read"}, {"file_lock", "flock"}, {"child", "do_wait"}, {"stop", "do_signal_stop"},
	{"timer", "nanosleep"}, {"futex", "futex_wait"}};

static void record(struct live *l, const char *mode)
{
	live__init(l);
	live__start(l, "blocked", l->dir, NULL);
	live__record(l, "--frame", "none", "--kernel-stacks", mode, NULL);
	live__run(l);
	assert_int_equal(live__rows(l, "wait"), 40);
	assert_int_equal(live__rows(l, "said"), 20);
}

/* SWITCH.kstack of the main thread's only one with a stack in the stretch; 0: none has one */
static u32 kstack_of(const struct live *l, const char *key, size_t i)
{
	u64 begin = (u64)live__num(l, key, i, 1), end = (u64)live__num(l, key, i, 2);
	const struct live_event *e;
	u32 found = 0, blocked = 0;

	live__each(l, at, e, EV_SWITCH)
	{
		const struct ev_switch *s = (const void *)e->hdr;

		if (e->hdr->tid != model__game(l->model) || e->hdr->ts < begin || e->hdr->ts > end)
			continue;
		blocked += s->prev_state && !(s->flags & SWITCH_PREEMPT);
		if (s->kstack)
			found = s->kstack;
	}
	if (!blocked)
		fail_msg("%s %zu: no blocking switch was recorded", key, i);
	return found;
}

static bool has_function(const struct live *l, u32 kstack, const char *part)
{
	u32 chain = model__kernel_chain(l->model, kstack);
	const char *name;

	while ((name = kernel_wait__function(l->model, &chain)))
		if (strstr(name, part))
			return true;
	return false;
}

static const char *function_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		if (!strcmp(name, ways[i].name))
			return ways[i].function;
	fail_msg("%s?", name);
	return NULL;
}

/* Ten waits of one kind come from few places in the kernel; a signal stops a thread wherever it happens to be. */
static void kept_once(const u32 *kstacks, const char *name)
{
	u32 different = 0;

	for (int i = 0; i < 10; i++) {
		bool seen = false;

		for (int j = 0; j < i; j++)
			seen |= kstacks[j] == kstacks[i];
		different += !seen;
	}
	if (different > (strcmp(name, "stop") ? 4 : 8))
		fail_msg("%s: ten waits have %u different stacks", name, different);
}

static void right_stacks(const struct live *l, const char *key)
{
	u32 kstacks[64] = {};
	char name[32], text[256];

	for (size_t i = 0; i < live__rows(l, key); i++) {
		u32 kstack = kstack_of(l, key, i);

		live__word(l, key, i, 0, name, sizeof(name));
		kernel_wait__text(l->model, model__kernel_chain(l->model, kstack), text, sizeof(text));
		if (!kstack || !has_function(l, kstack, function_of(name)))
			fail_msg("%s: kernel stack %u, %s", name, kstack, text);
		/* the scheduler's own functions are left out */
		if (!strncmp(text, "schedule ", 9) || !strncmp(text, "__schedule", 10))
			fail_msg("%s: %s", name, text);
		kstacks[i] = kstack;
		if (i % 10 == 9)
			kept_once(kstacks + i - 9, name);
	}
}

static void test_what_a_blocking_wait_waits_for_is_on_its_kernel_stack_which_is_kept_once(void **state)
{
	struct live l;

	record(&l, "some");
	right_stacks(&l, "wait");
	live__free(&l);
}

static void test_where_the_system_call_says_it_no_stack_is_taken_unless_all_are_asked_for(void **state)
{
	struct live l;

	record(&l, "some");
	for (size_t i = 0; i < live__rows(&l, "said"); i++)
		assert_int_equal(kstack_of(&l, "said", i), 0);
	live__free(&l);
	record(&l, "all");
	right_stacks(&l, "wait");
	right_stacks(&l, "said");
	live__free(&l);
}

static void test_with_kernel_stacks_off_none_is_taken(void **state)
{
	struct live l;

	record(&l, "off");
	for (size_t i = 0; i < live__rows(&l, "wait"); i++)
		assert_int_equal(kstack_of(&l, "wait", i), 0);
	assert_int_equal(live__count(&l, EV_KSTACK), 0);
	live__free(&l);
}

/* The wait's slice carries the kernel's functions, before the game's in one call chain. */
static void test_the_trace_has_kernel_frames_and_mappings_with_build_ids(void **state)
{
	char trace[160], *argv[] = {(char *)live__program(), "export", NULL, "-o", trace, NULL};
	struct live l;
	int status;

	record(&l, "some");
	snprintf(trace, sizeof(trace), "%s/t.pftrace", l.dir);
	argv[2] = l.recording;
	free(live__output(&l, &status, argv));
	assert_int_equal(status, 0);
	assert_in_range(live__query(&l, trace,
				"select count(*) from slice s join args a using(arg_set_id) where "
				"a.key = 'debug.blocked_in' and a.string_value like '%pipe_read%'"),
		10, 12);
	assert_in_range(
		live__query(&l, trace,
			"select count(*) from __intrinsic_track_event_callstacks e join stack_profile_callsite c on "
			"e.callsite_id = c.id join stack_profile_frame f on c.frame_id = f.id join "
			"stack_profile_mapping m on f.mapping = m.id where m.name like '%[kernel]' and c.depth > 5"),
		30, 100);
	assert_int_equal(live__query(&l, trace,
				 "select count(*) from stack_profile_mapping where name like '%libc.so%' and "
				 "length(build_id) = 40"),
		live__query(&l, trace, "select count(*) from stack_profile_mapping where name like '%libc.so%'"));
	assert_true(live__query(&l, trace,
			    "select count(*) from stack_profile_mapping where name like '%/targets/blocked' and "
			    "length(build_id) = 40") > 0);
	live__free(&l);
}

/* Names without addresses, as the kernel shows them to who may not see these. */
static void test_without_kernel_addresses_stacks_have_no_names_and_redframe_says_so(void **state)
{
	char script[512], *argv[] = {"unshare", "-m", "sh", "-c", script, NULL};
	const struct live_event *e;
	bool said = false;
	struct live l;

	live__init(&l);
	live__start(&l, "blocked", l.dir, NULL);
	snprintf(script, sizeof(script),
		"echo '0000000000000000 T schedule' >%s/k && mount --bind %s/k /proc/kallsyms && "
		"exec %s record -p %d --frame none --no-trace -o %s",
		l.dir, l.dir, live__program(), (int)l.target, l.recording);
	l.redframe = live__spawn(&l, "said", argv);
	assert_true(live__await(&l, "said", "recording", l.redframe));
	live__run(&l);
	live__each(&l, at, e, EV_NOTE) said |= strstr(live__text(e->hdr), "kptr_restrict") != NULL;
	assert_true(said);
	assert_true(live__count(&l, EV_KSTACK) > 0);
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_what_a_blocking_wait_waits_for_is_on_its_kernel_stack_which_is_kept_once),
	cmocka_unit_test(test_where_the_system_call_says_it_no_stack_is_taken_unless_all_are_asked_for),
	cmocka_unit_test(test_with_kernel_stacks_off_none_is_taken),
	cmocka_unit_test(test_the_trace_has_kernel_frames_and_mappings_with_build_ids),
	cmocka_unit_test(test_without_kernel_addresses_stacks_have_no_names_and_redframe_says_so),
};
LIVE_MAIN(tests)
