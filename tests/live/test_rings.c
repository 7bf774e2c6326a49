// SPDX-License-Identifier: GPL-2.0-only
/* Several rings, each of some CPUs: nothing is missing, all is in order, and what does not fit is counted by ring. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "live.h"

/* of one class, or of all (CLASS_COUNT) */
static u64 sum_lost(const struct live *l, u32 class)
{
	const struct live_event *e;
	u64 n = 0;

	live__each(l, at, e, EV_LOST)
	{
		const struct ev_lost *k = (const void *)e->hdr;

		n += class == CLASS_COUNT || k->class == class ? k->count : 0;
	}
	return n;
}

/* of INFO session.rings */
static u64 lost_in_rings(const struct live *l, u32 *rings)
{
	const char *text = model__info(l->model, "session.rings"), *p = text;
	u64 n = 0;

	assert_non_null(text);
	assert_int_equal(sscanf(text, "rings=%u", rings), 1);
	while ((p = strstr(p, " lost.")))
		n += strtoull(strchr(p++, '=') + 1, NULL, 10);
	return n;
}

static void test_two_rings_hold_every_event_once_and_in_order(void **state)
{
	const struct live_event *e;
	u64 last = 0, cpus = 0;
	struct live l;
	u32 rings;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		live__skip("one CPU has one ring");
	live__init(&l);
	live__start(&l, "sched", NULL);
	live__record(&l, "--frame", "none", "--rings", "2", NULL);
	live__run(&l);
	live__no_loss(&l);
	assert_int_equal(lost_in_rings(&l, &rings), 0);
	assert_int_equal(rings, 2);
	live__each(&l, at, e, EV_SWITCH)
	{
		cpus |= 1ull << (e->hdr->cpu & 63);
		assert_true(e->hdr->ts >= last);
		last = e->hdr->ts;
	}
	assert_int_equal(cpus & 3, 3);
	live__free(&l);
}

/* Longer than merge waits for a record: live__run finds none that came late. */
static void test_after_a_pause_of_the_recorder_all_is_in_order(void **state)
{
	struct live l;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		live__skip("one CPU has one ring");
	live__init(&l);
	live__start(&l, "sched", NULL);
	live__record(&l, "--frame", "none", "--rings", "2", "--buffer", "64M", NULL);
	assert_int_equal(kill(l.redframe, SIGSTOP), 0);
	live__go(&l);
	usleep(1500000);
	assert_int_equal(kill(l.redframe, SIGCONT), 0);
	live__end_target(&l);
	live__end_redframe(&l);
	live__load(&l);
	live__no_loss(&l);
	live__free(&l);
}

/* Calls of the allocator, each recorded, into rings that hold some hundred of them, and that nobody
 * empties meanwhile. */
static void test_what_does_not_fit_is_counted_by_ring_and_as_lost(void **state)
{
	struct live l;
	u32 rings;
	u64 calls;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		live__skip("one CPU has one ring");
	live__init(&l);
	live__start(&l, "alloc_sites", NULL);
	live__record(&l, "--frame", "none", "--rings", "2", "--buffer", "64K", "--alloc", "all", "--alloc-sample", "0",
		"--max-overhead", "0", NULL);
	assert_int_equal(kill(l.redframe, SIGSTOP), 0);
	live__go(&l);
	assert_int_equal(kill(l.redframe, SIGCONT), 0);
	live__end_target(&l);
	live__end_redframe(&l);
	live__load(&l);
	calls = sum_lost(&l, CLASS_ALLOC);
	assert_true(calls > 0);
	assert_int_equal(lost_in_rings(&l, &rings), sum_lost(&l, CLASS_COUNT));
	/* 100,000 small and 4,000 middling blocks, one large: each allocated and freed; a few of libc's own, and
	 * MEM_CALLs */
	calls += live__count(&l, EV_ALLOC) + live__count(&l, EV_FREE);
	assert_in_range(calls, 208002, 208002 + 200);
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_two_rings_hold_every_event_once_and_in_order),
	cmocka_unit_test(test_after_a_pause_of_the_recorder_all_is_in_order),
	cmocka_unit_test(test_what_does_not_fit_is_counted_by_ring_and_as_lost),
};
LIVE_MAIN(tests)
