// SPDX-License-Identifier: GPL-2.0-only
/* Sampled allocations: by code, what they stand for is what was allocated. */
#include <math.h>
#include <stdlib.h>

#include "alloc_sites.h"
#include "live.h"

#define PERIOD 16384

static void record(struct live *l, const char *mode, const char *period)
{
	live__init(l);
	live__start(l, "alloc_sites", NULL);
	live__record(l, "--alloc", mode, "--alloc-sample", period, "--max-overhead", "0", NULL);
	live__run(l);
	assert_int_equal(live__rows(l, "site"), 3);
}

static void sum_up(const struct live *l, struct alloc_sites *a)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->ev[i].hdr->kind == EV_ALLOC_SAMPLE || l->ev[i].hdr->kind == EV_ALLOC)
			assert_int_equal(alloc_sites__event(a, l->model, l->ev[i].hdr), 0);
}

/* Of n samples the sum is right to 1 in sqrt(n); five times that comes once in two million runs. */
static void right_bytes(const struct live *l, const struct alloc_site *s, u32 n)
{
	for (size_t i = 0; i < live__rows(l, "site"); i++) {
		double want = (double)live__num(l, "site", i, 1), off;
		char name[64];
		u32 k = 0;

		live__word(l, "site", i, 0, name, sizeof(name));
		while (k < n && strcmp(s[k].where, name))
			k++;
		if (k == n)
			fail_msg("nothing was recorded of %s", name);
		off = ((double)s[k].bytes - want) / want;
		if (s[k].samples ? fabs(off) > 5 / sqrt((double)s[k].samples) : off != 0)
			fail_msg("%s allocated %.0f bytes, told as %llu by %llu samples", name, want,
				(unsigned long long)s[k].bytes, (unsigned long long)s[k].samples);
		if (strcmp(name, "load_level"))
			assert_in_range(s[k].samples, want / PERIOD / 2, want / PERIOD * 2);
		else
			assert_int_equal(s[k].large, 1);
	}
}

static void test_what_samples_stand_for_is_what_each_function_allocated(void **state)
{
	static const char *const modes[] = {"large", "all"};

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct alloc_sites a = {};
		const struct alloc_site *s;
		struct live l;
		u32 n;

		record(&l, modes[i], "16K");
		sum_up(&l, &a);
		s = alloc_sites__list(&a, &n);
		assert_int_equal(a.period, PERIOD);
		right_bytes(&l, s, n);
		alloc_sites__free(&a);
		live__free(&l);
	}
}

/* They come by the thousand here, and a thread has a budget of stacks. */
static void test_a_sample_has_its_call_chain_or_is_counted_as_one_without(void **state)
{
	u64 samples = 0, with = 0, skipped;
	const struct live_event *e;
	struct live l;

	record(&l, "large", "16K");
	live__each(&l, at, e, EV_ALLOC_SAMPLE) samples++;
	live__each(&l, at2, e, EV_STACK) with += ((const struct ev_stack *)e->hdr)->reason == STACK_ALLOC;
	skipped = strtoull(model__info(l.model, "stacks.skipped"), NULL, 10);
	assert_true(with > 50);
	/* the large one has its own, and a CPU sample's may be left out too */
	assert_true(with + skipped >= samples);
	live__free(&l);
}

static void test_with_alloc_sample_0_none_is_taken(void **state)
{
	struct live l;

	record(&l, "large", "0");
	assert_int_equal(live__count(&l, EV_ALLOC_SAMPLE), 0);
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_what_samples_stand_for_is_what_each_function_allocated),
	cmocka_unit_test(test_a_sample_has_its_call_chain_or_is_counted_as_one_without),
	cmocka_unit_test(test_with_alloc_sample_0_none_is_taken),
};
LIVE_MAIN(tests)
