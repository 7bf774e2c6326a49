/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Exports of frames alone: a table and a page.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "export.h"
#include "log.h"
#include "page_fixture.h"
#include "recfile.h"
#include "strings.h"

#define COLUMNS     (10 + CAUSE_COUNT + 3)
#define AT_DURATION 4
#define AT_SLOW     7
#define AT_CAUSES   10
#define AT_THREAD   (10 + CAUSE_COUNT)
#define AT_SCENE    (AT_THREAD + 1)
#define AT_VERDICT  (AT_THREAD + 2)

static char dir[] = "/tmp/redframe-test-XXXXXX";
static char recording[64], hostile[64], no_frames[64], output[64];

static char *slurp(const char *path)
{
	FILE *f = fopen(path, "re");
	struct str s = {0};
	char buf[4096];
	size_t n;

	assert_non_null(f);
	while ((n = fread(buf, 1, sizeof(buf), f)))
		str__add_n(&s, buf, n);
	fclose(f);
	return s.s;
}

/* What `export recording -o out.FORMAT MORE` wrote; the caller frees. */
static char *export(const char *path, const char *format, const char *option, const char *value)
{
	char *args[] = {(char *)path, "-q", "-f", "-o", output, (char *)option, (char *)value, NULL};

	snprintf(output, sizeof(output), "%s/out.%s", dir, format);
	assert_int_equal(verb__export(option ? 7 : 5, args), EXIT_OK);
	return slurp(output);
}

/* A row's cells, in place, as RFC 4180 has them; false: that was the last row. */
static bool next_row(char **at, char *cells[COLUMNS])
{
	char *p = *at, *to;

	if (!*p)
		return false;
	for (int i = 0; i < COLUMNS; i++) {
		bool quoted = *p == '"';

		p += quoted;
		for (cells[i] = to = p; *p && (quoted || (*p != ',' && *p != '\n')); p++) {
			if (quoted && *p == '"' && *++p != '"')
				break;
			*to++ = *p;
		}
		assert_int_equal(*p, i + 1 < COLUMNS ? ',' : '\n');
		*to = 0;
		p++;
	}
	*at = p;
	return true;
}

static void test_the_table_has_a_row_for_each_frame_whose_causes_sum_to_it(void **state)
{
	char *text = export(recording, "csv", NULL, NULL), *at = text, *cells[COLUMNS];
	int rows = 0, slow = 0;

	assert_true(next_row(&at, cells));
	assert_string_equal(cells[AT_DURATION], "duration_ms");
	assert_string_equal(cells[AT_SLOW], "slow");
	assert_string_equal(cells[AT_CAUSES], "code_ms");
	assert_string_equal(cells[AT_VERDICT], "verdict");
	for (; next_row(&at, cells); rows++) {
		double sum = 0;

		for (int i = 0; i < CAUSE_COUNT; i++)
			sum += strtod(cells[AT_CAUSES + i], NULL);
		assert_true(fabs(sum - strtod(cells[AT_DURATION], NULL)) < 1e-4);
		assert_int_equal(!strcmp(cells[AT_SLOW], "1"), cells[AT_VERDICT][0] != 0);
		slow += !strcmp(cells[AT_SLOW], "1");
	}
	assert_int_equal(rows, 32);
	assert_int_equal(slow, 1);
	free(text);
}

static void test_start_counts_as_from_and_to_do(void **state)
{
	char *text = export(recording, "csv", "--from", "0.3"), *at = text, *cells[COLUMNS];
	double start = 0;
	int rows = 0;

	assert_true(next_row(&at, cells));
	assert_string_equal(cells[2], "start_s");
	for (; next_row(&at, cells); rows++) {
		start = strtod(cells[2], NULL);
		assert_true(start + strtod(cells[AT_DURATION], NULL) / 1e3 > 0.3 - 1e-6);
	}
	assert_int_equal(rows, 2); /* 300 to 310 ms, and 310 to 346 ms */
	assert_true(fabs(start - 0.31) < 1e-6);
	free(text);
}

/* to a spreadsheet an apostrophe in front means text; and one row stays one row */
static void test_no_text_of_the_game_becomes_a_formula_or_another_cell(void **state)
{
	char *text = export(hostile, "csv", NULL, NULL), *at = text, *cells[COLUMNS];

	assert_true(next_row(&at, cells));
	assert_true(next_row(&at, cells));
	assert_string_equal(cells[AT_THREAD], "'=cmd|'/C \"x");
	assert_string_equal(cells[AT_SCENE], "' @SUM(1),\"</main><script>\xef\xbf\xbd");
	assert_true(next_row(&at, cells));
	assert_false(next_row(&at, cells));
	free(text);
}

static void test_the_page_says_what_explain_says_and_needs_nothing_else(void **state)
{
	char *html = export(recording, "html", NULL, NULL);

	check_page(html);
	assert_non_null(strstr(html, "1 of 32 frames slow"));
	assert_non_null(strstr(html, "<b>36.00 ms</b>, frame 32: 28.1 ms waiting for mutex g_navmesh_mutex held by "
				     "RenderThread, which took 1 page fault on /data/shaders.pak (1 from disk)"));
	assert_non_null(strstr(html, "<td>lock_wait</td><td>28."));
	assert_non_null(strstr(html, "<td class=\"deep\">page_fault</td>"));
	assert_non_null(strstr(html, "role=\"img\""));
	assert_null(strstr(html, "Only a part"));
	free(html);
}

static void test_the_page_of_a_part_says_so_and_counts_only_that(void **state)
{
	char *html = export(recording, "html", "--frames", "5..9");

	assert_non_null(strstr(html, "0 of 5 frames slow"));
	assert_non_null(strstr(html, "Only a part of the recording."));
	assert_non_null(strstr(html, "<h2>No slow frames</h2>"));
	assert_null(strstr(html, "g_navmesh_mutex"));
	free(html);
}

static void test_text_of_the_game_stays_text_in_the_page(void **state)
{
	char *html = export(hostile, "html", NULL, NULL);

	check_tags(html);
	assert_null(strstr(html, "<script"));
	assert_non_null(strstr(html, "&#60;/h1&#62;"));
	free(html);
}

static void test_without_frames_there_is_neither_table_nor_page(void **state)
{
	static const char *const formats[] = {"csv", "html"};

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		char *args[] = {no_frames, "-f", "-o", output, NULL};

		snprintf(output, sizeof(output), "%s/out.%s", dir, formats[i]);
		assert_int_equal(verb__export(4, args), EXIT_NOT_MEASURED);
		assert_true(access(output, F_OK));
	}
}

/* more frames than the plot has columns */
static void test_the_plot_of_many_frames_stays_small_and_shows_the_longest(void **state)
{
	char path[64], *html;
	FILE *f;

	snprintf(path, sizeof(path), "%s/many", dir);
	f = fopen(path, "we");
	assert_non_null(f);
	for (u64 i = 0, ms = 1000; i <= 5000; i++, ms += i % 1000 == 1 && i > 1 ? 900 : 10)
		fprintf(f, "%llums 100 0 frame number=%llu stream=1\n", (unsigned long long)ms, (unsigned long long)i);
	fclose(f);
	snprintf(output, sizeof(output), "%s/many.redframe", dir);
	assert_int_equal(recfile__compile(path, output), 0);
	unlink(path);
	snprintf(path, sizeof(path), "%s", output);
	html = export(path, "html", NULL, NULL);
	unlink(path);
	check_tags(html);
	assert_non_null(strstr(html, "4 of 5000 frames slow"));
	assert_non_null(strstr(html, "the longest of each 8 frames"));
	assert_non_null(strstr(html, "cut at"));
	assert_non_null(strstr(html, "<h2>They repeat</h2>"));
	assert_non_null(strstr(html, "<td>4</td><td>3560.00</td>"));
	assert_true(strlen(html) < 40000);
	free(html);
}

static int compile(const char *text, const char *out)
{
	char path[64];
	FILE *f;
	int err;

	snprintf(path, sizeof(path), "%s/text", dir);
	f = fopen(path, "we");
	if (!f)
		return -1;
	fputs(text, f);
	fclose(f);
	err = recfile__compile(path, out);
	unlink(path);
	return err;
}

/* a damaged file may say anything of time */
static void test_frames_of_centuries_do_no_harm(void **state)
{
	static const char *const formats[] = {"csv", "html"};
	char path[64], *text;

	snprintf(path, sizeof(path), "%s/ages", dir);
	assert_int_equal(compile("1ns 100 0 frame number=1 stream=1\n"
				 "6000000000000000000ns 100 0 frame number=2 stream=1\n"
				 "6000000000000000001ns 100 0 frame number=3 stream=1\n"
				 "12000000000000000000ns 100 0 frame number=4 stream=1\n"
				 "18000000000000000000ns 100 0 frame number=5 stream=1\n",
				 path),
		0);
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		text = export(path, formats[i], NULL, NULL);
		assert_non_null(strstr(text, i ? "of 4 frames slow" : "\n0,5,"));
		free(text);
	}
	unlink(path);
}

static int clean(void **state)
{
	static const char *const names[] = {"r", "h", "n", "out.csv", "out.html"};
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	return rmdir(dir);
}

static int make_recordings(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(recording, sizeof(recording), "%s/r", dir);
	snprintf(hostile, sizeof(hostile), "%s/h", dir);
	snprintf(no_frames, sizeof(no_frames), "%s/n", dir);
	return recfile__compile("tests/golden/explain_lock_owner.txt", recording) ||
	       compile("0 0 0 info text=\"game.tgid=100\"\n"
		       "0 0 0 info text=\"game.name=</h1><script>\"\n"
		       "0 100 0 thread tgid=100 nstid=100 name=\"=cmd|'/C \\\"x\"\n"
		       "90ms 100 0 scene name=\" @SUM(1),\\\"</main><script>\\xff\"\n"
		       "100ms 100 0 frame number=1 stream=1\n"
		       "110ms 100 0 frame number=2 stream=1\n"
		       "120ms 100 0 frame number=3 stream=1\n",
		       hostile) ||
	       compile("100ms 100 0 switch next_tid=101 prev_state=1 sys=futex flags=6\n", no_frames);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_table_has_a_row_for_each_frame_whose_causes_sum_to_it),
		cmocka_unit_test(test_start_counts_as_from_and_to_do),
		cmocka_unit_test(test_no_text_of_the_game_becomes_a_formula_or_another_cell),
		cmocka_unit_test(test_the_page_says_what_explain_says_and_needs_nothing_else),
		cmocka_unit_test(test_the_page_of_a_part_says_so_and_counts_only_that),
		cmocka_unit_test(test_text_of_the_game_stays_text_in_the_page),
		cmocka_unit_test(test_without_frames_there_is_neither_table_nor_page),
		cmocka_unit_test(test_frames_of_centuries_do_no_harm),
		cmocka_unit_test(test_the_plot_of_many_frames_stays_small_and_shows_the_longest),
	};

	return cmocka_run_group_tests_name("frame exports", tests, make_recordings, clean);
}
