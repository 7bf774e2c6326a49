/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "strings.h"
#include "syscalls.h"

static void assert_sanitized(const char *in, size_t n, const char *out)
{
	char buf[256];

	assert_int_equal(utf8__sanitize(buf, sizeof(buf), in, n), strlen(out));
	assert_string_equal(buf, out);
}

static void test_sanitize_keeps_valid_text_and_replaces_each_bad_byte(void **state)
{
	assert_sanitized("grüße 日本 🎮", strlen("grüße 日本 🎮"), "grüße 日本 🎮");
	assert_sanitized("a\xff\xfe", 3, "a\xef\xbf\xbd\xef\xbf\xbd");
	assert_sanitized("\xc0\xaf", 2, "\xef\xbf\xbd\xef\xbf\xbd");                                 /* overlong */
	assert_sanitized("\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");                 /* surrogate */
	assert_sanitized("\xf4\x90\x80\x80", 4, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* > 10FFFF */
	assert_sanitized("\xe2\x82", 2, "\xef\xbf\xbd\xef\xbf\xbd");                                 /* cut */
	assert_sanitized("a\0b", 3,
		"a\xef\xbf\xbd"
		"b");
}

static void test_sanitize_cuts_between_characters(void **state)
{
	char buf[6];

	assert_int_equal(utf8__sanitize(buf, sizeof(buf), "aaaä", 5), 5);
	assert_string_equal(buf, "aaaä");
	assert_int_equal(utf8__sanitize(buf, sizeof(buf), "aaaaä", 6), 4);
	assert_string_equal(buf, "aaaa");
}

static void test_escape_leaves_a_terminal_nothing_to_obey(void **state)
{
	static const char in[] = "\x1b[31mred\n\x7f\xc2\x9b\xe2\x80\xae\tö";
	char buf[128];

	term__escape(buf, sizeof(buf), in, sizeof(in) - 1);
	assert_string_equal(buf, "\\x1b[31mred\\x0a\\x7f\\x9b\\u202e\\x09ö");
}

static void test_json_string_is_valid_whatever_comes(void **state)
{
	static const char in[] = "a\"b\\c\n\x01\xff\0ö";
	struct str s = {0};

	json__string(&s, in, sizeof(in) - 1);
	assert_string_equal(s.s, "\"a\\\"b\\\\c\\n\\u0001\xef\xbf\xbd\\u0000ö\"");
	str__clear(&s);
	json__member(&s, "name", "\"\n");
	json__member(&s, "none", NULL);
	assert_string_equal(s.s, "\"name\": \"\\\"\\n\"\"none\": null");
	str__free(&s);
}

static void test_reasons_that_never_came_are_not_listed(void **state)
{
	const struct tally_row rows[] = {{"over a budget", 0}, {"the ring was full", 7}, {"taken", 0}, {"no room", 1}};
	struct str s = {0};

	str__tallies(&s, rows, ARRAY_SIZE(rows));
	assert_string_equal(s.s, "the ring was full 7, no room 1");
	str__clear(&s);
	str__tallies(&s, rows, 1);
	assert_int_equal(s.len, 0);
	str__free(&s);
}

static void test_bytes_and_times_read_as_in_the_manual(void **state)
{
	static const struct {
		u64 value;
		const char *bytes, *ns;
	} rows[] = {{7, "7 B", "7 ns"}, {12288, "12 KiB", "12 µs"}, {4608, "4.5 KiB", "4.6 µs"},
		{52428800, "50.0 MiB", "52.4 ms"}, {91200000, "87.0 MiB", "91.2 ms"}, {340000, "332 KiB", "340 µs"},
		{1023, "1023 B", "1.0 µs"}, {1048575, "1.0 MiB", "1.0 ms"}, {999999, "977 KiB", "1.0 ms"},
		{12345678901, "11.5 GiB", "12.35 s"}, {UINT64_MAX, "16.0 EiB", "18446744073.71 s"}};
	char buf[64];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_string_equal(fmt__bytes(buf, sizeof(buf), rows[i].value), rows[i].bytes);
		assert_string_equal(fmt__ns(buf, sizeof(buf), rows[i].value), rows[i].ns);
	}
}

static void test_parse_bytes_takes_suffixes_and_nothing_else(void **state)
{
	static const char *const bad[] = {"", "M", "-1", "0x10", "12Q", "1MM", "1e30", "nan", " 1", "1 M"};
	u64 v;
	size_t i;

	assert_int_equal(parse__bytes("4096", &v), 0);
	assert_int_equal(v, 4096);
	assert_int_equal(parse__bytes("64M", &v), 0);
	assert_int_equal(v, 64 << 20);
	assert_int_equal(parse__bytes("1.5GiB", &v), 0);
	assert_int_equal(v, 3ULL << 29);
	assert_int_equal(parse__bytes("2kB", &v), 0);
	assert_int_equal(v, 2048);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(parse__bytes(bad[i], &v), -EINVAL);
}

static void test_syscall_ids_go_there_and_back(void **state)
{
	char buf[32];
	u16 id;

	for (id = 1; id < 200; id++)
		if (syscall__name(id, buf, sizeof(buf)) != buf && syscall__nr(id) >= 0)
			assert_int_equal(syscall__id(syscall__nr(id)), id);
	assert_string_equal(syscall__name(SYS_ID_pread64, buf, sizeof(buf)), "pread64");
	assert_int_equal(syscall__cause(SYS_ID_pread64), CAUSE_FILE_READ);
	assert_string_equal(syscall__name(SYS_NONE, buf, sizeof(buf)), "");
	assert_string_equal(syscall__name(SYS_RAW | 999, buf, sizeof(buf)), "syscall 999");
	assert_int_equal(syscall__nr(SYS_RAW | 999), 999);
	assert_int_equal(syscall__id(999), SYS_RAW | 999);
	assert_int_equal(syscall__cause(SYS_RAW | 999), CAUSE_KERNEL);
	assert_int_equal(syscall__id(-1), SYS_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sanitize_keeps_valid_text_and_replaces_each_bad_byte),
		cmocka_unit_test(test_sanitize_cuts_between_characters),
		cmocka_unit_test(test_escape_leaves_a_terminal_nothing_to_obey),
		cmocka_unit_test(test_json_string_is_valid_whatever_comes),
		cmocka_unit_test(test_reasons_that_never_came_are_not_listed),
		cmocka_unit_test(test_bytes_and_times_read_as_in_the_manual),
		cmocka_unit_test(test_parse_bytes_takes_suffixes_and_nothing_else),
		cmocka_unit_test(test_syscall_ids_go_there_and_back),
	};

	return cmocka_run_group_tests_name("strings", tests, NULL, NULL);
}
