// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "maps.h"
#include "pe_file.h"
#include "pe_fixture.h"
#include "pe_modules.h"

static int file_of(const void *bytes, size_t n)
{
	int fd = memfd_create("pe", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	return fd;
}

static int open_bytes(struct pe_file *pe, const u8 *bytes, size_t n, int *fd)
{
	*fd = file_of(bytes, n);
	return pe_file__open(pe, *fd);
}

static void expect(const struct pe_file *pe, u32 rva, const char *name, u32 start, u32 end)
{
	struct pe_function f;

	assert_int_equal(pe_file__function(pe, rva, &f), 0);
	assert_string_equal(f.name, name);
	assert_int_equal(f.start, start);
	assert_int_equal(f.end, end);
}

static void test_code_has_the_name_of_its_export_as_far_as_its_function_goes(void **state)
{
	u8 bytes[PE_BYTES];
	struct pe_function f;
	struct pe_file pe;
	int fd;

	pe__make(bytes);
	assert_int_equal(open_bytes(&pe, bytes, sizeof(bytes), &fd), 0);
	assert_false(pe.cut);
	assert_true(pe.base == 0x180000000 && pe.image_size == 0x4000);
	assert_int_equal(pe.n_exports, 3); /* neither data nor what another module has */
	expect(&pe, 0x1000, "draw", 0x1000, 0x1100);
	expect(&pe, 0x10ff, "draw", 0x1000, 0x1100);
	expect(&pe, 0x1100, "", 0x1100, 0x1180); /* not "draw": that ended */
	expect(&pe, 0x1190, "", 0x1180, 0x1200);
	expect(&pe, 0x1210, "draw", 0x1200, 0x1280);
	expect(&pe, 0x1300, "leaf", 0x1300, 0x1380);
	expect(&pe, 0x13ff, "draw_again", 0x1380, 0x1400);
	assert_int_equal(pe_file__function(&pe, 0x1210, &f), 0);
	assert_int_equal(f.entry, 0x1000);
	/* outside its code, and outside it */
	assert_int_equal(pe_file__function(&pe, 0x2000, &f), -ENOENT);
	assert_int_equal(pe_file__function(&pe, 0x0, &f), -ENOENT);
	assert_int_equal(pe_file__function(&pe, ~0u, &f), -ENOENT);
	pe_file__close(&pe);
	close(fd);
}

static void test_other_files_are_none(void **state)
{
	static const char elf[] =
		"\177ELF and so on, long enough to be a header of any kind that there is, and then some";
	u8 bytes[PE_BYTES];
	struct pe_file pe;
	int fd;

	assert_int_equal(open_bytes(&pe, (const u8 *)elf, sizeof(elf), &fd), -ENOEXEC);
	close(fd);
	assert_int_equal(open_bytes(&pe, (const u8 *)elf, 0, &fd), -ENOEXEC);
	close(fd);
	pe__make(bytes);
	put32(bytes + 60, ~0u - 3);
	assert_int_equal(open_bytes(&pe, bytes, sizeof(bytes), &fd), -ENOEXEC);
	close(fd);
	pe__make(bytes);
	put16(bytes + 0x80 + 24, 0x107); /* a ROM image */
	assert_int_equal(open_bytes(&pe, bytes, sizeof(bytes), &fd), -ENOEXEC);
	close(fd);
}

/* Whatever it holds, what is told of it lies within its sections. */
static void ask_everything(const u8 *bytes, size_t n)
{
	struct pe_function f;
	struct pe_file pe;
	int fd;

	if (!open_bytes(&pe, bytes, n, &fd)) {
		for (u32 rva = 0; rva < 0x4000; rva += 0x80) {
			if (pe_file__function(&pe, rva, &f))
				continue;
			assert_true(f.start <= rva && rva < f.end && f.end <= pe.image_size);
			assert_true(strnlen(f.name, PE_MAX_NAME) < PE_MAX_NAME);
		}
		pe_file__close(&pe);
	}
	close(fd);
}

static void test_file_cut_at_any_byte(void **state)
{
	u8 bytes[PE_BYTES];

	pe__make(bytes);
	for (size_t n = 0; n < sizeof(bytes); n += n < 0x200 ? 1 : 13)
		ask_everything(bytes, n);
}

static void test_any_word_that_lies(void **state)
{
	static const u32 lies[] = {0, 1, 0x7fffffff, 0x80000000, ~0u, ~0u - 11};
	u8 bytes[PE_BYTES];

	for (u32 at = 0x3c; at < PE_TABLES + 0x340; at += at == 0x1f0 ? PE_TABLES - 0x1f0 : 4)
		for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
			pe__make(bytes);
			put32(bytes + at, lies[i]);
			ask_everything(bytes, sizeof(bytes));
		}
}

static void test_parts_that_point_at_each_other_end(void **state)
{
	u8 bytes[PE_BYTES];
	struct pe_file pe;
	int fd;

	pe__make(bytes);
	put32(bytes + PE_TABLES + 0x330, 0x2320); /* the part is a part of itself */
	assert_int_equal(open_bytes(&pe, bytes, sizeof(bytes), &fd), 0);
	expect(&pe, 0x1210, "draw", 0x1200, 0x1280);
	pe_file__close(&pe);
	close(fd);
}

static void test_table_beyond_its_section_is_cut_and_said_so(void **state)
{
	u8 bytes[PE_BYTES];
	struct pe_file pe;
	int fd;

	pe__make(bytes);
	put32(bytes + 0x80 + 24 + 112 + 28, ~0u); /* bytes of ranges */
	assert_int_equal(open_bytes(&pe, bytes, sizeof(bytes), &fd), 0);
	assert_true(pe.cut);
	expect(&pe, 0x1000, "draw", 0x1000, 0x1100);
	pe_file__close(&pe);
	close(fd);
}

/* a file of its own on disk: map_files is not asked of what is mapped by nobody */
static void test_a_module_whose_sections_are_copies_is_found_by_its_first_page(void **state)
{
	char path[] = "/tmp/redframe-pe-XXXXXX", *text;
	struct images im = {};
	struct pe_modules modules;
	int fd = mkstemp(path), n;
	char *at = mmap(NULL, 0x5000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char name[PE_MAX_NAME];
	const char *object;
	u8 bytes[PE_BYTES];
	struct maps maps;
	u64 start, end;

	pe__make(bytes);
	assert_true(fd >= 0 && at != MAP_FAILED);
	assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	assert_true(mmap(at, 0x1000, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == at);
	assert_int_equal(mprotect(at + 0x1000, 0x1000, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(images__refresh(&im, (u32)getpid()), 0);
	assert_int_equal(pe_modules__open(&modules, &im), 0);
	assert_int_equal(modules.n, 1);
	assert_true(
		pe_modules__symbol(&modules, (u64)(uintptr_t)at + 0x1010, &start, &end, name, sizeof(name), &object));
	assert_string_equal(name, "draw");
	assert_true(start == (u64)(uintptr_t)at + 0x1000 && end == start + 0x100);
	assert_true(
		pe_modules__symbol(&modules, (u64)(uintptr_t)at + 0x1110, &start, &end, name, sizeof(name), &object));
	assert_true(asprintf(&text, "%s+0x1100", path__base(path)) > 0);
	assert_string_equal(name, text);
	assert_false(
		pe_modules__symbol(&modules, (u64)(uintptr_t)at + 0x4000, &start, &end, name, sizeof(name), &object));

	/* and its mappings are told as its own */
	assert_int_equal(maps__read(&maps, (u32)getpid()), 0);
	for (n = 0; n < maps.n && maps.v[n].start != (u64)(uintptr_t)at; n++)
		;
	assert_int_equal(pe_modules__copied(&maps, n, (u32)getpid()), 0x4000);
	assert_int_equal(pe_modules__copied(&maps, n + 1, (u32)getpid()), 0);
	maps__free(&maps);
	free(text);
	pe_modules__close(&modules);
	images__free(&im);
	munmap(at, 0x5000);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_code_has_the_name_of_its_export_as_far_as_its_function_goes),
		cmocka_unit_test(test_other_files_are_none),
		cmocka_unit_test(test_file_cut_at_any_byte),
		cmocka_unit_test(test_any_word_that_lies),
		cmocka_unit_test(test_parts_that_point_at_each_other_end),
		cmocka_unit_test(test_table_beyond_its_section_is_cut_and_said_so),
		cmocka_unit_test(test_a_module_whose_sections_are_copies_is_found_by_its_first_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
