// SPDX-License-Identifier: GPL-2.0-only
/* From a game's files to the names in its recording: wherever names may be kept, and whatever state the files are in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "build_fixture.h"
#include "debug_server_fixture.h"
#include "naming_fixture.h"

#include "demangle.h"

/* ---- where names are kept ---- */

static const char two_functions[] = ".text\n.globl seen\n.type seen,@function\nseen: .fill 16,1,0x90\n.size seen,16\n"
				    ".type unseen,@function\nunseen: .fill 16,1,0x90\n.size unseen,16\n";
#define ASM_FLAGS "-DASM -shared -nostdlib -Wl,--build-id -Wl,--section-start=.text=0x10000"

/* As distributions make it: the symbols that .dynsym does not have, compressed, in the stripped file. */
static void test_mini_debug_data_names_what_the_dynamic_symbols_do_not(void **state)
{
	static const u64 addrs[] = {AT(1), AT(17)};
	struct naming n;

	fixture__build("full", ASM_FLAGS, two_functions);
	run("objcopy --strip-all full bare && echo unseen >keep && "
	    "objcopy --strip-all --keep-symbols=keep full mini && xz -f mini && "
	    "objcopy --add-section .gnu_debugdata=mini.xz bare with_mini && ! nm with_mini | grep unseen");
	name_file(&n, "bare", addrs, 2);
	expect_symbol(&n, addrs[0], "seen");
	expect_symbol(&n, addrs[1], "");
	recording__close(&n.r);
	name_file(&n, "with_mini", addrs, 2);
	expect_symbol(&n, addrs[0], "seen");
	expect_symbol(&n, addrs[1], "unseen");
	recording__close(&n.r);
}

static void test_names_of_rust_and_cxx_are_demangled(void **state)
{
	static const struct {
		const char *mangled, *plain;
	} names[] = {
		/* Rust, v0 and before */
		{"_RNvXCs2OpA4fNwd7R_1rNtB2_5WorldNtB2_4Tick4tick", "<r::World as r::Tick>::tick"},
		{"_RINvCs2OpA4fNwd7R_1r4stephEB2_", "r::step::<u8>"},
		{"_RNvMsa_NtCsgEmfK2I1SDS_4core3fmtNtB5_9Formatter9write_str", "<core::fmt::Formatter>::write_str"},
		{"_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE", "core::fmt::Formatter::write_str"},
		{"_ZN58_$LT$alloc..string..String$u20$as$u20$core..fmt..Write$GT$9write_str17h8f1a2b3c4d5e6f70E",
			"<alloc::string::String as core::fmt::Write>::write_str"},
		/* C++ */
		{"_ZN4Game5World6updateEf", "Game::World::update"},
		{"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back"},
		/* neither */
		{"_RNvC1", "_RNvC1"},
		{"_Zzz", "_Zzz"},
		{"plain", "plain"},
	};
	u64 addrs[ARRAY_SIZE(names)];
	char source[4096] = ".text\n";
	struct naming n;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t len = strlen(source);

		snprintf(source + len, sizeof(source) - len,
			".type \"%s\",@function\n\"%s\": .fill 16,1,0x90\n.size \"%s\",16\n", names[i].mangled,
			names[i].mangled, names[i].mangled);
		addrs[i] = AT(16 * i + 3);
	}
	fixture__build("mangled", ASM_FLAGS, source);
	name_file(&n, "mangled", addrs, ARRAY_SIZE(names));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		expect_symbol(&n, addrs[i], names[i].plain);
	recording__close(&n.r);
}

static u64 cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (u64)t.tv_sec * NSEC_PER_SEC + (u64)t.tv_nsec;
}

/* Rust's v0 lets a name point back into itself: a pair of pairs of pairs …, 26 deep */
static void test_a_name_that_grows_without_end_is_cut_off(void **state)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[512] = "_RINvC1a1bTuuE", *plain;
	size_t last = strlen("_RINvC1a1b") - 2;
	u64 before = cpu_ns();

	for (int i = 0; i < 26; i++) {
		size_t here = strlen(name) - 2, back = last - 1;
		char to[8] = "";

		if (back >= 62)
			sprintf(to, "%c", digits[back / 62]);
		sprintf(to + strlen(to), "%c", digits[back % 62]);
		sprintf(name + strlen(name), "TB%s_B%s_E", to, to);
		last = here;
	}
	strcat(name, "E");
	plain = demangle(name);
	assert_non_null(plain);
	assert_int_equal(strncmp(plain, "a::b::<((), ()), (((), ()), ((), ()))", 37), 0);
	assert_int_equal(strlen(plain), 4096);
	assert_true(cpu_ns() - before < NSEC_PER_SEC);
	free(plain);
}

/* ---- a server of debug data ---- */

static struct debug_server server; /* outlives a test that fails */

static int serve(bool silent)
{
	fixture__build("game.full", "-O1 -g -shared -fPIC -nostdlib -Wl,--build-id -Wl,--section-start=.text=0x10000",
		"__attribute__((visibility(\"hidden\"))) int secret(int n) { return n * 3; }\n");
	run("objcopy --only-keep-debug --compress-debug-sections game.full game.debug && objcopy --strip-all game.full "
	    "game && rm game.full");
	debug_server__start(&server, fixture__path("game.debug"), silent);
	setenv("DEBUGINFOD_URLS", server.url, 1);
	setenv("DEBUGINFOD_TIMEOUT", "1", 1);
	setenv("DEBUGINFOD_CACHE_PATH", fixture__path("cache"), 1);
	setenv("no_proxy", "127.0.0.1", 1);
	return 0;
}

static int with_server(void **state)
{
	return serve(false);
}

static int with_silent_server(void **state)
{
	return serve(true);
}

static int end_server(void **state)
{
	debug_server__stop(&server);
	unsetenv("DEBUGINFOD_URLS");
	unsetenv("DEBUGINFOD_TIMEOUT");
	unsetenv("DEBUGINFOD_CACHE_PATH");
	run("rm -rf cache");
	return 0;
}

static void test_a_server_of_debug_data_is_asked_where_the_user_named_one(void **state)
{
	static const u64 addrs[] = {AT(1)};
	char symbol[512], source[512];
	struct naming n;

	name_file(&n, "game", addrs, 1);
	names_of(&n, addrs[0], symbol, source, sizeof(symbol));
	assert_string_equal(n.how, "");
	assert_string_equal(symbol, "secret");
	assert_string_equal(source, "secret game.full.src:1");
	assert_true(server.requests > 0);
	recording__close(&n.r);
}

static void test_without_the_users_word_no_server_is_asked(void **state)
{
	static const u64 addrs[] = {AT(1)};
	struct naming n;

	unsetenv("DEBUGINFOD_URLS");
	name_file(&n, "game", addrs, 1);
	assert_string_equal(n.how, "");
	expect_symbol(&n, addrs[0], "");
	recording__close(&n.r);
	assert_int_equal(server.requests, 0);
}

/* It takes connections and says nothing. The client asks thrice. */
static void test_a_silent_server_is_given_up_after_the_first_file_and_that_is_said(void **state)
{
	static const u64 addrs[] = {AT(1), AT(1) + AGAIN};
	struct naming n;

	name_file(&n, "game", addrs, 2);
	assert_string_equal(n.how, "");
	expect_symbol(&n, addrs[0], "");
	recording__close(&n.r);
	assert_in_range(server.requests, 1, 3);
	assert_non_null(strstr(n.out.why, "DEBUGINFOD_URLS"));
}

/* ---- files that are damaged, or made to do harm ---- */

static void build_victim(void)
{
	fixture__build("victim", "-O1 -g -shared -fPIC -nostdlib -Wl,--build-id -Wl,--section-start=.text=0x10000",
		"struct list { struct list *next; int v; };\n"
		"static inline __attribute__((always_inline)) int inner(struct list *l) { return l ? l->v : 0; }\n"
		"int outer(struct list *l);\nint outer(struct list *l) { return inner(l) + inner(l->next); }\n");
}

/* the first `keep` bytes of the program, of which `size` at `at` are others */
static void spoil(size_t keep, u64 at, const void *bytes, size_t size)
{
	static char image[1 << 17];
	int fd = open(fixture__path("victim"), O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, image, sizeof(image));

	assert_true(n > 0 && n < (ssize_t)sizeof(image) && at + size <= (u64)n);
	close(fd);
	memcpy(image + at, bytes, size);
	fixture__write("spoilt", image, min(keep, (size_t)n));
}

/* The recording is whole, and at most the names of this file are missing. */
static void survive(const char *name)
{
	static const u64 addrs[] = {BIAS, AT(0), AT(8), AT(64), AT(4096), BIAS + AGAIN + TEXT + 4, ~0ULL};
	char symbol[512], source[512];
	struct naming n;

	name_file(&n, name, addrs, ARRAY_SIZE(addrs));
	if (strstr(n.how, "status"))
		fail_msg("%s", n.how); /* redframe's own fault: a sanitizer's complaint, or an error that is none */
	names_of(&n, addrs[1], symbol, source, sizeof(symbol));
	recording__close(&n.r);
}

static void test_a_file_that_is_cut_off_anywhere_costs_its_own_names_only(void **state)
{
	struct stat st;

	build_victim();
	assert_int_equal(stat(fixture__path("victim"), &st), 0);
	for (off_t size = 0; size < st.st_size; size += size < 512 ? 24 : st.st_size / 24) {
		spoil((size_t)size, 0, "", 0);
		survive("spoilt");
	}
}

static void test_absurd_headers_cost_a_file_its_own_names_only(void **state)
{
	static const struct {
		u64 value;
		size_t size, at;
	} header[] = {
		{0xffff, 2, offsetof(Elf64_Ehdr, e_shnum)},
		{0, 2, offsetof(Elf64_Ehdr, e_shnum)}, /* then the first section header says how many */
		{0xfffe, 2, offsetof(Elf64_Ehdr, e_shstrndx)},
		{0xffff, 2, offsetof(Elf64_Ehdr, e_shstrndx)},
		{1, 2, offsetof(Elf64_Ehdr, e_shentsize)},
		{0xffff, 2, offsetof(Elf64_Ehdr, e_phnum)},
		{1, 2, offsetof(Elf64_Ehdr, e_phentsize)},
		{~0ULL, 8, offsetof(Elf64_Ehdr, e_phoff)},
		{~0ULL, 8, offsetof(Elf64_Ehdr, e_shoff)},
		{0x7ffffffffffffff8, 8, offsetof(Elf64_Ehdr, e_shoff)},
		{ELFCLASS32, 1, EI_CLASS},
		{ELFDATA2MSB, 1, EI_DATA},
	};

	build_victim();
	for (size_t i = 0; i < ARRAY_SIZE(header); i++) {
		spoil(~0ul, header[i].at, &header[i].value, header[i].size);
		survive("spoilt");
	}
}

/* Each field of each section and program header in turn. */
static void test_absurd_sections_and_segments_cost_a_file_its_own_names_only(void **state)
{
	static const u64 values[] = {0, ~0ULL, 1ULL << 40};
	Elf64_Ehdr eh;
	int fd;

	build_victim();
	fd = open(fixture__path("victim"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, &eh, sizeof(eh), 0), sizeof(eh));
	close(fd);
	for (u32 i = 0; i < eh.e_phnum; i++)
		for (size_t at = 8; at < sizeof(Elf64_Phdr); at += 8) {
			u64 v = values[(i + at / 8) % ARRAY_SIZE(values)];

			spoil(~0ul, eh.e_phoff + i * sizeof(Elf64_Phdr) + at, &v, 8);
			survive("spoilt");
		}
	for (u32 i = 0; i < eh.e_shnum; i++)
		for (size_t at = 24; at < sizeof(Elf64_Shdr); at += 8) {
			u64 v = values[(i + at / 8) % ARRAY_SIZE(values)];

			spoil(~0ul, eh.e_shoff + i * sizeof(Elf64_Shdr) + at, &v, 8);
			survive("spoilt");
		}
}

/* ".symtab"'s strings end nowhere; a name is 64 KiB long; debug data whose parts refer to themselves */
static void test_strings_without_end_and_circles_cost_a_file_its_own_names_only(void **state)
{
	static const u64 addrs[] = {AT(1)};
	char *source = malloc(1 << 18), symbol[2048], line[2048];
	struct naming n;
	size_t at;

	at = (size_t)sprintf(source, ".text\n.type x,@function\n");
	at += (size_t)sprintf(source + at, "_ZN");
	for (int i = 0; i < 8000; i++)
		at += (size_t)sprintf(source + at, "4abcd");
	sprintf(source + at, "Ev: .fill 16,1,0x90\n");
	fixture__build("long_name", ASM_FLAGS, source);
	name_file(&n, "long_name", addrs, 1);
	names_of(&n, addrs[0], symbol, line, sizeof(symbol));
	assert_in_range(strlen(symbol), 100, 511);
	recording__close(&n.r);
	/* an inlined function that is an instance of itself, in a unit whose DIE is its own specification */
	fixture__build("circle", "-DASM -shared -nostdlib -Wl,--section-start=.text=0x10000",
		".text\nbegin: .fill 64,1,0x90\nend:\n.section .debug_abbrev\n"
		".uleb128 1,0x11\n.byte 1\n.uleb128 0x11,1,0x12,7,0,0\n"           /* unit: low_pc, high_pc */
		".uleb128 2,0x2e\n.byte 1\n.uleb128 0x11,1,0x12,7,0x31,0x13,0,0\n" /* function, origin */
		".uleb128 3,0x1d\n.byte 1\n.uleb128 0x11,1,0x12,7,0x31,0x13,0x47,0x13,0,0\n.byte 0\n"
		".section .debug_info\nunit: .long unit_end-unit-4\n.short 4\n.long 0\n.byte 8\n"
		".uleb128 1\n.quad begin,64\n"
		"f: .uleb128 2\n.quad begin,64\n.long f-unit\n"
		"i: .uleb128 3\n.quad begin,64\n.long i-unit,i-unit\n"
		".byte 0,0,0\nunit_end:\n");
	survive("circle");
	free(source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mini_debug_data_names_what_the_dynamic_symbols_do_not),
		cmocka_unit_test(test_names_of_rust_and_cxx_are_demangled),
		cmocka_unit_test(test_a_name_that_grows_without_end_is_cut_off),
		cmocka_unit_test_setup_teardown(
			test_a_server_of_debug_data_is_asked_where_the_user_named_one, with_server, end_server),
		cmocka_unit_test_setup_teardown(
			test_without_the_users_word_no_server_is_asked, with_server, end_server),
		cmocka_unit_test_setup_teardown(test_a_silent_server_is_given_up_after_the_first_file_and_that_is_said,
			with_silent_server, end_server),
		cmocka_unit_test(test_a_file_that_is_cut_off_anywhere_costs_its_own_names_only),
		cmocka_unit_test(test_absurd_headers_cost_a_file_its_own_names_only),
		cmocka_unit_test(test_absurd_sections_and_segments_cost_a_file_its_own_names_only),
		cmocka_unit_test(test_strings_without_end_and_circles_cost_a_file_its_own_names_only),
	};

	elf_version(EV_CURRENT);
	setenv("REDFRAME_CACHE", "", 1);
	return cmocka_run_group_tests(tests, fixture__setup, fixture__teardown);
}
