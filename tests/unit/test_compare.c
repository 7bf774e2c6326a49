/* SPDX-License-Identifier: GPL-2.0-only
 *
 * compare over made-up games of ten minutes, written to a store as soak writes them: frames whose speed drifts slowly,
 * and hitches that come at random.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "compare.h"
#include "history_verb.h"
#include "json.h"
#include "ledger.h"

#ifdef __SANITIZE_ADDRESS__
#define TRIES 20 /* comparisons for each promise */
#else
#define TRIES 40
#endif
#define SECONDS  600
#define BLOCK_S  10
#define FRAME_MS 15.0

struct game {
	double speed;         /* 1.05: every frame takes 5 % more */
	double extra_hitches; /* a minute, beside two that every build has */
	int seconds, others;  /* percent of the machine; 0: not known */
	bool waits;           /* for a CPU, in place of all else */
	const char *scene, *device, *budget;
};

static u64 random_state;

static double uniform(void)
{
	u64 x = random_state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return ((double)((x ^ (x >> 31)) >> 11) + 0.5) / (double)(1ULL << 53);
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

struct made {
	struct store_block b;
	u32 counts[BUCKETS];
	u64 kinds[2]; /* hitches that are old, that are new */
};

static void add_frame(struct made *m, const struct game *g, double drift)
{
	double ms = FRAME_MS * g->speed * drift * exp(0.06 * normal());
	double chance = ms / 60000; /* of a hitch of one a minute */
	int kind = uniform() < 2 * chance ? 0 : uniform() < g->extra_hitches * chance ? 1 : -1;
	u64 ns;

	if (kind >= 0) {
		ms += 40 + 20 * uniform();
		m->kinds[kind]++;
		m->b.slow++;
		m->b.causes[kind ? CAUSE_FILE_READ : CAUSE_LOCK_WAIT].hitches++;
	}
	ns = (u64)(ms * 1e6);
	m->b.frames++;
	m->b.dur_ns += ns;
	m->b.causes[g->waits ? CAUSE_CPU_WAIT : CAUSE_CODE].ns += ns;
	m->b.max_ns = max(m->b.max_ns, ns);
	m->b.allocs += 100 + (u64)(20 * uniform());
	m->counts[bucket__of(ns)]++;
}

static void add_block(struct store *s, const char *run, struct made *m)
{
	m->b.counts = m->counts;
	store__add_block(s, run, &m->b);
	for (u64 k = 0; k < 2; k++)
		if (m->kinds[k])
			store__add_hitches(s, run,
				&(struct store_hitches){.block = m->b.block,
					.fingerprint = k + 1,
					.count = m->kinds[k],
					.excess_ns = m->kinds[k] * 50000000,
					.worst_ns = m->b.max_ns,
					.sentence = "…"});
}

static void add_run(struct store *s, const char *run, const struct game *g, s64 started_ms, const char *build)
{
	struct made *m = calloc(1, sizeof(*m));
	double drift = 0;

	store__add_run(s, run, &(struct store_run){.started_ms = started_ms, .kind = "soak", .game = "game"});
	store__add_meta(s, run, "meta.build", build);
	store__add_meta(s, run, "device.cpu", g->device ?: "Deck");
	store__add_meta(s, run, "option.budget", g->budget ?: "auto");
	store__add_fingerprint(
		s, run, &(struct store_fingerprint){.key = 1, .cause = CAUSE_LOCK_WAIT, .text = "waiting for g_mutex"});
	if (g->extra_hitches > 0)
		store__add_fingerprint(s, run,
			&(struct store_fingerprint){
				.key = 2, .cause = CAUSE_FILE_READ, .text = "reading pak17.dat in StreamMeshes"});
	for (int i = 0; i < g->seconds / BLOCK_S; i++) {
		memset(m, 0, sizeof(*m));
		m->b.block = (u64)i;
		m->b.scene = g->scene ?: "town";
		/* what is played differs: neighbours are alike */
		drift = 0.7 * drift + 0.01 * normal();
		while (m->b.dur_ns < BLOCK_S * NSEC_PER_SEC)
			add_frame(m, g, exp(drift));
		add_block(s, run, m);
	}
	store__add_memory(
		s, run, &(struct store_memory){.scene = g->scene ?: "town", .rss = (u64)(1e9 + 1e7 * normal())});
	if (g->others) {
		store__add_counter(s, run, "cpus.all_ns", 1000);
		store__add_counter(s, run, "cpus.others_ns", (u64)g->others * 10 - 5);
		store__add_counter(s, run, "cpus.stolen_ns", 5);
	}
	store__add_end(s, run, started_ms + 600000, 0, NULL);
	assert_int_equal(store__flush(s), 0);
	free(m);
}

/* A comparison of a base of so many runs with a new run. */
static void simulate(struct store *s, const struct game *base, int bases, const struct game *new, struct comparison *c)
{
	static const struct compare_options o = {.threshold = 0.03};

	*c = (struct comparison){.base.n = bases, .new.n = 1};
	for (int i = 0; i < bases; i++) {
		run_id__new(c->base.ids[i]);
		add_run(s, c->base.ids[i], base, 1000 + i, "4710");
	}
	run_id__new(c->new.ids[0]);
	add_run(s, c->new.ids[0], new, 5000, "4711");
	assert_int_equal(compare__run(s, &o, c), 0);
}

static int times_worse(const struct game *base, int bases, const struct game *new, int tries)
{
	struct comparison c;
	struct store *s;
	int worse = 0;

	random_state = 42;
	for (int i = 0; i < tries; i++) {
		assert_int_equal(store__open(":memory:", &s), 0);
		simulate(s, base, bases, new, &c);
		worse += c.worse;
		compare__free(&c);
		store__close(s);
	}
	return worse;
}

static const struct game same = {.speed = 1, .seconds = SECONDS};

static void test_identical_builds_raise_at_most_one_false_alarm_in_twenty(void **state)
{
	assert_in_range(times_worse(&same, 1, &same, TRIES), 0, TRIES / 20);
}

static void test_identical_builds_with_repeated_base_runs_raise_no_more(void **state)
{
	assert_in_range(times_worse(&same, 3, &same, TRIES / 2), 0, TRIES / 40);
}

static void test_five_percent_more_median_is_found_in_ten_minutes(void **state)
{
	const struct game slower = {.speed = 1.05, .seconds = SECONDS};

	assert_in_range(times_worse(&same, 1, &slower, TRIES), TRIES * 9 / 10, TRIES);
}

/* such hitches come at random, and 7 in 100 such runs have five or fewer of the ten */
static void test_one_hitch_more_a_minute_is_found_in_ten_minutes(void **state)
{
	const struct game jerky = {.speed = 1, .extra_hitches = 1, .seconds = SECONDS};

	assert_in_range(times_worse(&same, 1, &jerky, TRIES), TRIES * 17 / 20, TRIES);
}

/* ---- what is said ---- */

static void test_the_answer_names_cause_and_the_build_that_had_it_first(void **state)
{
	const struct game jerky = {.speed = 1, .extra_hitches = 6, .seconds = SECONDS};
	struct comparison c;
	struct store *s;
	struct str out = {0};
	struct json *tree;

	random_state = 7;
	assert_int_equal(store__open(":memory:", &s), 0);
	simulate(s, &same, 1, &jerky, &c);
	assert_true(c.worse);
	assert_non_null(c.scenes[0].answer);
	assert_non_null(strstr(c.scenes[0].answer, "in scene town"));
	assert_non_null(strstr(c.scenes[0].answer, "new: reading pak17.dat in StreamMeshes, first seen in build 4711"));
	compare__text(&out, &c);
	assert_non_null(strstr(out.s, "build 4711 is worse than build 4710"));
	str__clear(&out);
	compare__markdown(&out, &c);
	assert_non_null(strstr(out.s, "- new, "));
	assert_non_null(strstr(out.s, "pak17.dat in StreamMeshes, first seen in build 4711"));
	str__clear(&out);
	compare__json(&out, &c);
	tree = json__parse(out.s);
	assert_int_equal(json__number(tree, "worse"), 1);
	assert_string_equal(json__text(json__get(tree, "scenes")->child, "answer"), c.scenes[0].answer);
	json__free(tree);
	str__free(&out);
	compare__free(&c);
	store__close(s);
}

static void test_a_game_twice_as_fast_is_better_and_not_worse(void **state)
{
	const struct game fast = {.speed = 0.5, .seconds = 120}, slow = {.speed = 1, .seconds = 120};
	struct comparison c;
	struct store *s;

	random_state = 3;
	assert_int_equal(store__open(":memory:", &s), 0);
	simulate(s, &slow, 1, &fast, &c);
	assert_true(c.better);
	assert_false(c.worse);
	compare__free(&c);
	store__close(s);
}

/* Of few groups: an interval that leaves 0 out would say that it changed, where p says that it may be chance. */
static void test_an_interval_without_zero_goes_with_a_small_p(void **state)
{
	const struct game hitchy = {.speed = 1.02, .extra_hitches = 6, .seconds = 40},
			  calm = {.speed = 1, .seconds = 40};
	u32 beyond = 0;

	for (random_state = 1; random_state < 10; random_state++) {
		u64 seed = random_state;
		struct comparison c;
		struct store *s;

		assert_int_equal(store__open(":memory:", &s), 0);
		simulate(s, &calm, 1, &hitchy, &c);
		for (int id = 0; id < METRIC_COUNT; id++) {
			const struct metric *m = &c.scenes[0].stats.metrics[id];

			if (!m->measured || id == METRIC_MEMORY)
				continue;
			assert_false(m->low > 0 && m->p > 0.0251);
			beyond += m->low > 0;
		}
		compare__free(&c);
		store__close(s);
		random_state = seed;
	}
	assert_true(beyond > 0);
}

static void test_scenes_are_compared_only_with_themselves(void **state)
{
	const struct game forest = {.speed = 2, .seconds = 60, .scene = "forest"};
	struct comparison c;
	struct store *s;

	assert_int_equal(store__open(":memory:", &s), 0);
	simulate(s, &same, 1, &forest, &c);
	assert_int_equal(c.n_scenes, 2);
	assert_string_equal(c.scenes[0].why_not, "not in the base");
	assert_string_equal(c.scenes[1].why_not, "not in the new runs");
	assert_false(c.worse);
	compare__free(&c);
	store__close(s);
}

static void test_a_worsening_that_the_confirming_run_lacks_is_refuted(void **state)
{
	const struct game slower = {.speed = 1.2, .seconds = 120}, short_same = {.speed = 1, .seconds = 120};
	struct comparison c, again;
	struct store *s;

	random_state = 11;
	assert_int_equal(store__open(":memory:", &s), 0);
	simulate(s, &short_same, 1, &slower, &c);
	assert_true(c.worse);
	simulate(s, &short_same, 1, &slower, &again);
	compare__confirm(&c, &again);
	assert_true(c.worse);
	compare__free(&again);
	simulate(s, &short_same, 1, &short_same, &again);
	compare__confirm(&c, &again);
	assert_false(c.worse);
	assert_true(c.refuted);
	compare__free(&again);
	compare__free(&c);
	store__close(s);
}

/* ---- the machine ---- */

static bool own_fault; /* what gets slower is its code */

static void compare_on(int base_others, int new_others, double speed, struct comparison *c)
{
	const struct game base = {.speed = 1, .seconds = 120, .others = base_others},
			  new = {.speed = speed, .seconds = 120, .others = new_others, .waits = !own_fault};
	struct store *s;

	random_state = 9;
	assert_int_equal(store__open(":memory:", &s), 0);
	simulate(s, &base, 2, &new, c);
	store__close(s);
}

static void test_a_machine_that_was_busier_is_no_regression_of_the_build(void **state)
{
	struct comparison c;
	struct str out = {0};

	compare_on(3, 20, 1.2, &c);
	assert_true(c.worse && c.disturbed);
	compare__text(&out, &c);
	assert_non_null(strstr(out.s, "could not be compared"));
	assert_non_null(
		strstr(out.s, "The machine was busy: others had 20 % of its CPU time in the new runs, in the base "
			      "3 %. What got worse is waiting, for a CPU too, and may be due to that."));
	str__free(&out);
	compare__free(&c);
	compare_on(20, 3, 1.2, &c); /* in spite of it */
	assert_true(c.worse && !c.disturbed);
	compare__free(&c);
	compare_on(20, 3, 1, &c); /* it may be hidden */
	assert_true(!c.worse && c.disturbed);
	compare__free(&c);
	compare_on(80, 82, 1.2, &c); /* no more than before, but a lottery */
	assert_true(c.worse && c.disturbed);
	compare__text(&out, &c);
	assert_non_null(strstr(out.s, "others had 82 % of its CPU time in the new runs, in the base 80 %."));
	str__free(&out);
	compare__free(&c);
	own_fault = true; /* on however busy a machine */
	compare_on(3, 82, 1.2, &c);
	assert_true(c.worse && !c.disturbed);
	compare__free(&c);
	own_fault = false;
	compare_on(5, 9, 1.2, &c);
	assert_true(c.worse && !c.disturbed);
	compare__free(&c);
	compare_on(0, 42, 1.2, &c); /* of the base it is not known */
	assert_true(c.worse && !c.disturbed);
	compare__json(&out, &c);
	assert_non_null(strstr(out.s, "\"machine\": {\"base_others_percent\": null, \"new_others_percent\": 42.000, "
				      "\"disturbed\": false}"));
	str__free(&out);
	compare__free(&c);
}

/* ---- which runs ---- */

#define ID(n) "00000000-0000-4000-8000-00000000000" #n

static void expect_run(struct store *s, const char *selector, const struct run_set *than, int n, const char *first)
{
	struct run_set set;

	assert_int_equal(run_set__find(s, selector, than, &set), n ? EXIT_OK : EXIT_USAGE);
	assert_int_equal(set.n, n);
	if (n)
		assert_string_equal(set.ids[0], first);
}

static struct store *three_runs(void)
{
	const struct game g = {.speed = 1, .seconds = 10}, other = {.speed = 1, .seconds = 10, .device = "desktop"};
	struct store *s;

	assert_int_equal(store__open(":memory:", &s), 0);
	add_run(s, ID(1), &g, 1000, "1");
	add_run(s, ID(2), &other, 2000, "2");
	add_run(s, "a0000000-0000-4000-8000-000000000003", &g, 3000, "1");
	return s;
}

static void test_runs_are_found_by_id_metadata_and_order(void **state)
{
	struct store *s = three_runs();
	struct run_set last;

	expect_run(s, ID(2), NULL, 1, ID(2));
	expect_run(s, "a000", NULL, 1, "a0000000-0000-4000-8000-000000000003");
	expect_run(s, "build=1", NULL, 2, ID(1));
	expect_run(s, "build=1,device.cpu=Deck", NULL, 2, ID(1));
	expect_run(s, "build=2", NULL, 1, ID(2));
	expect_run(s, "build=' OR 1=1 --", NULL, 0, NULL);
	expect_run(s, "b", NULL, 0, NULL);
	expect_run(s, "@last", NULL, 1, "a0000000-0000-4000-8000-000000000003");
	assert_int_equal(run_set__find(s, "0000", NULL, &last), EXIT_USAGE); /* two begin so */
	assert_int_equal(run_set__find(s, "@last", NULL, &last), EXIT_OK);
	expect_run(s, "@prev", &last, 1, ID(1)); /* the second is of another device */
	store__close(s);
}

static void test_what_keeps_runs_from_being_compared_is_named(void **state)
{
	struct store *s = three_runs();
	struct run_set a, b;
	struct str why = {0};

	run_set__find(s, "build=1", NULL, &a);
	run_set__find(s, "build=2", NULL, &b);
	assert_int_equal(run_set__difference(s, &a, &b, &why), 0);
	assert_string_equal(why.s, "device.cpu: 'Deck' and 'desktop'");
	str__clear(&why);
	assert_int_equal(run_set__difference(s, &a, &a, &why), 0);
	assert_int_equal(why.len, 0);
	/* who names the device himself says that its parts do not matter */
	store__add_meta(s, ID(1), "meta.device", "any");
	store__add_meta(s, ID(2), "meta.device", "any");
	store__add_meta(s, "a0000000-0000-4000-8000-000000000003", "meta.device", "any");
	assert_int_equal(run_set__difference(s, &a, &b, &why), 0);
	assert_int_equal(why.len, 0);
	str__free(&why);
	store__close(s);
}

/* ---- history ---- */

static int run_history(const char *path, const char *out, char **words, int n)
{
	char *argv[16] = {"--store", (char *)path};
	int saved = dup(STDOUT_FILENO), status;

	memcpy(argv + 2, words, (size_t)n * sizeof(*words));
	fflush(stdout);
	assert_non_null(freopen(out, "w", stdout));
	status = verb__history(n + 2, argv);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	clearerr(stdout);
	return status;
}

static char *read_all(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	buf[fread(buf, 1, size - 1, f)] = 0;
	fclose(f);
	return buf;
}

/* eight builds, of which the sixth and all later ones are slower; and one of another device between them */
static void test_history_bisects_to_the_first_bad_run(void **state)
{
	const struct game good = {.speed = 1, .seconds = 120}, bad = {.speed = 1.2, .seconds = 120},
			  other = {.speed = 9, .seconds = 30, .device = "desktop"};
	char path[] = "/tmp/test_history.XXXXXX", out[64], id[RUN_ID_SIZE + 4], build[16], text[8192];
	struct json *tree;
	struct store *s;

	assert_true(close(mkstemp(path)) == 0);
	snprintf(out, sizeof(out), "%s.out", path);
	random_state = 5;
	assert_int_equal(store__open(path, &s), 0);
	for (int i = 1; i <= 8; i++) {
		snprintf(id, sizeof(id), "%08d-0000-4000-8000-000000000000", i);
		snprintf(build, sizeof(build), "%d", i);
		add_run(s, id, i < 6 ? &good : &bad, i * 10, build);
	}
	add_run(s, "00000099-0000-4000-8000-000000000000", &other, 35, "9");
	assert_int_equal(store__close(s), 0);
	assert_int_equal(run_history(path, out, (char *[]){"--bisect", "--json", "--metric", "p50_ms"}, 4), EXIT_WORSE);
	tree = json__parse(read_all(out, text, sizeof(text)));
	assert_string_equal(json__text(tree, "first_bad"), "00000006-0000-4000-8000-000000000000");
	assert_int_equal(json__get(tree, "runs")->n, 8);
	json__free(tree);
	assert_int_equal(run_history(path, out, (char *[]){"--limit", "3", "--bisect"}, 3), EXIT_OK);
	assert_non_null(strstr(read_all(out, text, sizeof(text)), "build 7"));
	assert_null(strstr(text, "build 5"));
	assert_int_equal(run_history(path, out, (char *[]){"--limit", "1", "--bisect"}, 3), EXIT_NOT_MEASURED);
	assert_non_null(strstr(read_all(out, text, sizeof(text)), "not bisected"));
	assert_null(strstr(text, "no worse"));
	assert_int_equal(run_history(path, out, (char *[]){"--metric", "fps"}, 2), EXIT_USAGE);
	unlink(path);
	unlink(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identical_builds_raise_at_most_one_false_alarm_in_twenty),
		cmocka_unit_test(test_identical_builds_with_repeated_base_runs_raise_no_more),
		cmocka_unit_test(test_five_percent_more_median_is_found_in_ten_minutes),
		cmocka_unit_test(test_one_hitch_more_a_minute_is_found_in_ten_minutes),
		cmocka_unit_test(test_the_answer_names_cause_and_the_build_that_had_it_first),
		cmocka_unit_test(test_a_game_twice_as_fast_is_better_and_not_worse),
		cmocka_unit_test(test_an_interval_without_zero_goes_with_a_small_p),
		cmocka_unit_test(test_scenes_are_compared_only_with_themselves),
		cmocka_unit_test(test_a_worsening_that_the_confirming_run_lacks_is_refuted),
		cmocka_unit_test(test_a_machine_that_was_busier_is_no_regression_of_the_build),
		cmocka_unit_test(test_runs_are_found_by_id_metadata_and_order),
		cmocka_unit_test(test_history_bisects_to_the_first_bad_run),
		cmocka_unit_test(test_what_keeps_runs_from_being_compared_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
