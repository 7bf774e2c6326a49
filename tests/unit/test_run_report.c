/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "json.h"
#include "page_fixture.h"
#include "run_query.h"
#include "run_report.h"
#include "soak_limits.h"

#define RUN  "00000000-0000-4000-8000-000000000001"
#define EVIL "</script><b>&\"'\n\\ ]]>"

typedef int (*writer)(struct store *s, const char *run, FILE *to);

static struct store *filled(void)
{
	static u32 counts[BUCKETS];
	struct store *s;
	struct store_block b = {.scene = EVIL,
		.frames = 600,
		.slow = 6,
		.dur_ns = 10 * NSEC_PER_SEC,
		.max_ns = 80000000,
		.p50_ns = 16000000,
		.p99_ns = 30000000,
		.counts = counts};

	memset(counts, 0, sizeof(counts));
	counts[bucket__of(16000000)] = 400;
	counts[bucket__of(20000000)] = 185;
	counts[bucket__of(80000000)] = 15;
	b.causes[CAUSE_FILE_READ] = (struct store_cause){.ns = 5, .hitches = 6, .excess_ns = 300000000};
	assert_int_equal(store__open(":memory:", &s), 0);
	store__add_run(s, RUN, &(struct store_run){.started_ms = 1700000000000, .kind = "soak", .game = EVIL});
	store__add_meta(s, RUN, "meta.x", EVIL);
	for (b.block = 0; b.block < 5; b.block++) {
		b.start_ms = b.block * 10000;
		b.warm_up = !b.block;
		store__add_block(s, RUN, &b);
		store__add_hitches(s, RUN,
			&(struct store_hitches){.block = b.block,
				.fingerprint = 3,
				.count = 6,
				.excess_ns = 60000000,
				.worst_ns = 70000000 + b.block,
				.worst_frame = b.block,
				.sentence = EVIL,
				.trace = "javascript:alert(1)"});
	}
	store__add_fingerprint(s, RUN, &(struct store_fingerprint){.key = 3, .cause = CAUSE_FILE_READ, .text = EVIL});
	store__add_memory(s, RUN, &(struct store_memory){.at_ms = 1, .scene = EVIL, .rss = 123456789});
	store__add_check(s, RUN,
		&(struct store_check){
			.scene = EVIL, .name = "frame", .limit = "frame=33 ms", .failed = true, .text = EVIL});
	store__add_counter(s, RUN, "lost.sched", 5);
	store__add_note(s, RUN, 0, 5, EVIL);
	store__add_end(s, RUN, 1700000050000, EXIT_WORSE, "a limit was crossed");
	return s;
}

static char *written(struct store *s, writer write)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	assert_non_null(f);
	assert_int_equal(write(s, RUN, f), 0);
	fclose(f);
	return text;
}

static char *report(writer write)
{
	struct store *s = filled();
	char *text = written(s, write);

	store__close(s);
	return text;
}

static void test_figures_are_sums_over_blocks_without_warm_up(void **state)
{
	struct store *s = filled();
	struct run_facts f;

	assert_int_equal(run_facts__load(s, RUN, &f), 0);
	assert_int_equal(f.n_scenes, 1);
	assert_int_equal(f.scenes[0].frames, 4 * 600);
	assert_int_equal(f.scenes[0].warm_up_frames, 600);
	assert_true(f.scenes[0].p50_ns > 15900000 && f.scenes[0].p50_ns < 16100000);
	assert_true(f.scenes[0].p95_ns > 19900000 && f.scenes[0].p95_ns < 20200000);
	assert_int_equal(f.scenes[0].max_ns, 80000000);
	assert_int_equal(f.scenes[0].peak_rss, 123456789);
	assert_int_equal(f.n_hitches, 1);
	assert_int_equal(f.hitches[0].hitches, 4 * 6);
	assert_int_equal(f.hitches[0].worst_frame, 4);
	assert_string_equal(run_facts__result(&f), "failed");
	run_facts__free(&f);
	assert_int_equal(run_facts__load(s, "00000000-0000-4000-8000-000000000002", &f), -ENOENT);
	run_facts__free(&f);
	store__close(s);
}

static void test_the_page_needs_no_network_and_hostile_text_stays_text(void **state)
{
	char *html = report(run_report__html);

	check_page(html);
	assert_null(strstr(html, "<b>&"));
	assert_null(strstr(html, "</script"));
	assert_non_null(strstr(html, "href=\"./javascript%3Aalert"));
	assert_non_null(strstr(html, "<polyline"));
	free(html);
}

static void test_junit_has_a_case_for_each_limit_and_fails_where_it_was_crossed(void **state)
{
	char *xml = report(run_report__junit);

	check_tags(xml);
	assert_non_null(strstr(xml, "tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"0\""));
	assert_non_null(strstr(xml, "<failure message=\"&#60;/script&#62;"));
	for (const char *p = xml; *p; p++)
		assert_true((unsigned char)*p >= ' ' || *p == '\n');
	free(xml);
}

static void test_a_scene_that_is_all_warm_up_is_not_measured_in_any_report(void **state)
{
	static u32 counts[BUCKETS];
	struct store *s = filled();
	const struct json *scenes;
	struct json *tree;
	char *text;

	store__add_block(s, RUN,
		&(struct store_block){
			.block = 9, .scene = "a short one", .warm_up = true, .frames = 7, .counts = counts});
	text = written(s, run_report__junit);
	check_tags(text);
	assert_non_null(strstr(text, "tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"1\""));
	assert_non_null(strstr(text, ".a short one\" name=\"frames\"><skipped message=\"not measured: 7 frames of"));
	free(text);
	text = written(s, run_report__json);
	tree = json__parse(text);
	scenes = json__get(tree, "scenes");
	assert_string_equal(json__text(scenes->child->next, "scene"), "a short one");
	assert_int_equal(json__number(scenes->child->next, "measured"), false);
	assert_int_equal(json__number(scenes->child, "measured"), true);
	json__free(tree);
	free(text);
	text = written(s, run_report__text);
	assert_non_null(strstr(text, "not measured: 7 frames of warm-up only"));
	free(text);
	text = written(s, run_report__html);
	assert_non_null(strstr(text, "not measured: 7 frames of warm-up only"));
	free(text);
	store__close(s);
}

static void test_each_scene_is_checked_against_each_limit(void **state)
{
	const struct amounts limits = {.of = {[LIMIT_FRAME] = 30000000, [LIMIT_FAULTS] = 5}};
	const struct amounts quick = {.of = {[LIMIT_FRAME] = 10000000}}, slow = {.of = {[LIMIT_FRAME] = 80000000}};
	struct soak_limits *l = calloc(1, sizeof(*l));
	struct store *s = filled();
	char scene[16], *text;

	assert_non_null(l);
	soak_limits__frame(l, "town", &quick, limits__crossed(&limits, &quick));
	soak_limits__frame(l, "forest", &slow, limits__crossed(&limits, &slow));
	soak_limits__frame(l, "town", &quick, limits__crossed(&limits, &quick));
	assert_true(soak_limits__check(l, &limits, s, RUN));
	text = written(s, run_report__junit);
	check_tags(text);
	assert_non_null(strstr(text, "tests=\"7\" failures=\"2\"")); /* of these, and of filled() */
	assert_non_null(strstr(text, ".town\" name=\"frame=30.0 ms\"></testcase>"));
	assert_non_null(strstr(text, ".town\" name=\"faults=5\"></testcase>"));
	assert_non_null(strstr(text, ".forest\" name=\"frame=30.0 ms\"><failure message=\"1 frames beyond it, the "
				     "worst 80.0 ms\"/>"));
	free(text);
	for (u32 i = 0; i < 2 * SOAK_LIMITS_SCENES; i++) {
		snprintf(scene, sizeof(scene), "%u", i);
		soak_limits__frame(l, scene, &slow, 1 << LIMIT_FRAME);
	}
	assert_int_equal(l->n, SOAK_LIMITS_SCENES);
	assert_string_equal(l->scenes[l->n - 1].name, "further scenes");
	assert_int_equal(l->scenes[l->n - 1].crossed[LIMIT_FRAME], SOAK_LIMITS_SCENES + 3);
	store__close(s);
	free(l);
}

static void test_text_says_how_many_frames_the_table_leaves_out(void **state)
{
	char *text = report(run_report__text);

	assert_non_null(strstr(text, " 2400 "));
	assert_non_null(strstr(text, "600 more frames (6 of them slow), of each scene's warm-up"));
	free(text);
}

static void test_slow_frames_of_which_no_cause_is_known_are_said_in_every_report(void **state)
{
	static u32 counts[BUCKETS];
	struct store *s = filled();
	struct json *tree;
	char *text = written(s, run_report__text);

	assert_null(strstr(text, "no cause"));
	free(text);
	store__add_block(
		s, RUN, &(struct store_block){.block = 9, .scene = "town", .frames = 70, .slow = 7, .counts = counts});
	store__add_hitches(s, RUN, &(struct store_hitches){.block = 9, .fingerprint = 3, .count = 2});
	store__add_hitches(s, RUN, &(struct store_hitches){.block = 9, .fingerprint = 0, .count = 4});
	text = written(s, run_report__text);
	assert_non_null(strstr(text, "  5 slow frames have no cause here"));
	free(text);
	text = written(s, run_report__html);
	assert_non_null(strstr(text, "5 slow frames have no cause here"));
	free(text);
	text = written(s, run_report__json);
	tree = json__parse(text);
	assert_int_equal(json__number(tree, "slow_without_cause"), 5);
	json__free(tree);
	free(text);
	store__close(s);
}

static void test_a_run_without_frames_is_an_error_and_never_passed(void **state)
{
	struct store *s;
	char *text;

	assert_int_equal(store__open(":memory:", &s), 0);
	store__add_run(s, RUN, &(struct store_run){.kind = "soak", .game = "g"});
	store__add_end(s, RUN, 1, EXIT_OK, NULL);
	text = written(s, run_report__junit);
	assert_non_null(strstr(text, "errors=\"1\""));
	assert_non_null(strstr(text, "<error message=\"not measured: no frames\"/>"));
	free(text);
	text = written(s, run_report__openmetrics);
	assert_non_null(strstr(text, "redframe_measured{run=\"" RUN "\"} 0\n"));
	free(text);
	text = written(s, run_report__html);
	assert_non_null(strstr(text, "not measured"));
	free(text);
	store__close(s);
}

static void test_the_page_shows_earlier_runs_that_can_be_compared(void **state)
{
	static const char *const ids[] = {"a", "b", "c"}, *const devices[] = {"deck", "desktop", "deck"};
	static u32 counts[BUCKETS];
	struct store_block b = {.frames = 100, .dur_ns = NSEC_PER_SEC, .counts = counts};
	struct run_facts f;
	struct store *s;

	counts[bucket__of(10000000)] = 100;
	assert_int_equal(store__open(":memory:", &s), 0);
	for (int i = 0; i < 3; i++) {
		store__add_run(s, ids[i], &(struct store_run){.started_ms = i, .kind = "soak", .game = "g"});
		store__add_meta(s, ids[i], "device.cpu", devices[i]);
		store__add_meta(s, ids[i], "meta.build", ids[i]);
		store__add_block(s, ids[i], &b);
	}
	assert_int_equal(run_facts__load(s, "c", &f), 0);
	assert_int_equal(f.n_past, 2);
	assert_string_equal(f.past[0].build, "a");
	assert_string_equal(f.past[1].id, "c");
	assert_true(f.past[0].p99_ns > 9900000 && f.past[0].p99_ns < 10100000);
	run_facts__free(&f);
	store__close(s);
}

static void test_json_says_the_same(void **state)
{
	char *text = report(run_report__json);
	struct json *tree = json__parse(text);

	assert_non_null(tree);
	assert_string_equal(json__text(tree, "result"), "failed");
	assert_int_equal(json__number(json__get(tree, "scenes")->child, "frames"), 2400);
	assert_string_equal(json__text(json__get(tree, "scenes")->child, "scene"), EVIL);
	assert_int_equal(json__number(json__get(tree, "counters"), "lost.sched"), 5);
	json__free(tree);
	free(text);
}

/* a sample belongs to the family of the TYPE line above it; a histogram never falls and ends in +Inf = count */
static void test_openmetrics_keeps_its_grammar(void **state)
{
	char *text = report(run_report__openmetrics), *rest = NULL, family[64] = "", last[512] = "";
	unsigned long long before = 0, v;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		snprintf(last, sizeof(last), "%s", line);
		if (sscanf(line, "# TYPE %63s", family) == 1 || line[0] == '#')
			continue;
		assert_int_equal(strncmp(line, family, strlen(family)), 0);
		assert_non_null(strrchr(line, '}'));
		if (!strstr(line, "_bucket{"))
			continue;
		v = strtoull(strrchr(line, '}') + 1, NULL, 10);
		assert_true(v >= before);
		before = strstr(line, "le=\"+Inf\"") ? 0 : v;
	}
	assert_string_equal(last, "# EOF");
	free(text);
}

static void test_openmetrics_passes_promtool(void **state)
{
	char *text = report(run_report__openmetrics);
	int status;
	FILE *p;

	if (system("command -v promtool >/dev/null 2>&1")) {
		free(text);
		print_message("skipped: promtool is not installed (Debian: prometheus)\n");
		skip();
	}
	p = popen("promtool check metrics >/dev/null 2>&1", "w");
	assert_non_null(p);
	fputs(text, p);
	status = pclose(p); /* 1: it cannot be read; 3: its linter has something to say */
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	free(text);
}

/* as a headless browser draws it: that there is something, people look at the rest */
static void test_the_page_renders_in_chromium(void **state)
{
	char dir[] = "/tmp/redframe-page.XXXXXX", command[600];
	char *html;
	FILE *f;

	if (system("command -v chromium >/dev/null 2>&1")) {
		print_message("skipped: chromium is not installed\n");
		skip();
	}
	html = report(run_report__html);
	assert_non_null(mkdtemp(dir));
	snprintf(command, sizeof(command), "%s/page.html", dir);
	f = fopen(command, "w");
	assert_non_null(f);
	fputs(html, f);
	fclose(f);
	free(html);
	snprintf(command, sizeof(command),
		"cd %s && timeout 60 chromium --headless --no-sandbox --disable-gpu --user-data-dir=%s/profile "
		"--screenshot=%s/page.png --window-size=1000,1400 file://%s/page.html >/dev/null 2>&1 && "
		"test $(stat -c %%s page.png) -gt 20000",
		dir, dir, dir, dir);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figures_are_sums_over_blocks_without_warm_up),
		cmocka_unit_test(test_the_page_needs_no_network_and_hostile_text_stays_text),
		cmocka_unit_test(test_junit_has_a_case_for_each_limit_and_fails_where_it_was_crossed),
		cmocka_unit_test(test_a_scene_that_is_all_warm_up_is_not_measured_in_any_report),
		cmocka_unit_test(test_each_scene_is_checked_against_each_limit),
		cmocka_unit_test(test_text_says_how_many_frames_the_table_leaves_out),
		cmocka_unit_test(test_slow_frames_of_which_no_cause_is_known_are_said_in_every_report),
		cmocka_unit_test(test_a_run_without_frames_is_an_error_and_never_passed),
		cmocka_unit_test(test_the_page_shows_earlier_runs_that_can_be_compared),
		cmocka_unit_test(test_json_says_the_same),
		cmocka_unit_test(test_openmetrics_keeps_its_grammar),
		cmocka_unit_test(test_openmetrics_passes_promtool),
		cmocka_unit_test(test_the_page_renders_in_chromium),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
