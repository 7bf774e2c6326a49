// SPDX-License-Identifier: GPL-2.0-only
/* The list of code made at run time: what is taken from it, and what was where when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jit.h"
#include "perf_map.h"
#include "recording.h"

/* as if the file had grown by text and was then read at `now` */
static void grow(struct perf_map *p, const char *text, u64 now)
{
	perf_map__take(p, text, strlen(text), now);
	p->looked = now;
}

static void is(const struct perf_map *p, u64 addr, u64 ts, const char *name)
{
	const struct jit_code *c = perf_map__find(p, addr, ts);

	if (name)
		assert_non_null(c);
	else
		assert_null(c);
	if (name)
		assert_string_equal(perf_map__name(p, c), name);
}

static void test_names_are_of_whole_ranges(void **state)
{
	struct perf_map p = PERF_MAP_NONE;

	grow(&p, "1000 10 a\n0x1ff0 0x20 b over two pages\n", 100);
	assert_int_equal(perf_map__settle(&p), 0);
	is(&p, 0xfff, 50, NULL);
	is(&p, 0x1000, 50, "a");
	is(&p, 0x100f, 50, "a");
	is(&p, 0x1010, 50, NULL);
	is(&p, 0x1ff0, 50, "b over two pages");
	is(&p, 0x200f, 50, "b over two pages");
	is(&p, 0x2010, 50, NULL);
	perf_map__close(&p);
}

static int count_symbols(void *arg, const struct ev_hdr *rec)
{
	*(u32 *)arg += rec->kind == EV_JIT_SYMBOL;
	return 0;
}

static void test_each_recording_has_the_symbols_that_it_needs_once(void **state)
{
	struct perf_map p = PERF_MAP_NONE;
	Dwfl_Callbacks none = {};
	Dwfl *dwfl = dwfl_begin(&none);

	grow(&p, "1000 10 a\n", 100);
	assert_int_equal(perf_map__settle(&p), 0);
	for (int i = 0; i < 2; i++) {
		struct recording_writer w;
		struct jit j = {.map = &p, .dwfl = dwfl, .w = &w};
		u32 symbols = 0;

		recording__to(&w, count_symbols, &symbols);
		perf_map__unname(&p);
		assert_int_equal(jit__id(&j, 0x1000, 50), 1);
		assert_int_equal(jit__id(&j, 0x1008, 50), 1);
		assert_int_equal(symbols, 1);
	}
	dwfl_end(dwfl);
	perf_map__close(&p);
}

static void test_the_same_place_has_other_code_later_and_in_between_it_is_not_known(void **state)
{
	struct perf_map p = PERF_MAP_NONE;

	grow(&p, "1000 40 old\n1040 40 beside\n", 100);
	p.looked = 200; /* nothing new */
	grow(&p, "1020 10 new\n", 300);
	assert_int_equal(perf_map__settle(&p), 0);
	is(&p, 0x1020, 199, "old");
	is(&p, 0x1020, 250, NULL);
	is(&p, 0x1020, 300, "new");
	is(&p, 0x1000, 300, NULL); /* what is left of old is no code any more */
	is(&p, 0x1040, 250, "beside");
	perf_map__close(&p);
}

static void test_code_that_replaces_none_was_there_since_it_could_have_been(void **state)
{
	struct perf_map p = PERF_MAP_NONE;

	p.looked = 200;
	grow(&p, "1000 40 f\n", 300);
	assert_int_equal(perf_map__settle(&p), 0);
	is(&p, 0x1000, 199, NULL);
	is(&p, 0x1000, 201, "f");
	perf_map__close(&p);
}

static void test_lines_that_make_no_sense_are_counted_and_left_out(void **state)
{
	static const char *const bad[] = {"", "x", "1000", "1000 10", "1000 10 ", "1000 0 f", "-1 10 f", "1000 -1 f",
		"ffffffffffffffff 10 f", "11111111111111111 10 f", "1000 100001 f", "1000\t10 f", " 1000 10 f",
		"1000  10 f"};
	struct perf_map p = PERF_MAP_NONE;
	char longest[3000];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		grow(&p, bad[i], 100);
		grow(&p, "\n", 100);
	}
	assert_int_equal(p.bad, ARRAY_SIZE(bad));
	memset(longest, 'f', sizeof(longest));
	memcpy(longest, "1000 10 ", 8);
	longest[sizeof(longest) - 1] = 0;
	grow(&p, longest, 100);
	grow(&p, "\n2000 10 g\n3000 10 no end of line", 100);
	assert_int_equal(p.bad, ARRAY_SIZE(bad) + 1);
	assert_int_equal(p.n, 1);
	assert_int_equal(perf_map__settle(&p), 0);
	is(&p, 0x2000, 100, "g");
	is(&p, 0x1000, 100, NULL);
	is(&p, 0x3000, 100, NULL);
	perf_map__close(&p);
}

static void test_a_line_that_comes_in_pieces_is_one(void **state)
{
	struct perf_map p = PERF_MAP_NONE;

	grow(&p, "1000 1", 100);
	grow(&p, "0 some", 200);
	grow(&p, "thing\n", 300);
	assert_int_equal(perf_map__settle(&p), 0);
	is(&p, 0x100f, 300, "something");
	assert_int_equal(p.bad, 0);
	perf_map__close(&p);
}

static void test_very_many_overlapping_lines_end_soon_and_are_counted(void **state)
{
	struct perf_map p = PERF_MAP_NONE;
	char line[64];

	for (u32 i = 0; i < 40000; i++) {
		snprintf(line, sizeof(line), "%x 800 f%u\n", 0x1000 + i % 1024, i);
		grow(&p, line, 100 + i);
	}
	assert_int_equal(perf_map__settle(&p), 0);
	assert_int_equal(p.beyond, 40000 - 16384);
	assert_non_null(perf_map__find(&p, 0x1400, 100 + 16383));
	perf_map__close(&p);
}

/* ---- files ---- */

static char path[64];

static void put(const char *mode, const char *text)
{
	FILE *f = fopen(path, mode);

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* The emulator of arm64 programs has no such call; every kernel that redframe runs on has. */
static void need_openat2(void)
{
	if (syscall(SYS_openat2, AT_FDCWD, "/", NULL, 0) >= 0 || errno != ENOSYS)
		return;
	print_message("NOT TESTED: there is no openat2 here\n");
	skip();
}

static int remove_file(void **state)
{
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	return 0;
}

static void test_a_file_is_read_as_it_grows_and_outlives_its_name(void **state)
{
	struct perf_map p = PERF_MAP_NONE;

	need_openat2();
	perf_map__refresh(&p, (u32)getpid(), 100);
	assert_int_equal(p.n, 0);
	put("w", "1000 10 a\n20");
	perf_map__refresh(&p, (u32)getpid(), 200);
	assert_int_equal(p.n, 1);
	put("a", "00 10 b\n");
	unlink(path);
	perf_map__refresh(&p, (u32)getpid(), 300);
	assert_int_equal(perf_map__settle(&p), 0);
	is(&p, 0x1000, 150, "a");
	is(&p, 0x2000, 250, "b");
	is(&p, 0x2000, 150, NULL);
	assert_null(p.refused);
	perf_map__close(&p);
}

static void test_a_file_written_anew_says_what_is_gone(void **state)
{
	struct perf_map p = PERF_MAP_NONE;

	need_openat2();
	put("w", "1000 10 a\n2000 10 b\n");
	perf_map__refresh(&p, (u32)getpid(), 100);
	put("w", "2000 10 b\n3000 10 c\n4000 10 d\n");
	perf_map__refresh(&p, (u32)getpid(), 200);
	assert_int_equal(perf_map__settle(&p), 0);
	assert_int_equal(p.n, 4); /* b is still the same */
	is(&p, 0x1000, 99, "a");
	is(&p, 0x1000, 200, NULL);
	is(&p, 0x2000, 99, "b");
	is(&p, 0x2000, 200, "b");
	is(&p, 0x4000, 200, "d");
	perf_map__close(&p);
}

static void test_what_is_no_regular_file_is_not_opened(void **state)
{
	struct perf_map p = PERF_MAP_NONE;

	need_openat2();
	assert_int_equal(mkfifo(path, 0600), 0); /* to open it would wait for ever */
	perf_map__refresh(&p, (u32)getpid(), 100);
	assert_string_equal(p.refused, "it is no regular file");
	unlink(path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	perf_map__refresh(&p, (u32)getpid(), 200);
	assert_string_equal(p.refused, "it is a symbolic link");
	assert_int_equal(p.n + p.bad, 0);
	perf_map__close(&p);
}

static void test_a_file_of_another_user_is_refused(void **state)
{
	struct perf_map p = PERF_MAP_NONE;

	need_openat2();
	if (geteuid()) {
		print_message("skipped: only root can make a file another user's\n");
		skip();
	}
	put("w", "1000 10 a\n");
	assert_int_equal(chown(path, 12345, 12345), 0);
	perf_map__refresh(&p, (u32)getpid(), 100);
	assert_string_equal(p.refused, "it belongs to another user than the game's");
	assert_int_equal(p.n, 0);
	perf_map__close(&p);
}

#define FILE_TEST(t) cmocka_unit_test_setup_teardown(t, remove_file, remove_file)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_are_of_whole_ranges),
		cmocka_unit_test(test_each_recording_has_the_symbols_that_it_needs_once),
		cmocka_unit_test(test_the_same_place_has_other_code_later_and_in_between_it_is_not_known),
		cmocka_unit_test(test_code_that_replaces_none_was_there_since_it_could_have_been),
		cmocka_unit_test(test_lines_that_make_no_sense_are_counted_and_left_out),
		cmocka_unit_test(test_a_line_that_comes_in_pieces_is_one),
		cmocka_unit_test(test_very_many_overlapping_lines_end_soon_and_are_counted),
		FILE_TEST(test_a_file_is_read_as_it_grows_and_outlives_its_name),
		FILE_TEST(test_a_file_written_anew_says_what_is_gone),
		FILE_TEST(test_what_is_no_regular_file_is_not_opened),
		FILE_TEST(test_a_file_of_another_user_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
