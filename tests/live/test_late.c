// SPDX-License-Identifier: GPL-2.0-only
/* Libraries that a game loads while it is recorded, whose markers join those that it had before. */
#include <stdlib.h>

#include "live.h"

#define CALLS   1000
#define PROMISE (100 * NSEC_PER_MSEC) /* between mapping and probes */
#define TRIES   5                     /* a machine that is busy with others may take longer at times */

/* What the recording says from when on the library is probed. */
static u64 noted(const struct live *l, int probes)
{
	const struct live_event *e;
	char want[64];

	snprintf(want, sizeof(want), "late_lib.so: %d probes, from ", probes);
	live__each(l, at, e, EV_NOTE)
	{
		const char *text = live__text(e->hdr);

		if (strstr(text, want) && strstr(text, "what was called before is not recorded"))
			return e->hdr->ts;
	}
	fail_msg("the recording does not say from when on the library is probed; it said: %s", l->said);
	return 0;
}

/* Every call from `from` on, and of those before only whole ones at the end. Returns how many are missing. */
static size_t missed(const struct live *l, u64 from)
{
	const struct live_event *e;
	size_t first = 0, next = 0;

	live__each(l, at, e, EV_FRAME)
	{
		const struct ev_frame *f = (const void *)e->hdr;

		if (f->stream != 7)
			continue;
		if (!next)
			first = next = (size_t)f->number - 1000;
		assert_int_equal(f->number - 1000, next++);
	}
	if (!next)
		return CALLS;
	assert_int_equal(next, CALLS);
	if (first && (u64)live__num(l, "called", first - 1, 0) > from)
		fail_msg("call %zu is missing, which came after the note", first - 1);
	return first;
}

static size_t messages(const struct live *l)
{
	const struct live_event *e;
	size_t n = 0;

	live__each(l, at, e, EV_MESSAGE) n += !strncmp(live__text(e->hdr), "tick ", 5);
	return n;
}

/* ns from the mapping to the first call that was seen */
static u64 record_once(void)
{
	char file[PATH_MAX];
	size_t first;
	struct live l;
	u64 late;

	snprintf(file, sizeof(file), "%s", live__target_path("late_lib.so"));
	live__init(&l);
	live__start(&l, "late", file, NULL);
	live__record(&l, "--frame", "usdt:redframe:frame", NULL);
	live__run(&l);
	first = missed(&l, noted(&l, 2));
	assert_true(messages(&l) + first + 1 >= CALLS && messages(&l) + first <= CALLS + 1);
	late = (u64)live__num(&l, "called", min(first, (size_t)CALLS - 1), 0) - (u64)live__num(&l, "loaded", 0, 0);
	printf("probed %.1f ms after the mapping: %zu of %d calls were missed\n", (double)late / 1e6, first, CALLS);
	live__free(&l);
	return late;
}

static void test_a_library_loaded_later_is_probed_within_100_ms_and_it_says_from_when_on(void **state)
{
	u64 late = record_once();

	for (int i = 1; i < TRIES && late > PROMISE; i++)
		late = record_once();
	assert_true(late <= PROMISE);
}

/* Where the probe is single-stepped, its calls are counted first. */
static void test_a_dear_function_of_a_later_library_is_recorded_from_when_the_recording_says(void **state)
{
	size_t next = CALLS, first = CALLS;
	const struct live_event *e;
	char file[PATH_MAX];
	struct live l;
	u64 from;

	snprintf(file, sizeof(file), "%s", live__target_path("late_lib.so"));
	live__init(&l);
	live__start(&l, "late", file, NULL);
	live__record(&l, "--frame", "usdt:redframe:frame", "--alloc-fn", "late_alloc", NULL);
	live__run(&l);
	from = noted(&l, 3);
	live__each(&l, at, e, EV_ALLOC)
	{
		const struct ev_alloc *a = (const void *)e->hdr;

		if (a->size < 1000000 || a->size >= 1000000 + CALLS)
			continue;
		if (first == CALLS)
			first = next = a->size - 1000000;
		assert_int_equal(a->size - 1000000, next);
		next += 10;
	}
	assert_int_equal(next, CALLS);
	for (size_t i = 0; i < first; i += 10)
		assert_true((u64)live__num(&l, "called", i, 0) < from);
	live__free(&l);
}

static void test_a_function_of_a_later_library_that_is_called_too_often_for_its_cost_is_named(void **state)
{
	const struct live_event *e;
	char file[PATH_MAX];
	bool told = false;
	struct live l;

	snprintf(file, sizeof(file), "%s", live__target_path("late_lib.so"));
	live__init(&l);
	live__start(&l, "late", file, "hot", NULL);
	live__record(&l, "--frame", "usdt:redframe:frame", "--alloc-fn", "late_alloc", NULL);
	live__run(&l);
	noted(&l, 2);
	live__each(&l, at, e, EV_NOTE) told |= strstr(live__text(e->hdr), "left out, as every call would be") &&
					       strstr(live__text(e->hdr), "late_alloc");
	assert_true(told);
	live__each(&l, at, e, EV_ALLOC) assert_int_not_equal(((const struct ev_alloc *)e->hdr)->size, 2000000);
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_a_library_loaded_later_is_probed_within_100_ms_and_it_says_from_when_on),
	cmocka_unit_test(test_a_dear_function_of_a_later_library_is_recorded_from_when_the_recording_says),
	cmocka_unit_test(test_a_function_of_a_later_library_that_is_called_too_often_for_its_cost_is_named),
};
LIVE_MAIN(tests)
