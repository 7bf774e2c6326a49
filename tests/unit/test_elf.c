// SPDX-License-Identifier: GPL-2.0-only
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <time.h>
#include "build_fixture.h"
#include "elf_file.h"
#include "placement.h"
#include "usdt.h"

/* marked() begins with bytes that occur nowhere else: movabs $0x1122334455667788,%rax (x86-64) or that word as it is */
static const char program[] =
	"__asm__(\".text\\n.globl marked\\n.type marked,@function\\nmarked: .byte 0x48,0xb8\\n.8byte "
	"0x1122334455667788\\n"
	"ret\\n.size marked,.-marked\\n.type local_one,@function\\nlocal_one: nop\\nret\\n.size local_one,2\\n\");\n"
	"extern void marked(void); void call(void) { marked(); }\n"
	"static int resolved(void) { return 1; } static void *pick(void) { return resolved; }\n"
	"int chosen(void) __attribute__((ifunc(\"pick\")));\n"
	"int main(void) { return 0; }\n";

static int open_built(struct elf_file *e, const char *name)
{
	int fd = open(fixture__path(name), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(elf_file__open(e, fd), 0);
	return fd;
}

static void check_marked(struct elf_file *e)
{
	const char *name = "marked";
	struct elf_symbol s;
	u64 offset, word = 0;
	u8 head[2];

	assert_int_equal(elf_file__find(e, &name, 1, true, &s), 1);
	assert_int_equal(s.size, 11);
	assert_int_equal(elf_file__offset(e, s.vaddr, &offset), 0);
	assert_int_equal(elf_file__read(e, offset, head, 2), 0);
	assert_int_equal(elf_file__read(e, offset + 2, &word, 8), 0);
	assert_true(head[0] == 0x48 && head[1] == 0xb8 && word == 0x1122334455667788);
}

static void check_build(const char *name, const char *flags, int type)
{
	struct elf_file e;
	int fd;

	fixture__build(name, flags, program);
	fd = open_built(&e, name);
	assert_int_equal(e.type, type);
	assert_false(e.cut);
	check_marked(&e);
	elf_file__close(&e);
	close(fd);
}

static void test_file_offset_of_a_function_holds_its_bytes_in_any_layout(void **state)
{
	check_build("pie", "-fPIE -pie", ET_DYN);
	check_build("nopie", "-fno-pie -no-pie", ET_EXEC);
	check_build("staticpie", "-fPIE -static-pie", ET_DYN);
	check_build("shared", "-fPIC -shared", ET_DYN);
	check_build("elsewhere", "-fPIC -shared -Wl,-Ttext-segment=0x7654000", ET_DYN);
	check_build("dense", "-fPIC -shared -Wl,-z,noseparate-code", ET_DYN);
}

static void test_stripped_program_keeps_what_it_exports(void **state)
{
	static const char *const names[] = {"marked", "local_one"};
	struct elf_symbol s[2];
	struct elf_file e;
	int fd;

	fixture__build("exports", "-fPIE -pie -rdynamic", program);
	fd = open_built(&e, "exports");
	assert_int_equal(elf_file__find(&e, names, 2, true, s), 2);
	assert_true(s[0].dynamic && !s[1].dynamic);
	assert_int_equal(elf_file__find(&e, names, 2, false, s), 1);
	elf_file__close(&e);
	close(fd);
	fixture__build("stripped", "-s -fPIE -pie -rdynamic", program);
	fd = open_built(&e, "stripped");
	assert_int_equal(elf_file__find(&e, names, 2, true, s), 1);
	check_marked(&e);
	elf_file__close(&e);
	close(fd);
}

static void test_file_without_a_section_table_still_has_its_dynamic_symbols(void **state)
{
	struct elf_file e;
	int fd;

	fixture__build("sections", "-fPIC -shared", program);
	fd = open(fixture__path("sections"), O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "\0\0\0\0\0\0\0\0", 8, offsetof(Elf64_Ehdr, e_shoff)), 8);
	assert_int_equal(pwrite(fd, "\0\0\0\0", 4, offsetof(Elf64_Ehdr, e_shnum)), 4);
	assert_int_equal(elf_file__open(&e, fd), 0);
	assert_int_equal(e.n_sections, 0);
	check_marked(&e);
	elf_file__close(&e);
	close(fd);
}

static void test_default_version_of_a_symbol_wins_over_an_old_one(void **state)
{
	static const char source[] = "__asm__(\".symver old_fn,fn@V1\\n.symver new_fn,fn@@V2\");\n"
				     "__attribute__((used)) int old_fn(void) { return 1; }\n"
				     "__attribute__((used)) int new_fn(void) { return 2; }\n";
	static const char *const names[] = {"fn", "new_fn"};
	struct elf_symbol s[2];
	struct elf_file e;
	char flags[256];
	int fd;

	fixture__write("map", "V1 { global: fn; };\nV2 { global: fn; } V1;\n", 43);
	snprintf(flags, sizeof(flags), "-fPIC -shared -Wl,--version-script=%s", fixture__path("map"));
	fixture__build("versions", flags, source);
	fd = open_built(&e, "versions");
	assert_int_equal(elf_file__find(&e, names, 2, true, s), 2);
	assert_int_equal(s[0].vaddr, s[1].vaddr);
	assert_false(s[0].hidden);
	elf_file__close(&e);
	close(fd);
}

static void test_ifunc_is_told_from_a_function(void **state)
{
	const char *name = "chosen";
	struct elf_symbol s;
	struct elf_file e;
	int fd;

	fixture__build("ifunc", "-fPIC -shared", program);
	fd = open_built(&e, "ifunc");
	assert_int_equal(elf_file__find(&e, &name, 1, false, &s), 1);
	assert_int_equal(s.type, STT_GNU_IFUNC);
	elf_file__close(&e);
	close(fd);
}

static void test_address_in_bss_has_no_file_offset(void **state)
{
	struct elf_segment seg = {.type = PT_LOAD, .offset = 0x100, .vaddr = 0x5000, .filesz = 0x10, .memsz = 0x1000};
	struct elf_file e = {.segments = &seg, .n_segments = 1};
	u64 offset;

	assert_int_equal(elf_file__offset(&e, 0x500f, &offset), 0);
	assert_int_equal(offset, 0x10f);
	assert_int_equal(elf_file__offset(&e, 0x5010, &offset), -ENOENT);
	assert_int_equal(elf_file__offset(&e, 0x4fff, &offset), -ENOENT);
}

static void test_other_files_are_refused_by_kind(void **state)
{
	static const char elf32[64] = "\177ELF\1\1\1";
	struct elf_file e;
	int fds[3];

	fixture__write("text", "#!/bin/sh\n", 10);
	fixture__write("elf32", elf32, sizeof(elf32));
	fds[0] = open(fixture__path("text"), O_RDONLY | O_CLOEXEC);
	fds[1] = open(fixture__path("elf32"), O_RDONLY | O_CLOEXEC);
	fds[2] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_file__open(&e, fds[0]), -ENOEXEC);
	assert_int_equal(elf_file__open(&e, fds[1]), -ENOTSUP);
	assert_int_equal(elf_file__open(&e, fds[2]), -ENOEXEC);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

/* ---- hostile files: what counts is that every question gets an answer, soon ---- */

struct asked {
	struct elf_file *e;
	u64 sum;
};

static bool take_symbol(const struct elf_symbol *s, void *arg)
{
	struct asked *a = arg;
	struct placement p;

	a->sum += strlen(s->name) + s->size;
	return (a->sum & 7) || placement__of_symbol(a->e, s, 1, &p) <= 0;
}

static bool take_note(const struct usdt_note *n, void *arg)
{
	struct asked *a = arg;

	a->sum += strlen(n->provider) + strlen(n->name) + strlen(n->args);
	return true;
}

static void ask_everything(int fd)
{
	static const char *const names[] = {"marked", "chosen", ""};
	struct elf_symbol s[3];
	struct elf_file e;
	struct asked a = {.e = &e};

	if (elf_file__open(&e, fd))
		return;
	elf_file__find(&e, names, 3, true, s);
	elf_file__each_symbol(&e, ELF_DYNSYM, take_symbol, &a);
	elf_file__each_symbol(&e, ELF_SYMTAB, take_symbol, &a);
	usdt__each(&e, take_note, &a);
	elf_file__close(&e);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t read_built(const char *name, u8 *buf, size_t size)
{
	int fd = open(fixture__path(name), O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, buf, size);

	close(fd);
	assert_true(n > 0 && (size_t)n < size);
	return (size_t)n;
}

static int as_file(const u8 *bytes, size_t n)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), (ssize_t)n);
	return fd;
}

static void test_file_cut_anywhere_is_survived(void **state)
{
	static u8 bytes[65536];
	size_t n;
	int fd;

	fixture__build("cut", "-fPIC -shared", program);
	n = read_built("cut", bytes, sizeof(bytes));
	fd = as_file(bytes, n);
	for (size_t len = n; len > 61; len -= 61) {
		assert_int_equal(ftruncate(fd, (off_t)len), 0);
		ask_everything(fd);
	}
	close(fd);
}

static void test_damaged_headers_are_survived(void **state)
{
	static const u8 values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
	static u8 bytes[65536];
	size_t n, sections;
	double start = seconds();

	fixture__build("damage", "-fPIC -shared", program);
	n = read_built("damage", bytes, sizeof(bytes));
	sections = (size_t)((Elf64_Ehdr *)(void *)bytes)->e_shoff;
	for (size_t at = 0; at < n; at += at < 64 + 56 * 12 || at >= sections ? 3 : 301) {
		u8 was = bytes[at];

		for (size_t v = 0; v < sizeof(values); v++) {
			int fd;

			bytes[at] = values[v];
			fd = as_file(bytes, n);
			ask_everything(fd);
			close(fd);
		}
		bytes[at] = was;
	}
	print_message("%.1f s\n", seconds() - start);
}

/* 65,535 sections, all of them symbol tables over the whole file whose strings are the file itself */
static void test_sixty_five_thousand_sections_over_each_other_take_no_time(void **state)
{
	Elf64_Ehdr h = {.e_ident = ELFMAG,
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_shoff = sizeof(h),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 0xfeff,
		.e_shstrndx = 1,
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phoff = sizeof(h),
		.e_phnum = 0xffff};
	size_t size = sizeof(h) + 0xfeff * sizeof(Elf64_Shdr);
	u8 *bytes = calloc(1, size);
	double start = seconds();
	int fd;

	assert_non_null(bytes);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	memcpy(bytes, &h, sizeof(h));
	for (u32 i = 0; i < 0xfeff; i++) {
		Elf64_Shdr s = {.sh_name = i,
			.sh_type = i % 2 ? SHT_SYMTAB : SHT_NOTE,
			.sh_link = i,
			.sh_size = ~0ULL >> (i % 40)};

		memcpy(bytes + sizeof(h) + i * sizeof(s), &s, sizeof(s));
	}
	fd = as_file(bytes, size);
	ask_everything(fd);
	close(fd);
	free(bytes);
	assert_true(seconds() - start < 5);
}

/* Names that run into each other and into the table that refers to them, and tables that lead to one another in a ring.
 */
static void test_tables_in_a_ring_and_strings_without_an_end_are_survived(void **state)
{
	enum { SYMBOLS = 4096 };
	struct {
		Elf64_Ehdr h;
		Elf64_Phdr p;
		Elf64_Shdr s[4];
		Elf64_Sym sym[SYMBOLS];
	} *f = calloc(1, sizeof(*f));
	double start = seconds();
	u32 all = sizeof(*f);
	int fd;

	assert_non_null(f);
	f->h = (Elf64_Ehdr){.e_ident = ELFMAG,
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_phoff = sizeof(f->h),
		.e_phentsize = sizeof(f->p),
		.e_phnum = 1,
		.e_shoff = sizeof(f->h) + sizeof(f->p),
		.e_shentsize = sizeof(f->s[0]),
		.e_shnum = 4,
		.e_shstrndx = 3};
	f->h.e_ident[EI_CLASS] = ELFCLASS64;
	f->h.e_ident[EI_DATA] = ELFDATA2LSB;
	f->p = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = all, .p_memsz = all};
	/* 1 -> 2 -> 3 -> 1, each over the whole file, and the names of the sections in one of them */
	for (u32 i = 1; i < 4; i++)
		f->s[i] = (Elf64_Shdr){.sh_name = all - i,
			.sh_type = i == 1   ? SHT_DYNSYM
				   : i == 2 ? SHT_SYMTAB
					    : SHT_STRTAB,
			.sh_link = i % 3 + 1,
			.sh_size = all,
			.sh_entsize = sizeof(Elf64_Sym)};
	for (u32 i = 0; i < SYMBOLS; i++)
		f->sym[i] = (Elf64_Sym){.st_name = all - 1 - i % 64,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_shndx = 0xfefe,
			.st_value = 0x4141414141ULL % all,
			.st_size = 0xffffffff};
	memset((u8 *)f + all - 64, 'A', 64);
	fd = as_file((const u8 *)f, all);
	ask_everything(fd);
	close(fd);
	free(f);
	assert_true(seconds() - start < 5);
}

/* a file of 1 TiB that is nearly all hole, and one table that claims all of it */
static void test_huge_symbol_table_is_cut_at_the_limit(void **state)
{
	Elf64_Shdr s[3] = {{0}, {.sh_type = SHT_SYMTAB, .sh_link = 2, .sh_offset = 0, .sh_size = 1ULL << 40},
		{.sh_type = SHT_STRTAB, .sh_offset = 0, .sh_size = 1ULL << 40}};
	Elf64_Ehdr h = {.e_ident = ELFMAG,
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_shoff = sizeof(h),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 3};
	struct elf_file e;
	struct asked a = {.e = &e};
	double start = seconds();
	int fd = memfd_create("huge", MFD_CLOEXEC);

	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	assert_int_equal(write(fd, &h, sizeof(h)), sizeof(h));
	assert_int_equal(write(fd, s, sizeof(s)), sizeof(s));
	assert_int_equal(ftruncate(fd, 1LL << 40), 0);
	assert_int_equal(elf_file__open(&e, fd), 0);
	assert_int_equal(elf_file__each_symbol(&e, ELF_SYMTAB, take_symbol, &a), 0);
	assert_true(e.cut);
	elf_file__close(&e);
	close(fd);
	assert_true(seconds() - start < 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_offset_of_a_function_holds_its_bytes_in_any_layout),
		cmocka_unit_test(test_stripped_program_keeps_what_it_exports),
		cmocka_unit_test(test_file_without_a_section_table_still_has_its_dynamic_symbols),
		cmocka_unit_test(test_default_version_of_a_symbol_wins_over_an_old_one),
		cmocka_unit_test(test_ifunc_is_told_from_a_function),
		cmocka_unit_test(test_address_in_bss_has_no_file_offset),
		cmocka_unit_test(test_other_files_are_refused_by_kind),
		cmocka_unit_test(test_file_cut_anywhere_is_survived),
		cmocka_unit_test(test_damaged_headers_are_survived),
		cmocka_unit_test(test_sixty_five_thousand_sections_over_each_other_take_no_time),
		cmocka_unit_test(test_tables_in_a_ring_and_strings_without_an_end_are_survived),
		cmocka_unit_test(test_huge_symbol_table_is_cut_at_the_limit),
	};

	return cmocka_run_group_tests(tests, fixture__setup, fixture__teardown);
}
