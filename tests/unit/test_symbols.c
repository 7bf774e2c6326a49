// SPDX-License-Identifier: GPL-2.0-only
/* Which symbol an address falls into, for every address of a module at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "build_fixture.h"
#include "symbols.h"

#define BIAS 0x7f0000000000ULL

/* Linked at 0, so that .text begins where --section-start says: each address below is text + its offset here. */
#define TEXT 0x10000ULL
static const char layout[] = ".text\n"
			     ".globl first\n.type first,@function\nfirst: .fill 16,1,0x90\n.size first,16\n"
			     ".type inner,@function\n.set inner,first+4\n.size inner,4\n"
			     ".weak weak_one\n.type weak_one,@function\n.globl strong_one\n.type strong_one,@function\n"
			     ".type local_one,@function\n"
			     "local_one: weak_one: strong_one: .fill 16,1,0x90\n"
			     ".size weak_one,16\n.size strong_one,16\n.size local_one,16\n"
			     "label: .fill 16,1,0x90\n"
			     ".fill 16,1,0x90\n"
			     ".type after,@function\nafter: .fill 8,1,0x90\n.size after,8\n"
			     ".fill 8,1,0x90\n"
			     ".type object,@object\nobject: .fill 8,1,0x90\n.size object,8\n"
			     ".globl _start\n.type _start,@function\n_start: ret\n.size _start,1\n"
			     ".section .rodata\n.globl table\n.type table,@object\ntable: .fill 8,1,1\n.size table,8\n"
			     ".section .tdata,\"awT\",@progbits\n.type per_thread,@object\nper_thread: .fill 8,1,1\n"
			     ".size per_thread,8\n";

struct built {
	Dwfl *dwfl;
	Dwfl_Module *mod;
};

static void open_built(struct built *b, const char *name, u64 bias)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf, .find_debuginfo = dwfl_standard_find_debuginfo};

	b->dwfl = dwfl_begin(&callbacks);
	assert_non_null(b->dwfl);
	dwfl_report_begin(b->dwfl);
	b->mod = dwfl_report_elf(b->dwfl, name, fixture__path(name), -1, bias, true);
	dwfl_report_end(b->dwfl, NULL, NULL);
	assert_non_null(b->mod);
}

static void build_layout(struct built *b, u64 bias)
{
	fixture__build("layout", "-DASM -nostdlib -static -Wl,--section-start=.text=0x10000", layout);
	open_built(b, "layout", bias);
}

static void close_built(struct built *b)
{
	dwfl_end(b->dwfl);
}

/* the name at an offset into .text, asked for alone; "" for none */
static const char *name_at(const struct built *b, u64 bias, u64 offset)
{
	struct symbol_hit hit;
	u64 addr = bias + TEXT + offset;

	assert_int_equal(symbols__find(b->mod, &addr, 1, &hit), 0);
	if (!hit.name)
		return "";
	assert_true(hit.start <= addr && addr < hit.end);
	return hit.name;
}

static void test_an_address_has_the_symbol_whose_bytes_it_is_one_of(void **state)
{
	struct built b;

	build_layout(&b, 0);
	assert_string_equal(name_at(&b, 0, 0), "first");
	assert_string_equal(name_at(&b, 0, 3), "first");
	assert_string_equal(name_at(&b, 0, 15), "first");
	assert_string_equal(name_at(&b, 0, 64), "after");
	assert_string_equal(name_at(&b, 0, 71), "after");
	assert_string_equal(name_at(&b, 0, 80), "object");
	close_built(&b);
}

static void test_the_innermost_of_nested_symbols_wins(void **state)
{
	struct built b;

	build_layout(&b, 0);
	assert_string_equal(name_at(&b, 0, 4), "inner");
	assert_string_equal(name_at(&b, 0, 7), "inner");
	assert_string_equal(name_at(&b, 0, 8), "first");
	close_built(&b);
}

static void test_of_names_for_one_place_the_one_that_others_see_wins(void **state)
{
	struct built b;

	build_layout(&b, 0);
	assert_string_equal(name_at(&b, 0, 16), "strong_one");
	close_built(&b);
}

/* as in hand-written assembler */
static void test_a_symbol_without_a_size_reaches_to_the_next_one(void **state)
{
	struct built b;

	build_layout(&b, 0);
	assert_string_equal(name_at(&b, 0, 32), "label");
	assert_string_equal(name_at(&b, 0, 63), "label");
	assert_string_equal(name_at(&b, 0, 64), "after");
	close_built(&b);
}

static void test_behind_the_end_of_a_sized_symbol_there_is_none(void **state)
{
	struct built b;

	build_layout(&b, 0);
	assert_string_equal(name_at(&b, 0, 72), "");
	assert_string_equal(name_at(&b, 0, 79), "");
	assert_string_equal(name_at(&b, 0, 2048), "");
	close_built(&b);
}

/* A thread-local's value is an offset, which may look like an address in the code. */
static void test_thread_locals_and_undefined_symbols_name_nothing(void **state)
{
	struct symbol_hit hits[64];
	u64 addrs[64];
	struct built b;

	build_layout(&b, 0);
	for (u32 i = 0; i < 64; i++)
		addrs[i] = i;
	assert_int_equal(symbols__find(b.mod, addrs, 64, hits), 0);
	for (u32 i = 0; i < 64; i++)
		assert_null(hits[i].name);
	close_built(&b);
}

static void test_names_move_with_the_module(void **state)
{
	struct built b;

	fixture__build("moved", "-DASM -nostdlib -shared -Wl,--section-start=.text=0x10000", layout);
	open_built(&b, "moved", BIAS);
	assert_string_equal(name_at(&b, BIAS, 0), "first");
	assert_string_equal(name_at(&b, BIAS, 63), "label");
	assert_string_equal(name_at(&b, BIAS, 72), "");
	close_built(&b);
}

static void test_all_addresses_at_once_have_the_names_that_each_has_alone(void **state)
{
	enum { N = 128 };
	struct symbol_hit hits[N];
	u64 addrs[N];
	struct built b;

	build_layout(&b, 0);
	for (u32 i = 0; i < N; i++)
		addrs[i] = TEXT + i;
	assert_int_equal(symbols__find(b.mod, addrs, N, hits), 0);
	for (u32 i = 0; i < N; i++)
		assert_string_equal(hits[i].name ?: "", name_at(&b, 0, i));
	assert_int_equal(symbols__find(b.mod, addrs, 0, hits), 0);
	close_built(&b);
}

static void test_first_of_sorted_addresses(void **state)
{
	static const u64 addrs[] = {10, 20, 20, 30};

	assert_int_equal(addrs__first(addrs, 0, 4, 0), 0);
	assert_int_equal(addrs__first(addrs, 0, 4, 10), 0);
	assert_int_equal(addrs__first(addrs, 0, 4, 11), 1);
	assert_int_equal(addrs__first(addrs, 0, 4, 20), 1);
	assert_int_equal(addrs__first(addrs, 2, 4, 20), 2);
	assert_int_equal(addrs__first(addrs, 0, 4, 31), 4);
	assert_int_equal(addrs__first(addrs, 3, 3, 5), 3);
}

/* What a symbol may claim of itself in a damaged or hostile file: each is set on every symbol in turn. */
static void test_symbols_that_cannot_be_are_passed_over(void **state)
{
	static const Elf64_Sym bad[] = {
		{.st_name = ~0u, .st_info = STT_FUNC, .st_shndx = 1, .st_value = TEXT, .st_size = 64},
		{.st_name = 1, .st_info = STT_FUNC, .st_shndx = 1, .st_value = ~0ULL - 8, .st_size = 64},
		{.st_name = 1, .st_info = STT_FUNC, .st_shndx = 1, .st_value = TEXT, .st_size = ~0ULL},
		{.st_name = 1, .st_info = STT_FUNC, .st_shndx = 0xfeff, .st_value = TEXT + 8, .st_size = 0},
		{.st_name = 1, .st_info = STT_FUNC, .st_shndx = SHN_XINDEX, .st_value = TEXT + 8, .st_size = 0},
		{.st_name = 1, .st_info = STT_FUNC, .st_shndx = 1, .st_value = ~0ULL, .st_size = 0},
	};
	enum { N = 96 };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct symbol_hit hits[N];
		u64 addrs[N];
		Elf64_Shdr sh;
		Elf64_Ehdr eh;
		struct built b;
		int fd;

		fixture__build("bad", "-DASM -nostdlib -static -Wl,--section-start=.text=0x10000", layout);
		fd = open(fixture__path("bad"), O_RDWR | O_CLOEXEC);
		assert_int_equal(pread(fd, &eh, sizeof(eh), 0), sizeof(eh));
		for (u32 s = 0; s < eh.e_shnum; s++) {
			assert_int_equal(pread(fd, &sh, sizeof(sh), (off_t)(eh.e_shoff + s * sizeof(sh))), sizeof(sh));
			for (u64 at = sizeof(bad[0]); sh.sh_type == SHT_SYMTAB && at < sh.sh_size; at += sizeof(bad[0]))
				assert_int_equal(pwrite(fd, &bad[i], sizeof(bad[i]), (off_t)(sh.sh_offset + at)),
					sizeof(bad[i]));
		}
		close(fd);
		open_built(&b, "bad", 0);
		for (u32 a = 0; a < N; a++)
			addrs[a] = TEXT + a;
		assert_int_equal(symbols__find(b.mod, addrs, N, hits), 0);
		for (u32 a = 0; a < N; a++)
			assert_true(!hits[a].name || (hits[a].start <= addrs[a] && addrs[a] < hits[a].end));
		close_built(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_address_has_the_symbol_whose_bytes_it_is_one_of),
		cmocka_unit_test(test_the_innermost_of_nested_symbols_wins),
		cmocka_unit_test(test_of_names_for_one_place_the_one_that_others_see_wins),
		cmocka_unit_test(test_a_symbol_without_a_size_reaches_to_the_next_one),
		cmocka_unit_test(test_behind_the_end_of_a_sized_symbol_there_is_none),
		cmocka_unit_test(test_thread_locals_and_undefined_symbols_name_nothing),
		cmocka_unit_test(test_names_move_with_the_module),
		cmocka_unit_test(test_all_addresses_at_once_have_the_names_that_each_has_alone),
		cmocka_unit_test(test_first_of_sorted_addresses),
		cmocka_unit_test(test_symbols_that_cannot_be_are_passed_over),
	};
	return cmocka_run_group_tests(tests, fixture__setup, fixture__teardown);
}
