/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Golden recordings: tests/golden/explain_*.txt, compiled, explained as text and as JSON, must give explain_*.expected
 * to the byte. REDFRAME_UPDATE_GOLDEN=1 writes them anew: look at the difference before committing it.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>

#include "explain_fixture.h"
#include "explain_verb.h"

#define GOLDEN       "tests/golden/explain_*.txt"
#define GOLDEN_LEAST 15

static int compile(const char *path)
{
	char out[] = "/tmp/redframe-test-XXXXXX";
	int fd = mkstemp(out);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(recfile__compile(path, out), 0);
	fd = open(out, O_RDONLY);
	unlink(out);
	return fd;
}

/* `explain` of a recording, to a file that is closed then. */
static int print_to(FILE *to, const char *path, bool json)
{
	struct view *view = view__new(&(struct view_options){.json = json, .all = true, .worst = 10});
	struct explained e = {};
	int err;

	assert_non_null(view);
	assert_non_null(to);
	explain_fd(&e, compile(path), NULL, view__verdict, view);
	err = view__print(view, to, e.m, e.report, &e.r);
	fclose(to);
	view__free(view);
	explained__free(&e);
	return err;
}

static char *explain_to_text(const char *path, bool json)
{
	size_t size;
	char *text = NULL;

	assert_int_equal(print_to(open_memstream(&text, &size), path, json), 0);
	return text;
}

static char *read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 1 << 20);

	assert_non_null(text);
	if (!f) {
		print_error("no %s\n", path);
		fail();
	}
	text[fread(text, 1, (1 << 20) - 1, f)] = 0;
	fclose(f);
	return text;
}

static void write_file(const char *path, const char *a, const char *b)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fprintf(f, "%s\n%s", a, b);
	fclose(f);
}

static void check_golden(const char *path)
{
	char expected_path[256], *text = explain_to_text(path, false), *json = explain_to_text(path, true), *got, *want;

	snprintf(expected_path, sizeof(expected_path), "%.*s.expected", (int)strlen(path) - 4, path);
	if (getenv("REDFRAME_UPDATE_GOLDEN"))
		write_file(expected_path, text, json);
	want = read_file(expected_path);
	assert_true(asprintf(&got, "%s\n%s", text, json) > 0);
	if (strcmp(got, want))
		print_error("%s differs\n--- got\n%s\n--- want\n%s\n", path, got, want);
	assert_string_equal(got, want);
	free(text);
	free(json);
	free(got);
	free(want);
}

static void test_golden_recordings_give_golden_verdicts(void **state)
{
	glob_t g;

	assert_int_equal(glob(GOLDEN, 0, NULL, &g), 0);
	assert_true(g.gl_pathc >= GOLDEN_LEAST);
	for (size_t i = 0; i < g.gl_pathc; i++)
		check_golden(g.gl_pathv[i]);
	globfree(&g);
}

static void test_explaining_twice_gives_the_same_bytes(void **state)
{
	char *a = explain_to_text("tests/golden/explain_pipeline.txt", true);
	char *b = explain_to_text("tests/golden/explain_pipeline.txt", true);

	assert_string_equal(a, b);
	free(a);
	free(b);
}

static void test_budget_is_read_as_ms_fps_or_auto(void **state)
{
	struct explain_options o = {};

	assert_int_equal(budget__parse("16.7", &o), 0);
	assert_int_equal(o.budget_ns, 16700000);
	assert_int_equal(o.from, BUDGET_OPTION);
	assert_int_equal(budget__parse("60fps", &o), 0);
	assert_int_equal(o.budget_ns, 16666667);
	assert_int_equal(budget__parse("20ms", &o), 0);
	assert_int_equal(o.budget_ns, 20000000);
	assert_int_equal(budget__parse("auto", &o), 0);
	assert_int_equal(o.from, BUDGET_AUTO);
	assert_true(budget__parse("fast", &o) < 0);
	assert_true(budget__parse("-5", &o) < 0);
	assert_true(budget__parse("0", &o) < 0);
	assert_true(budget__parse("16x", &o) < 0);
	assert_true(budget__parse("nan", &o) < 0);
	assert_true(budget__parse("", &o) < 0);
}

static void test_formulas_stand_in_the_documentation(void **state)
{
	char *doc = read_file("docs/attribution.md");

	assert_non_null(strstr(doc, explain_formulas));
	free(doc);
}

struct seen {
	u64 frames, full;
};

static void count_verdicts(const struct verdict *v, const struct model *m, void *arg)
{
	struct seen *s = arg;

	s->frames++;
	s->full += v->n_parts && v->sentence;
}

static const char three_frames[] = "0 0 0 info text=\"game.tgid=100\"\n"
				   "0 0 0 info text=\"budget.ms=15\"\n"
				   "100ms 100 0 frame number=0 stream=1\n"
				   "110ms 100 0 frame number=1 stream=1\n"
				   "130ms 100 0 frame number=2 stream=1\n"
				   "140ms 100 0 frame number=3 stream=1\n";

static void test_every_frame_comes_out_and_only_slow_ones_in_full(void **state)
{
	struct explained e = {};
	struct seen s = {};

	explain_string(&e, three_frames, NULL, count_verdicts, &s);
	assert_int_equal(s.frames, 3);
	assert_int_equal(s.full, 1);
	assert_int_equal(e.report->frames, 3);
	assert_int_equal(e.report->slow, 1);
	assert_int_equal(e.report->over_budget_ns, 5000000);
	explained__free(&e);
}

static void test_every_frame_option_explains_those_that_are_not_slow(void **state)
{
	struct explain_options o = {.every_frame = true};
	struct explained e = {};
	struct seen s = {};

	explain_string(&e, three_frames, &o, count_verdicts, &s);
	assert_int_equal(s.full, 3);
	explained__free(&e);
}

#define ONE_FRAME "tests/golden/explain_one_frame.txt"

static void test_a_reader_who_goes_away_is_no_error_and_a_full_disk_is(void **state)
{
	int ends[2];

	signal(SIGPIPE, SIG_IGN);
	for (int json = 0; json < 2; json++) {
		assert_int_equal(print_to(fopen("/dev/full", "w"), ONE_FRAME, json), -ENOSPC);
		assert_int_equal(pipe(ends), 0);
		close(ends[0]);
		assert_int_equal(print_to(fdopen(ends[1], "w"), ONE_FRAME, json), 0);
	}
}

static void test_report_uses_nearest_rank(void **state)
{
	struct explained e = {};
	struct seen s = {};

	explain_string(&e, three_frames, NULL, count_verdicts, &s);
	assert_int_equal(e.report->p50, 10000000);
	assert_int_equal(e.report->p95, 20000000);
	assert_int_equal(e.report->max, 20000000);
	assert_true(e.report->mean_ns > 13333333.0 && e.report->mean_ns < 13333334.0);
	assert_true(e.report->low1_fps > 49.99 && e.report->low1_fps < 50.01);
	explained__free(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden_recordings_give_golden_verdicts),
		cmocka_unit_test(test_explaining_twice_gives_the_same_bytes),
		cmocka_unit_test(test_budget_is_read_as_ms_fps_or_auto),
		cmocka_unit_test(test_formulas_stand_in_the_documentation),
		cmocka_unit_test(test_every_frame_comes_out_and_only_slow_ones_in_full),
		cmocka_unit_test(test_every_frame_option_explains_those_that_are_not_slow),
		cmocka_unit_test(test_a_reader_who_goes_away_is_no_error_and_a_full_disk_is),
		cmocka_unit_test(test_report_uses_nearest_rank),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
