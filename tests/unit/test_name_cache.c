// SPDX-License-Identifier: GPL-2.0-only
/* Names that are kept from one recording to the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sys/stat.h>

#include "build_fixture.h"
#include "naming_fixture.h"

/* full: with debug data; game: what of it is given to players, with the same build-id */
static int prepare(void **state)
{
	fixture__build("full", "-O1 -g -shared -fPIC -nostdlib -Wl,--build-id -Wl,--section-start=.text=0x10000",
		"__attribute__((visibility(\"hidden\"))) int first(int n) { return n * 3; }\n"
		"__attribute__((visibility(\"hidden\"))) int second(int n) { return n * 5; }\n");
	run("objcopy --strip-all full game && rm -rf cache other");
	setenv("REDFRAME_CACHE", fixture__path("cache"), 1);
	return 0;
}

static int end(void **state)
{
	run("rm -rf cache other");
	return 0;
}

static const u64 first[] = {AT(1)}, absent[] = {AT(0x800)};

static u64 address_of_second(void)
{
	char line[64] = "";
	FILE *f;

	run("nm full | awk '$3 == \"second\" { print $1 }' >second");
	f = fopen(fixture__path("second"), "re");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
	return BIAS + strtoull(line, NULL, 16) + 1;
}

/* names one address with that file: "SYMBOL SOURCE" */
static void expect(const char *file, u64 addr, const char *want_symbol, const char *want_source)
{
	char symbol[512], source[512];
	struct naming n;

	name_file(&n, file, &addr, 1);
	assert_string_equal(n.how, "");
	names_of(&n, addr, symbol, source, sizeof(symbol));
	assert_string_equal(symbol, want_symbol);
	assert_string_equal(source, want_source);
	assert_int_equal(n.out.found.named, *want_symbol != 0);
	assert_int_equal(n.out.found.lines, *want_source != 0);
	recording__close(&n.r);
}

static int files_in(const char *folder)
{
	DIR *d = opendir(fixture__path(folder));
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

static void test_what_was_looked_up_once_is_known_where_its_debug_data_is_gone(void **state)
{
	expect("game", first[0], "", "");
	expect("full", first[0], "first", "first full.src:1");
	assert_int_equal(files_in("cache"), 1);
	expect("game", first[0], "first", "first full.src:1");
	/* and no more than that is known */
	expect("game", address_of_second(), "", "");
	expect("full", address_of_second(), "second", "second full.src:2");
	expect("game", address_of_second(), "second", "second full.src:2");
	expect("game", first[0], "first", "first full.src:1");
}

/* It is not taken for known that there is no name. */
static void test_names_come_with_debug_data_that_was_not_there_before(void **state)
{
	expect("game", first[0], "", "");
	expect("game", absent[0], "", "");
	expect("full", first[0], "first", "first full.src:1");
}

static void test_many_addresses_have_the_same_names_from_either(void **state)
{
	enum { N = 64 };
	char symbols[2][N][64], sources[2][N][64];
	u64 addrs[N];
	struct naming n;

	for (u32 i = 0; i < N; i++)
		addrs[i] = i < N / 2 ? AT(i) : AT(i - N / 2) + AGAIN;
	for (int turn = 0; turn < 2; turn++) {
		name_file(&n, "full", addrs, N);
		for (u32 i = 0; i < N; i++)
			names_of(&n, addrs[i], symbols[turn][i], sources[turn][i], 64);
		recording__close(&n.r);
	}
	for (u32 i = 0; i < N; i++) {
		assert_string_equal(symbols[0][i], symbols[1][i]);
		assert_string_equal(sources[0][i], sources[1][i]);
	}
	assert_string_equal(symbols[1][N / 2 + 1], "first");
}

/* In turn a byte of it is another, which may make another name, and it ends early. */
static void test_a_damaged_file_harms_nothing_and_one_that_ends_early_is_as_good_as_none(void **state)
{
	static char image[1 << 16];
	char symbol[512], source[512];
	struct naming n;
	ssize_t size;
	int fd;

	expect("full", first[0], "first", "first full.src:1");
	run("mv cache/* kept && readelf -n full | awk '/Build ID/ { print $3 }' >id");
	fd = open(fixture__path("kept"), O_RDONLY | O_CLOEXEC);
	size = read(fd, image, sizeof(image));
	assert_true(size > 100 && size < (ssize_t)sizeof(image));
	close(fd);
	for (ssize_t at = 0; at < size; at += 105) {
		bool cut = at & 1;

		image[at] ^= cut ? 0 : 0x41;
		fixture__write("spoilt", image, (size_t)(cut ? at : size));
		image[at] ^= cut ? 0 : 0x41;
		run("cp spoilt cache/$(cat id)");
		name_file(&n, "full", first, 1);
		assert_string_equal(n.how, "");
		names_of(&n, first[0], symbol, source, sizeof(symbol));
		if (cut) {
			assert_string_equal(symbol, "first");
			assert_string_equal(source, "first full.src:1");
		}
		recording__close(&n.r);
	}
}

/* A symbol in the file that claims all addresses there are would name other files' code. */
static void test_a_kept_symbol_names_nothing_outside_of_its_image(void **state)
{
	struct ev_symbol sym = {.hdr = {.kind = EV_SYMBOL}, .addr = 0x1000, .size = ~0ULL};
	struct ev_call call = {.hdr = {.kind = EV_CALL, .words = sizeof(call) / 8}, .addr = TEXT + 1};
	struct recording_writer w;
	int fd = open(fixture__path("bad"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(recording__create(&w, fd, 0), 0);
	assert_int_equal(recording__append(&w, &call, sizeof(call)), 0);
	assert_int_equal(recording__append_text(&w, &sym, sizeof(sym), "evil", 4), 0);
	sym.addr = 0x7fff00000000;
	sym.size = 16;
	assert_int_equal(recording__append_text(&w, &sym, sizeof(sym), "evil", 4), 0);
	assert_int_equal(recording__finish(&w, true), 0);
	run("mkdir -m 700 cache && cp bad cache/$(readelf -n game | awk '/Build ID/ { print $3 }')");
	expect("game", first[0], "", "");
}

static void test_nothing_is_kept_where_the_user_says_so_or_others_could_have_written(void **state)
{
	setenv("REDFRAME_CACHE", "", 1);
	expect("full", first[0], "first", "first full.src:1");
	assert_int_equal(files_in("cache"), 0);
	setenv("REDFRAME_CACHE", fixture__path("cache"), 1);
	run("mkdir -m 777 cache");
	expect("full", first[0], "first", "first full.src:1");
	assert_int_equal(files_in("cache"), 0);
	run("rmdir cache && mkdir -m 700 other && ln -s other cache");
	expect("full", first[0], "first", "first full.src:1");
	assert_int_equal(files_in("other"), 0);
	run("rm cache && echo x >cache");
	expect("full", first[0], "first", "first full.src:1");
}

static void test_a_file_that_is_a_link_is_neither_read_nor_followed(void **state)
{
	run("mkdir -m 700 cache && echo precious >other && ln -s ../other "
	    "cache/$(readelf -n full | awk '/Build ID/ { print $3 }')");
	expect("full", first[0], "first", "first full.src:1");
	run("grep -q precious other");
}

/* a file of 300 MiB, without a byte on the disk */
static void test_files_that_were_not_used_for_longest_make_room(void **state)
{
	run("mkdir -m 700 cache && truncate -s 300M cache/old && touch -d '2 days ago' cache/old && echo x >cache/new");
	expect("full", first[0], "first", "first full.src:1");
	assert_int_equal(access(fixture__path("cache/old"), F_OK), -1);
	assert_int_equal(access(fixture__path("cache/new"), F_OK), 0);
	assert_int_equal(files_in("cache"), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, prepare, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_was_looked_up_once_is_known_where_its_debug_data_is_gone),
		TEST(test_names_come_with_debug_data_that_was_not_there_before),
		TEST(test_many_addresses_have_the_same_names_from_either),
		TEST(test_a_damaged_file_harms_nothing_and_one_that_ends_early_is_as_good_as_none),
		TEST(test_a_kept_symbol_names_nothing_outside_of_its_image),
		TEST(test_nothing_is_kept_where_the_user_says_so_or_others_could_have_written),
		TEST(test_a_file_that_is_a_link_is_neither_read_nor_followed),
		TEST(test_files_that_were_not_used_for_longest_make_room),
	};

	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, fixture__setup, fixture__teardown);
}
