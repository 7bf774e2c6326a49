/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What holds for every recording, tried on recordings made up from seeds.
 */
#include <stdio.h>

#include "because.h"
#include "explain_fixture.h"
#include "stream_gen.h"

#define SEEDS 40

static struct explain_options every = {.from = BUDGET_OPTION, .budget_ns = 1, .every_frame = true};

/* ---- sums ---- */

static void check_parts(const struct part *parts, u32 n, u64 whole, int depth)
{
	u64 sum = 0;

	assert_true(depth <= BECAUSE_DEPTH);
	for (u32 i = 0; i < n; i++) {
		assert_true(parts[i].ns > 0 && parts[i].ns <= whole);
		assert_true(parts[i].excess_ns <= (s64)parts[i].ns);
		assert_true(!i || parts[i].excess_ns <= parts[i - 1].excess_ns);
		assert_in_range(parts[i].cause, 0, CAUSE_COUNT - 1);
		sum += parts[i].ns;
		/* what was done meanwhile is at most what was waited */
		if (parts[i].n_because)
			check_parts(parts[i].because, parts[i].n_because, parts[i].blocked_ns, depth + 1);
	}
	if (depth)
		assert_true(sum <= whole);
	else
		assert_int_equal(sum, whole);
}

static void check_stretches(const struct verdict *v)
{
	u64 at = v->frame.start, sums[512] = {};
	s64 code = 0;

	for (u32 i = 0; i < v->n_stretches; i++) {
		const struct stretch *s = &v->stretches[i];

		assert_int_equal(s->start, at);
		assert_true(s->end > s->start);
		assert_true(s->part < v->n_parts);
		if (s->part < ARRAY_SIZE(sums))
			sums[s->part] += s->end - s->start;
		at = s->end;
	}
	assert_int_equal(at, v->frame.end);
	/* code is divided among functions by samples, stretches are whole */
	for (u32 i = 0; i < v->n_parts && i < ARRAY_SIZE(sums); i++) {
		if (v->parts[i].cause == CAUSE_CODE)
			code += (s64)(sums[i] - v->parts[i].ns);
		else
			assert_int_equal(sums[i], v->parts[i].ns);
	}
	assert_int_equal(code, 0);
}

static void check_verdict(const struct verdict *v, const struct model *m, void *arg)
{
	u64 whole = 0;
	u64 *frames = arg;

	for (int c = 0; c < CAUSE_COUNT; c++)
		whole += v->cause_ns[c];
	assert_int_equal(whole, v->frame.end - v->frame.start);
	check_parts(v->parts, v->n_parts, v->frame.end - v->frame.start, 0);
	check_stretches(v);
	assert_non_null(v->sentence);
	assert_true(strlen(v->sentence) > 0);
	(*frames)++;
}

static void check_seed(u64 seed, bool wild)
{
	struct explained e = {};
	struct gen g;
	u64 frames = 0;

	gen__init(&g, seed);
	if (wild)
		gen__wild(&g, 4000);
	else
		gen__sane(&g, 2000);
	explain_fd(&e, gen__recording(&g, 0, ~0ULL), &every, check_verdict, &frames);
	assert_int_equal(frames, e.report->frames);
	assert_true(frames > 5);
	explained__free(&e);
	gen__free(&g);
}

static void test_parts_sum_to_the_frame_and_none_is_negative(void **state)
{
	for (u64 seed = 1; seed <= SEEDS; seed++)
		check_seed(seed, false);
}

static void test_contradicting_records_still_sum_to_the_frame(void **state)
{
	for (u64 seed = 1; seed <= SEEDS; seed++)
		check_seed(seed, true);
}

/* ---- comparing ---- */

/* frame by frame: its partition as text; with chains, all that is known of it but how idle the other CPUs were */
struct listing {
	struct str *frames; /* [number] */
	u32 cap;
	bool chains;
};

static void list_parts(struct str *s, const struct part *p, u32 n, bool chains)
{
	str__add(s, "(");
	for (u32 i = 0; i < n; i++) {
		str__fmt(s, "%s %llu %u %s %u", cause_names[p[i].cause], (unsigned long long)p[i].ns, p[i].count,
			p[i].what ? p[i].what : "-", p[i].who_tid);
		if (chains)
			str__fmt(s, " %lld", (long long)p[i].excess_ns);
		if (chains)
			list_parts(s, p[i].because, p[i].n_because, chains);
		str__add(s, "; ");
	}
	str__add(s, ")");
}

static int by_row(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->cause != y->cause ? (int)x->cause - (int)y->cause : x->ns < y->ns ? -1 : x->ns > y->ns;
}

static void list_verdict(const struct verdict *v, const struct model *m, void *arg)
{
	struct listing *l = arg;
	struct part *sorted = calloc(v->n_parts + 1, sizeof(*sorted));

	assert_true(v->frame.number < l->cap);
	memcpy(sorted, v->parts, v->n_parts * sizeof(*sorted));
	if (!l->chains) /* the order is by excess, which depends on the frames before */
		qsort(sorted, v->n_parts, sizeof(*sorted), by_row);
	str__fmt(&l->frames[v->frame.number], "%llu-%llu ", (unsigned long long)v->frame.start,
		(unsigned long long)v->frame.end);
	list_parts(&l->frames[v->frame.number], sorted, v->n_parts, l->chains);
	free(sorted);
}

static struct listing listing(struct gen *g, u64 from, u64 to, bool chains)
{
	struct listing l = {.frames = calloc(4096, sizeof(struct str)), .cap = 4096, .chains = chains};
	struct explained e = {};

	explain_fd(&e, gen__recording(g, from, to), &every, list_verdict, &l);
	explained__free(&e);
	return l;
}

static void listing__free(struct listing *l)
{
	for (u32 i = 0; i < l->cap; i++)
		str__free(&l->frames[i]);
	free(l->frames);
}

static void add_unrelated(struct gen *g)
{
	for (u64 t = 1500000; t < 2000000000; t += 700000) {
		gen__arrive(g, t, 950, 7, 0);
		gen__wake(g, t + 1000, 951, 7, 950, 0);
		gen__leave(g, t + 300000, 950, 7, 1, 0, 0, 951);
		gen__leave(g, t + 400000, 951, 7, 1, 0, 0, 0);
	}
}

static void test_an_unrelated_thread_changes_nothing(void **state)
{
	for (u64 seed = 1; seed <= SEEDS / 4; seed++) {
		struct listing before, after;
		struct gen g;

		gen__init(&g, seed);
		gen__sane(&g, 2000);
		before = listing(&g, 0, ~0ULL, true);
		add_unrelated(&g);
		after = listing(&g, 0, ~0ULL, true);
		for (u32 i = 0; i < before.cap; i++)
			assert_string_equal(before.frames[i].s ?: "", after.frames[i].s ?: "");
		listing__free(&before);
		listing__free(&after);
		gen__free(&g);
	}
}

/* frames that a and b together do not tell as whole does */
static u32 differences(const struct listing *whole, const struct listing *a, const struct listing *b, u32 *same)
{
	u32 different = 0;

	for (u32 i = 0; i < whole->cap; i++) {
		const char *w = whole->frames[i].s, *part = a->frames[i].s ?: b->frames[i].s;

		if (!w)
			continue;
		if (!part || strcmp(w, part))
			different++;
		else
			(*same)++;
	}
	return different;
}

static void test_splitting_changes_only_the_frame_at_the_cut(void **state)
{
	for (u64 seed = 1; seed <= SEEDS / 4; seed++) {
		u64 cut = (200 + seed * 73) * 1000000;
		struct listing whole, a, b;
		struct gen g;
		u32 same = 0, different;

		gen__init(&g, seed);
		gen__sane(&g, 2000);
		whole = listing(&g, 0, ~0ULL, false);
		a = listing(&g, 0, cut, false);
		b = listing(&g, cut, ~0ULL, false);
		different = differences(&whole, &a, &b, &same);
		assert_true(different <= 1);
		assert_true(same > 20);
		listing__free(&whole);
		listing__free(&a);
		listing__free(&b);
		gen__free(&g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_sum_to_the_frame_and_none_is_negative),
		cmocka_unit_test(test_contradicting_records_still_sum_to_the_frame),
		cmocka_unit_test(test_an_unrelated_thread_changes_nothing),
		cmocka_unit_test(test_splitting_changes_only_the_frame_at_the_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
