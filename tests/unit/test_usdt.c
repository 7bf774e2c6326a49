// SPDX-License-Identifier: GPL-2.0-only
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "build_fixture.h"
#include "usdt.h"

/* ---- arguments: struct pt_regs of x86-64 is r15 0, r12 24, rbp 32, rbx 40, r11 48, rax 80, rcx 88, rdx 96, rsi 104,
 * rdi 112, rip 128, rsp 152 ---- */

static struct probe_arg parse(u16 machine, const char *spec)
{
	struct probe_arg a[PROBE_ARGS];
	char why[128] = "";

	if (usdt__parse_args(machine, spec, a, PROBE_ARGS, why, sizeof(why)) != 1)
		fail_msg("%s: %s", spec, why);
	return a[0];
}

static void expect(
	struct probe_arg a, int from, int size, bool is_signed, int reg, int index, int scale, long long value)
{
	assert_int_equal(a.from, from);
	assert_int_equal(a.size, size);
	assert_int_equal(a.is_signed, is_signed);
	assert_int_equal(a.reg, reg);
	assert_int_equal(a.index, index);
	assert_int_equal(a.scale, scale);
	assert_int_equal(a.value, value);
}

static void test_x86_registers_of_every_width_are_found_in_pt_regs(void **state)
{
	expect(parse(EM_X86_64, "8@%rdi"), ARG_REG, 8, false, 112, 0xffff, 0, 0);
	expect(parse(EM_X86_64, "-4@%r12d"), ARG_REG, 4, true, 24, 0xffff, 0, 0);
	expect(parse(EM_X86_64, "2@%cx"), ARG_REG, 2, false, 88, 0xffff, 0, 0);
	expect(parse(EM_X86_64, "1@%al"), ARG_REG, 1, false, 80, 0xffff, 0, 0);
	expect(parse(EM_X86_64, "-1@%sil"), ARG_REG, 1, true, 104, 0xffff, 0, 0);
	expect(parse(EM_X86_64, "1@%ah"), ARG_REG, 1, false, 81, 0xffff, 0, 0);
	expect(parse(EM_X86_64, "1@%r15b"), ARG_REG, 1, false, 0, 0xffff, 0, 0);
}

static void test_x86_constants_keep_sign_and_width(void **state)
{
	expect(parse(EM_X86_64, "-4@$5"), ARG_CONST, 4, true, 0, 0xffff, 0, 5);
	expect(parse(EM_X86_64, "-4@$-5"), ARG_CONST, 4, true, 0, 0xffff, 0, -5);
	expect(parse(EM_X86_64, "8@$0x7fffffffffffffff"), ARG_CONST, 8, false, 0, 0xffff, 0, 0x7fffffffffffffffLL);
	expect(parse(EM_X86_64, "8@$18446744073709551615"), ARG_CONST, 8, false, 0, 0xffff, 0, -1);
}

static void test_x86_memory_has_base_index_and_scale(void **state)
{
	expect(parse(EM_X86_64, "8@-8(%rbp)"), ARG_MEM, 8, false, 32, 0xffff, 1, -8);
	expect(parse(EM_X86_64, "4@(%rsp)"), ARG_MEM, 4, false, 152, 0xffff, 1, 0);
	expect(parse(EM_X86_64, "8@(%rax,%rbx,8)"), ARG_MEM, 8, false, 80, 40, 8, 0);
	expect(parse(EM_X86_64, "8@8(%rax,%rbx,4)"), ARG_MEM, 8, false, 80, 40, 4, 8);
	expect(parse(EM_X86_64, "8@-0x10(%rax,%rbx)"), ARG_MEM, 8, false, 80, 40, 1, -16);
}

static void test_arm64_operands_with_blanks_inside(void **state)
{
	expect(parse(EM_AARCH64, "8@x0"), ARG_REG, 8, false, 0, 0xffff, 0, 0);
	expect(parse(EM_AARCH64, "4@w19"), ARG_REG, 4, false, 152, 0xffff, 0, 0);
	expect(parse(EM_AARCH64, "8@sp"), ARG_REG, 8, false, 248, 0xffff, 0, 0);
	expect(parse(EM_AARCH64, "-4@[sp, 12]"), ARG_MEM, 4, true, 248, 0xffff, 1, 12);
	expect(parse(EM_AARCH64, "8@[x30, -8]"), ARG_MEM, 8, false, 240, 0xffff, 1, -8);
	expect(parse(EM_AARCH64, "8@[x1]"), ARG_MEM, 8, false, 8, 0xffff, 1, 0);
	expect(parse(EM_AARCH64, "8@[x1, x2, lsl 3]"), ARG_MEM, 8, false, 8, 16, 8, 0);
	expect(parse(EM_AARCH64, "4@5"), ARG_CONST, 4, false, 0, 0xffff, 0, 5);
	expect(parse(EM_AARCH64, "-4@-5"), ARG_CONST, 4, true, 0, 0xffff, 0, -5);
}

static void test_several_arguments_are_split_and_counted(void **state)
{
	struct probe_arg a[3];
	char why[128] = "";

	assert_int_equal(usdt__parse_args(EM_AARCH64, "-4@[sp, 12] 8@x3", a, 3, why, sizeof(why)), 2);
	expect(a[1], ARG_REG, 8, false, 24, 0xffff, 0, 0);
	assert_int_equal(a[2].from, ARG_NONE);
	assert_int_equal(usdt__parse_args(EM_X86_64, "", a, 3, why, sizeof(why)), 0);
	assert_int_equal(usdt__parse_args(EM_X86_64, "8@%rdi 8@%rsi 8@%rdx 8@nonsense", a, 3, why, sizeof(why)), 4);
	assert_string_equal(why, "");
}

static void test_what_a_probe_cannot_read_is_refused_with_its_text(void **state)
{
	static const char *const bad[] = {"4@sym(%rip)", "4@sym+4(%rip)", "4f@%xmm0", "8@%xmm0", "3@%rdi", "16@%rdi",
		"8@", "@%rdi", "%rdi", "8@%rdj", "8@(%eax)", "8@(%rax,%rbx,3)", "8@8(%rax", "8@%rdi,", "8@$", "8@$sym",
		"8@%fs:8", "8@%al", "8@(,%rbx,8)", "0@%rdi", "-9223372036854775808@%rdi",
		"8@99999999999999999999(%rax)", "8@*%rdi", "x"};
	struct probe_arg a[1];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char why[128] = "";

		if (usdt__parse_args(EM_X86_64, bad[i], a, 1, why, sizeof(why)) != -ENOTSUP)
			fail_msg("%s was taken", bad[i]);
		assert_non_null(strstr(why, bad[i]));
		assert_int_equal(a[0].from, ARG_NONE);
	}
}

static void test_message_about_a_hostile_argument_is_escaped(void **state)
{
	struct probe_arg a[1];
	char why[128] = "";

	assert_int_equal(usdt__parse_args(EM_X86_64, "8@\033[2J\xff", a, 1, why, sizeof(why)), -ENOTSUP);
	assert_null(strchr(why, '\033'));
	assert_non_null(strstr(why, "\\x1b"));
}

/* ---- notes ---- */

#define NOTE(provider, name, semaphore, args)                                                                          \
	"__asm__(\"990: nop\\n .pushsection .note.stapsdt,\\\"\\\",\\\"note\\\"\\n .balign 4\\n"                       \
	" .4byte 992f-991f,994f-993f,3\\n991: .asciz \\\"stapsdt\\\"\\n992: .balign 4\\n993: .8byte 990b\\n"           \
	" .8byte _.stapsdt.base\\n .8byte " semaphore "\\n .asciz \\\"" provider "\\\"\\n .asciz \\\"" name "\\\"\\n"  \
	" .asciz \\\"" args "\\\"\\n994: .balign 4\\n .popsection\\n\");\n"
#define BASE                                                                                                           \
	"__asm__(\".pushsection .stapsdt.base,\\\"aG\\\",\\\"progbits\\\",.stapsdt.base,comdat\\n.weak "               \
	"_.stapsdt.base\\n"                                                                                            \
	".hidden _.stapsdt.base\\n_.stapsdt.base: .space 1\\n.popsection\\n\");\n"                                     \
	"__attribute__((section(\".probes\"), visibility(\"hidden\"))) unsigned short sem_a = 0x1234;\n"

static const char program[] = BASE "int main(void) {\n" NOTE("mine", "one", "sem_a", "8@%rdi")
	NOTE("mine", "two", "0", "") NOTE("mine", "one", "sem_a", "-4@$5") "return 0; }\n";

struct seen {
	struct elf_file *e;
	int n, one, two;
	u64 first;
};

static bool look(const struct usdt_note *note, void *arg)
{
	struct seen *s = arg;
	u16 semaphore = 0;
	u8 insn = 0;

	s->n++;
	assert_string_equal(note->provider, "mine");
	assert_int_equal(elf_file__read(s->e, note->offset, &insn, 1), 0);
	assert_int_equal(insn, 0x90); /* it does point at the nop */
	if (!strcmp(note->name, "two")) {
		s->two++;
		assert_int_equal(note->semaphore, 0);
		assert_string_equal(note->args, "");
		return true;
	}
	assert_string_equal(note->name, "one");
	assert_int_equal(elf_file__read(s->e, note->semaphore, &semaphore, 2), 0);
	assert_int_equal(semaphore, 0x1234);
	s->first = s->one++ ? s->first : note->offset;
	return true;
}

static int open_built(struct elf_file *e, const char *name)
{
	int fd = open(fixture__path(name), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(elf_file__open(e, fd), 0);
	return fd;
}

static void check_program(const char *name, const char *flags)
{
	struct elf_file e;
	struct seen s = {.e = &e};
	int fd;

	fixture__build(name, flags, program);
	fd = open_built(&e, name);
	assert_int_equal(usdt__each(&e, look, &s), 0);
	assert_int_equal(s.one, 2);
	assert_int_equal(s.two, 1);
	elf_file__close(&e);
	close(fd);
}

static void test_every_site_and_semaphore_is_found_in_any_kind_of_program(void **state)
{
	check_program("pie", "-O1 -fPIE -pie");
	check_program("nopie", "-O1 -fno-pie -no-pie");
	check_program("static", "-O1 -static");
	check_program("shared", "-O1 -fPIC -shared");
	check_program("elsewhere", "-O1 -fPIC -shared -Wl,-Ttext-segment=0x7654000");
}

/* What prelink did to files: every address moved, the notes not. */
static void test_notes_follow_the_base_where_the_file_was_moved(void **state)
{
	struct elf_file e;
	struct seen s = {.e = &e};
	const u64 shift = 0x100000;
	int fd;

	fixture__build("moved", "-O1 -fPIC -shared", program);
	fd = open_built(&e, "moved");
	for (u32 i = 0; i < e.n_segments; i++)
		e.segments[i].vaddr += shift;
	for (u32 i = 0; i < e.n_sections; i++)
		e.sections[i].addr += e.sections[i].flags & SHF_ALLOC ? shift : 0;
	assert_int_equal(usdt__each(&e, look, &s), 0);
	assert_int_equal(s.n, 3);
	elf_file__close(&e);
	close(fd);
}

static void test_five_thousand_sites_are_all_taken(void **state)
{
	struct elf_file e;
	struct seen s = {.e = &e};
	char *source = malloc(5000 * 4 + 4096);
	size_t at;
	int fd;

	assert_non_null(source);
	at = (size_t)sprintf(
		source, "%s#define N " NOTE("mine", "one", "sem_a", "8@%%rax") "\nint main(void) {\n", BASE);
	for (int i = 0; i < 5000; i++)
		at += (size_t)sprintf(source + at, "N%s", i % 20 == 19 ? "\n" : " ");
	strcpy(source + at, "return 0; }\n");
	fixture__build("many", "-O0", source);
	free(source);
	fd = open_built(&e, "many");
	assert_int_equal(usdt__each(&e, look, &s), 0);
	assert_int_equal(s.one, 5000);
	elf_file__close(&e);
	close(fd);
}

/* notes whose sizes lie, in a file that is otherwise sound */
static int hostile(const char *name, const char *note, struct seen *s, struct elf_file *e)
{
	char source[4096];
	int fd, bad;

	snprintf(source, sizeof(source),
		"%sint main(void) { %s\n__asm__(\".pushsection "
		".note.stapsdt,\\\"\\\",\\\"note\\\"\\n%s.popsection\");\nreturn 0; }\n",
		BASE, NOTE("mine", "one", "sem_a", "8@%rdi"), note);
	fixture__build(name, "-O1", source);
	fd = open_built(e, name);
	bad = usdt__each(e, look, s);
	elf_file__close(e);
	close(fd);
	return bad;
}

static void test_malformed_notes_are_counted_and_the_sound_ones_kept(void **state)
{
	static const char *const notes[] = {
		".4byte 0xffffffff,0xffffffff,3\\n",
		".4byte 8,0xffffffff,3\\n.asciz \\\"stapsdt\\\"\\n",
		".4byte 8,4,3\\n.asciz \\\"stapsdt\\\"\\n.4byte 0\\n",
		/* strings without an end */
		".4byte 8,32,3\\n.asciz \\\"stapsdt\\\"\\n.8byte 0,0,0\\n.ascii \\\"abcdefgh\\\"\\n",
		/* addresses that are not in the file */
		".4byte 8,32,3\\n.asciz \\\"stapsdt\\\"\\n.8byte -1,0,0\\n.ascii \\\"mine\\\\0b\\\\0\\\\0\\\"\\n",
		".4byte 8\\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
		struct elf_file e;
		struct seen s = {.e = &e};

		if (hostile("hostile", notes[i], &s, &e) != 1)
			fail_msg("not noticed: %s", notes[i]);
		assert_int_equal(s.one, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86_registers_of_every_width_are_found_in_pt_regs),
		cmocka_unit_test(test_x86_constants_keep_sign_and_width),
		cmocka_unit_test(test_x86_memory_has_base_index_and_scale),
		cmocka_unit_test(test_arm64_operands_with_blanks_inside),
		cmocka_unit_test(test_several_arguments_are_split_and_counted),
		cmocka_unit_test(test_what_a_probe_cannot_read_is_refused_with_its_text),
		cmocka_unit_test(test_message_about_a_hostile_argument_is_escaped),
		cmocka_unit_test(test_every_site_and_semaphore_is_found_in_any_kind_of_program),
		cmocka_unit_test(test_notes_follow_the_base_where_the_file_was_moved),
		cmocka_unit_test(test_five_thousand_sites_are_all_taken),
		cmocka_unit_test(test_malformed_notes_are_counted_and_the_sound_ones_kept),
	};

	return cmocka_run_group_tests(tests, fixture__setup, fixture__teardown);
}
