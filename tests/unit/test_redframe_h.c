/* SPDX-License-Identifier: GPL-2.0-only
 *
 * probes/redframe.h as games build it: small programs made with each compiler at hand in the ways that games are built,
 * and what is then in the file: the notes, their arguments and semaphores, and the one nop. Runs in the source folder.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "redframe.h"

#define MAX_NOTES 64
#define STRICT    "-Wall -Wextra -pedantic -Wconversion -Wshadow -Wundef -Wredundant-decls -Werror"

static char tmp[] = "/tmp/redframe-h-XXXXXX";

struct note {
	char name[32], args[64];
	uint64_t loc, base, semaphore;
};

struct file {
	struct note notes[MAX_NOTES];
	int n;
	uint64_t base, probes, probes_end;
	uint8_t code[MAX_NOTES][4]; /* at each note's location */
	uint16_t value[MAX_NOTES];  /* of its semaphore, in the file */
};

/* ---- the programs ---- */

static const char source_main[] = "#include \"redframe.h\"\n"
				  "int other(int n);\n"
				  "int in_library(int n);\n"
				  "static int evaluated;\n"
				  "static int count(void) { return ++evaluated; }\n"
				  "static const char *text(void) { evaluated++; return \"text\"; }\n"
				  "static int lock;\n"
				  "int main(int argc, char **argv)\n"
				  "{\n"
				  "	(void)argv;\n"
				  "	REDFRAME_FRAME(count());\n"
				  "	REDFRAME_FRAME_STREAM(count(), &lock);\n"
				  "	REDFRAME_FRAME_BEGIN(count(), 7);\n"
				  "	REDFRAME_FRAME_END(count(), argc);\n"
				  "	REDFRAME_SCENE(text());\n"
				  "	REDFRAME_LOCK_NAME(&lock, text());\n"
				  "	REDFRAME_MESSAGE(text());\n"
				  "	REDFRAME_MESSAGEF(\"%d %s\", count(), text());\n"
				  "	if (REDFRAME_ENABLED(frame))\n"
				  "		return 100;\n"
				  "	return evaluated + other(argc) + in_library(argc);\n"
				  "}\n";
static const char source_other[] = "#include \"redframe.h\"\n"
				   "__attribute__((noinline)) int other(int n);\n"
				   "int other(int n)\n"
				   "{\n"
				   "	if (n > 0)\n"
				   "		REDFRAME_FRAME(n);\n"
				   "	else\n"
				   "		REDFRAME_SCENE(\"never\");\n"
				   "	return 0;\n"
				   "}\n";
static const char source_library[] = "#include \"redframe.h\"\n"
				     "__attribute__((noinline)) int in_library(int n);\n"
				     "int in_library(int n)\n"
				     "{\n"
				     "	REDFRAME_FRAME_BEGIN(n, 0);\n"
				     "	REDFRAME_MESSAGE(\"library\");\n"
				     "	return 0;\n"
				     "}\n";

static void write_source(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", tmp, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* Runs a shell command; what it said is shown where it failed. Returns its exit status. */
__attribute__((format(printf, 1, 2))) static int run(const char *format, ...)
{
	char command[1024], line[1280];
	va_list args;
	int status;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	snprintf(line, sizeof(line), "{ %s ; } >%s/log 2>&1", command, tmp);
	status = system(line);
	if (status == -1)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

#define build(...) assert_built(run(__VA_ARGS__), __LINE__)
static void assert_built(int status, int line)
{
	char show[160];

	if (!status)
		return;
	snprintf(show, sizeof(show), "cat %s/log >&2", tmp);
	if (system(show))
		print_error("no log\n");
	fail_msg("the build at line %d failed with %d", line, status);
}

static bool have(const char *tool)
{
	return run("command -v %s", tool) == 0;
}

/* ---- what is in a file ---- */

/* size bytes at a virtual address, through the program headers; false: no segment with these flags holds them */
static bool bytes_at(Elf *elf, uint64_t addr, uint32_t flags, void *out, size_t size)
{
	size_t len, n, i;
	const char *raw = elf_rawfile(elf, &len);
	GElf_Phdr ph;

	if (elf_getphdrnum(elf, &n))
		return false;
	for (i = 0; i < n; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD || (ph.p_flags & flags) != flags)
			continue;
		if (addr < ph.p_vaddr || addr - ph.p_vaddr + size > ph.p_filesz)
			continue;
		memcpy(out, raw + ph.p_offset + (addr - ph.p_vaddr), size);
		return true;
	}
	return false;
}

static void read_note(struct file *f, Elf *elf, const char *desc)
{
	struct note *n = &f->notes[f->n];
	const char *provider = desc + 24, *name = provider + strlen(provider) + 1;

	assert_in_range(f->n, 0, MAX_NOTES - 1);
	memcpy(&n->loc, desc, 8);
	memcpy(&n->base, desc + 8, 8);
	memcpy(&n->semaphore, desc + 16, 8);
	assert_string_equal(provider, "redframe");
	snprintf(n->name, sizeof(n->name), "%s", name);
	snprintf(n->args, sizeof(n->args), "%s", name + strlen(name) + 1);
	assert_true(bytes_at(elf, n->loc, PF_X, f->code[f->n], 1));
	bytes_at(elf, n->loc, PF_X, f->code[f->n], 4);
	assert_true(bytes_at(elf, n->semaphore, PF_W, &f->value[f->n], 2));
	f->n++;
}

static void read_notes(struct file *f, Elf *elf, Elf_Data *data)
{
	size_t at = 0, name, desc;
	GElf_Nhdr nh;

	while ((at = gelf_getnote(data, at, &nh, &name, &desc)) > 0) {
		assert_string_equal((char *)data->d_buf + name, "stapsdt");
		assert_int_equal(nh.n_type, 3);
		read_note(f, elf, (char *)data->d_buf + desc);
	}
}

static void read_file(struct file *f, const char *name)
{
	char path[128];
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	size_t strings;
	Elf *elf;
	int fd;

	memset(f, 0, sizeof(*f));
	snprintf(path, sizeof(path), "%s/%s", tmp, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	assert_non_null(elf);
	assert_int_equal(elf_getshdrstrndx(elf, &strings), 0);
	while ((scn = elf_nextscn(elf, scn)) && gelf_getshdr(scn, &sh)) {
		const char *section = elf_strptr(elf, strings, sh.sh_name);

		if (!strcmp(section, ".stapsdt.base"))
			f->base = sh.sh_addr;
		if (!strcmp(section, ".probes")) {
			f->probes = sh.sh_addr;
			f->probes_end = sh.sh_addr + sh.sh_size;
		}
		if (!strcmp(section, ".note.stapsdt"))
			read_notes(f, elf, elf_getdata(scn, NULL));
	}
	elf_end(elf);
	close(fd);
}

static int count_notes(const struct file *f, const char *name)
{
	int i, n = 0;

	for (i = 0; i < f->n; i++)
		n += !strcmp(f->notes[i].name, name);
	return n;
}

static bool is_register(const char *arg, size_t len)
{
	return len >= 6 && len <= 7 && !strncmp(arg, "8@%r", 4);
}

static void check_arguments(const struct note *n)
{
	bool one = !strcmp(n->name, "scene") || !strcmp(n->name, "message");
	const char *space = strchr(n->args, ' ');

	if (one) {
		assert_null(space);
		assert_true(is_register(n->args, strlen(n->args)));
		return;
	}
	assert_non_null(space);
	assert_true(is_register(n->args, (size_t)(space - n->args)));
	if (strcmp(n->name, "frame") || strcmp(space + 1, "8@$0"))
		assert_true(is_register(space + 1, strlen(space + 1)));
}

static void check_semaphores(const struct file *f)
{
	int i, j;

	for (i = 0; i < f->n; i++) {
		assert_in_range(f->notes[i].semaphore, f->probes, f->probes_end - 2);
		assert_int_equal(f->notes[i].semaphore % 2, 0);
		assert_int_equal(f->value[i], 0);
		for (j = 0; j < i; j++)
			assert_int_equal(!strcmp(f->notes[i].name, f->notes[j].name),
				f->notes[i].semaphore == f->notes[j].semaphore);
	}
}

static void check_file(const char *name, int frames, int begins, int ends, int scenes, int locks, int messages)
{
	struct file f;
	int i;

	read_file(&f, name);
	assert_int_equal(count_notes(&f, "frame"), frames);
	assert_int_equal(count_notes(&f, "frame_begin"), begins);
	assert_int_equal(count_notes(&f, "frame_end"), ends);
	assert_int_equal(count_notes(&f, "scene"), scenes);
	assert_int_equal(count_notes(&f, "lock_name"), locks);
	assert_int_equal(count_notes(&f, "message"), messages);
	assert_int_equal(f.n, frames + begins + ends + scenes + locks + messages);
	check_semaphores(&f);
	for (i = 0; i < f.n; i++) {
		check_arguments(&f.notes[i]);
		assert_int_equal(f.code[i][0], 0x90);
		assert_int_equal(f.notes[i].base, f.base);
	}
}

/* ---- the ways of building ---- */

struct mode {
	const char *compile, *link;
	bool is_static; /* the library is linked into the program */
};

static void check_mode(const char *cc, const struct mode *m)
{
	const char *lib = m->is_static ? "lib.o" : "lib.so";

	print_message("%s %s %s\n", cc, m->compile, m->link);
	build("cd %s && for f in main other; do %s %s " STRICT " -I$OLDPWD/probes -c $f.c -o $f.o || exit 1; done", tmp,
		cc, m->compile);
	build("cd %s && %s %s -fPIC " STRICT " -I$OLDPWD/probes -c lib.c -o lib.o", tmp, cc, m->compile);
	if (!m->is_static) {
		build("cd %s && %s %s -fPIC -shared %s lib.o -o lib.so", tmp, cc, m->compile,
			strstr(m->link, "pie") ? "" : m->link);
		check_file("lib.so", 0, 1, 0, 0, 0, 1);
	}
	build("cd %s && %s %s %s main.o other.o %s -Wl,-rpath,%s -o prog", tmp, cc, m->compile, m->link, lib, tmp);
	if (m->is_static)
		check_file("prog", 3, 2, 1, 2, 1, 3);
	else
		check_file("prog", 3, 1, 1, 2, 1, 2);
	/* nobody listens: four numbers were made, and no text */
	assert_int_equal(run("%s/prog", tmp), 4);
}

static void check_modes(const char *const *compilers, const struct mode *modes, size_t n)
{
	size_t i;

	for (; *compilers; compilers++) {
		if (!have(*compilers)) {
			print_message("NOT TESTED: %s is not installed\n", *compilers);
			continue;
		}
		for (i = 0; i < n; i++) {
			if (strstr(modes[i].link, "lld") && !have("ld.lld"))
				print_message(
					"NOT TESTED: %s %s, ld.lld is not installed\n", *compilers, modes[i].link);
			else
				check_mode(*compilers, &modes[i]);
		}
	}
}

static const struct mode c_modes[] = {
	{"-std=c99 -O0", "", false},
	{"-std=c11 -O1 -fPIE", "-pie", false},
	{"-std=c11 -O2 -fno-pie -fno-pic", "-no-pie", false},
	{"-std=gnu11 -O3 -fPIC", "", false},
	{"-std=c99 -Os -g", "-static", true},
	{"-O2 -ffunction-sections -fdata-sections", "-Wl,--gc-sections", true},
	{"-O2 -ffunction-sections -fdata-sections", "-Wl,--gc-sections -fuse-ld=lld", true},
	{"-O2 -masm=intel", "", false},
	{"-O2 -mcmodel=large -fomit-frame-pointer", "", false},
};
static const struct mode cxx_modes[] = {
	{"-x c++ -std=c++11 -O0 -Wold-style-cast", "-x none", false},
	{"-x c++ -std=c++17 -O2 -fno-exceptions -fno-rtti", "-x none", true},
	{"-x c++ -std=c++20 -O3 -Wold-style-cast", "-x none", false},
};
static const struct mode gcc_lto[] = {{"-O2 -flto", "", false}, {"-O3 -flto -flto-partition=max", "-static", true}};
static const struct mode clang_lto[] = {{"-O2 -flto", "-fuse-ld=lld", false}, {"-O2 -flto=thin", "-fuse-ld=lld", true}};

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define N(array)  (sizeof(array) / sizeof((array)[0]))

static void test_c_markers_are_right_in_every_way_of_building(void **state)
{
	check_modes(LIST("gcc", "clang"), c_modes, N(c_modes));
}

static void test_lto_keeps_every_marker_and_its_semaphore(void **state)
{
	check_modes(LIST("gcc"), gcc_lto, N(gcc_lto));
	check_modes(LIST("clang"), clang_lto, N(clang_lto));
}

static void test_cxx_markers_are_right_in_every_way_of_building(void **state)
{
	check_modes(LIST("g++", "clang++"), cxx_modes, N(cxx_modes));
}

/* The linker keeps one copy of an inline function: of its notes, too, or the others would point into nowhere. */
static void test_notes_of_a_dropped_inline_function_are_dropped(void **state)
{
	const char *compilers[] = {"g++", "clang++"};
	size_t i;

	write_source("inline.h", "#pragma once\n#include \"redframe.h\"\n"
				 "template <class T> __attribute__((noinline)) void mark(T n) { REDFRAME_FRAME(n); }\n"
				 "struct Game { __attribute__((noinline)) void load() { REDFRAME_SCENE(\"x\"); } };\n");
	write_source("one.cpp", "#include \"inline.h\"\nvoid f(); void f() { mark(1); Game().load(); }\n");
	write_source("two.cpp", "#include \"inline.h\"\nvoid f();\n"
				"int main() { f(); mark(2); Game().load(); return 0; }\n");
	for (i = 0; i < N(compilers); i++) {
		if (!have(compilers[i])) {
			print_message("NOT TESTED: %s is not installed\n", compilers[i]);
			continue;
		}
		build("%s -std=c++11 -O1 -Iprobes " STRICT " -o %s/inlines %s/one.cpp %s/two.cpp", compilers[i], tmp,
			tmp, tmp);
		check_file("inlines", 1, 0, 0, 1, 0, 0);
		assert_int_equal(run("%s/inlines", tmp), 0);
	}
}

static void check_off(const char *cc, const char *flags)
{
	struct file f;

	print_message("%s %s\n", cc, flags);
	build("cd %s && %s %s " STRICT " -I$OLDPWD/probes %s.c lib.c other.c -o off", tmp, cc, flags, "main");
	read_file(&f, "off");
	assert_int_equal(f.n, 0);
	assert_int_equal(f.probes_end - f.probes, 0);
	assert_int_equal(run("%s/off", tmp), 0);
}

static void test_off_leaves_nothing_and_evaluates_nothing(void **state)
{
	const char *const *cc;

	for (cc = LIST("gcc", "clang", "g++ -x c++ -std=c++11", "clang++ -x c++"); *cc; cc++) {
		if (run("%s --version", *cc)) {
			print_message("NOT TESTED: %s is not installed\n", *cc);
			continue;
		}
		check_off(*cc, "-DREDFRAME_OFF -O0");
		check_off(*cc, "-DREDFRAME_OFF -O2");
		check_off(*cc, "-U__linux__ -O2"); /* as on a system that has no such notes */
	}
}

static void test_an_included_header_alone_leaves_no_note(void **state)
{
	struct file f;

	write_source("bare.c", "#include \"redframe.h\"\nint main(void) { REDFRAME_FRAME(1); return 0; }\n");
	build("cc -O0 -Iprobes " STRICT " -o %s/bare %s/bare.c", tmp, tmp);
	read_file(&f, "bare");
	assert_int_equal(f.n, 1);
}

static void test_a_wrong_format_is_refused_on_and_off(void **state)
{
	write_source("format.c", "#include \"redframe.h\"\n"
				 "int main(void) { REDFRAME_MESSAGEF(\"%s\", 1); return 0; }\n");
	assert_int_not_equal(run("cc -Wall -Werror -Iprobes -c %s/format.c -o %s/format.o", tmp, tmp), 0);
	assert_int_not_equal(
		run("cc -DREDFRAME_OFF -Wall -Werror -Iprobes -c %s/format.c -o %s/format.o", tmp, tmp), 0);
	assert_int_equal(run("cc -Iprobes -c %s/format.c -o %s/format.o", tmp, tmp), 0);
}

/* ---- what it costs when nobody listens ---- */

static void test_a_frame_mark_is_one_nop(void **state)
{
	const char *const *cc;
	struct file f;

	write_source("nop.c", "#include \"redframe.h\"\nvoid mark(unsigned long long n);\n"
			      "void mark(unsigned long long n) { REDFRAME_FRAME(n); }\n"
			      "int main(void) { mark(1); return 0; }\n");
	for (cc = LIST("gcc", "clang"); *cc; cc++) {
		if (!have(*cc))
			continue;
		build("%s -O2 -fcf-protection=none -Iprobes " STRICT " -fno-inline -o %s/nop %s/nop.c", *cc, tmp, tmp);
		read_file(&f, "nop");
		assert_int_equal(f.n, 1);
		assert_string_equal(f.notes[0].args, "8@%rdi 8@$0");
		assert_int_equal(f.code[0][0], 0x90); /* nop */
		assert_int_equal(f.code[0][1], 0xc3); /* ret */
	}
}

static void test_arm64_markers_are_right(void **state)
{
	static const char *const ways[][2] = {
		{"aarch64-linux-gnu-gcc", "aarch64-linux-gnu-gcc -O2"},
		{"aarch64-linux-gnu-gcc", "aarch64-linux-gnu-gcc -O0"},
		{"ld.lld", "clang --target=aarch64-linux-gnu -ffreestanding -fuse-ld=lld -O2"},
	};
	static const uint8_t nop[4] = {0x1f, 0x20, 0x03, 0xd5};
	struct file f;
	size_t i;
	int j, tested = 0;

	write_source("arm.c", source_library);
	for (i = 0; i < N(ways); i++) {
		if (!have(ways[i][0])) {
			print_message("NOT TESTED: %s (%s is not installed)\n", ways[i][1], ways[i][0]);
			continue;
		}
		build("%s -Iprobes " STRICT " -fPIC -shared -nostdlib -o %s/arm.so %s/arm.c", ways[i][1], tmp, tmp);
		read_file(&f, "arm.so");
		assert_int_equal(f.n, 2);
		check_semaphores(&f);
		for (j = 0; j < f.n; j++) {
			assert_memory_equal(f.code[j], nop, 4);
			assert_memory_equal(f.notes[j].args, "8@x", 3);
		}
		tested++;
	}
	if (!tested) {
		print_message("SKIPPED: no arm64 compiler here (apt-get install gcc-aarch64-linux-gnu)\n");
		skip();
	}
}

/* ---- in this program ---- */

/* Is the page at p mapped? From bit 63 of its entry in /proc/self/pagemap. */
static bool page_is_present(const void *p)
{
	uint64_t entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	off_t at = (off_t)((uintptr_t)p / (uintptr_t)sysconf(_SC_PAGESIZE) * sizeof(entry));

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &entry, sizeof(entry), at), sizeof(entry));
	close(fd);
	return entry >> 63;
}

static void test_text_is_touched_only_when_somebody_listens(void **state)
{
	long page = sysconf(_SC_PAGESIZE);
	int fd = memfd_create("text", MFD_CLOEXEC);
	char *text;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 2 * page), 0);
	/* a text over the border of two pages */
	assert_int_equal(pwrite(fd, "harbour", 8, page - 4), 8);
	text = mmap(NULL, (size_t)(2 * page), PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(text, MAP_FAILED);
	assert_int_equal(madvise(text, (size_t)(2 * page), MADV_RANDOM), 0); /* no fault-around */

	REDFRAME_SCENE(text + page - 4);
	REDFRAME_MESSAGE(text + page - 4);
	assert_false(page_is_present(text));
	assert_false(page_is_present(text + page));

	redframe_scene_semaphore = 1;
	REDFRAME_SCENE(text + page - 4);
	redframe_scene_semaphore = 0;
	assert_true(page_is_present(text));
	assert_true(page_is_present(text + page));
	munmap(text, (size_t)(2 * page));
	close(fd);
}

static int evaluated(int *n)
{
	return ++*n;
}

static void test_formatting_happens_only_when_somebody_listens(void **state)
{
	int n = 0;

	REDFRAME_MESSAGEF("%d", evaluated(&n));
	assert_int_equal(n, 0);
	redframe_message_semaphore = 1;
	assert_true(REDFRAME_ENABLED(message));
	assert_false(REDFRAME_ENABLED(scene));
	REDFRAME_MESSAGEF("%0*d", 10 * REDFRAME_TEXT_MAX, evaluated(&n)); /* longer than the buffer */
	redframe_message_semaphore = 0;
	assert_int_equal(n, 1);
}

static void test_a_text_that_is_null_is_let_be(void **state)
{
	const char *volatile none = NULL;

	redframe_scene_semaphore = redframe_lock_name_semaphore = redframe_message_semaphore = 1;
	REDFRAME_SCENE(none);
	REDFRAME_LOCK_NAME(state, none);
	REDFRAME_MESSAGE(none);
	redframe_scene_semaphore = redframe_lock_name_semaphore = redframe_message_semaphore = 0;
}

static int make_folder(void **state)
{
	if (access("probes/redframe.h", R_OK)) {
		print_error("run this in the source folder: probes/redframe.h is not here\n");
		return -1;
	}
	if (!mkdtemp(tmp))
		return -1;
	write_source("main.c", source_main);
	write_source("other.c", source_other);
	write_source("lib.c", source_library);
	return 0;
}

static int remove_folder(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", tmp);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_c_markers_are_right_in_every_way_of_building),
		cmocka_unit_test(test_cxx_markers_are_right_in_every_way_of_building),
		cmocka_unit_test(test_lto_keeps_every_marker_and_its_semaphore),
		cmocka_unit_test(test_notes_of_a_dropped_inline_function_are_dropped),
		cmocka_unit_test(test_off_leaves_nothing_and_evaluates_nothing),
		cmocka_unit_test(test_an_included_header_alone_leaves_no_note),
		cmocka_unit_test(test_a_wrong_format_is_refused_on_and_off),
		cmocka_unit_test(test_a_frame_mark_is_one_nop),
		cmocka_unit_test(test_arm64_markers_are_right),
		cmocka_unit_test(test_text_is_touched_only_when_somebody_listens),
		cmocka_unit_test(test_formatting_happens_only_when_somebody_listens),
		cmocka_unit_test(test_a_text_that_is_null_is_let_be),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
