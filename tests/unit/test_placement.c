// SPDX-License-Identifier: GPL-2.0-only
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "placement.h"
#include "regs.h"

/* ---- by hand ---- */

static struct placement choose(const char *code, size_t n, u32 need)
{
	struct placement_code c = {
		.machine = EM_X86_64, .code = (const u8 *)code, .size = n, .whole = true, .vaddr = 0x1000};

	return placement__choose(&c, need);
}
#define CHOOSE(code, need) choose(code, sizeof(code) - 1, need)

static void expect(struct placement p, u32 offset, u32 ret)
{
	assert_false(p.stepped);
	assert_int_equal(p.offset, offset);
	assert_int_equal(p.ret, ret);
}

static void expect_stepped(struct placement p)
{
	assert_true(p.stepped);
	assert_int_equal(p.offset, 0);
	assert_int_equal(p.ret, 0);
}

static void test_first_byte_is_taken_where_it_is_a_push(void **state)
{
	expect(CHOOSE("\x41\x54\x55\xc3", 1), 0, 0);
}

static void test_glibc_free_is_probed_at_its_first_branch(void **state)
{
	/* test %rdi,%rdi; je +10; push %rbp; … ret */
	expect(CHOOSE("\x48\x85\xff\x74\x0a\x55\x90\x90\x90\x90\x90\x90\x90\x90\x90\xc3\xc3", 1), 3, 0);
}

static void test_endbr64_and_long_nops_are_passed_over(void **state)
{
	/* endbr64; nopl 0(%rax,%rax); push %rbx; ret */
	expect(CHOOSE("\xf3\x0f\x1e\xfa\x0f\x1f\x44\x00\x00\x53\xc3", 1), 9, 0);
}

static void test_distance_to_the_return_address_counts_what_was_pushed(void **state)
{
	/* sub $0x18,%rsp; call +0; add; ret */
	expect(CHOOSE("\x48\x83\xec\x18\xe8\x00\x00\x00\x00\x48\x83\xc4\x18\xc3", 7), 4, 0x18);
	/* lea -0x20(%rsp),%rsp; push %rax; ret */
	expect(CHOOSE("\x48\x8d\x64\x24\xe0\x50\xc3", 7), 5, 0x20);
}

static void test_written_argument_ends_the_search(void **state)
{
	/* mov %rsi,%rdi; push %rbx; ret */
	expect_stepped(CHOOSE("\x48\x89\xf7\x53\xc3", ARG_BIT(0)));
	expect(CHOOSE("\x48\x89\xf7\x53\xc3", ARG_BIT(1)), 3, 0);
}

static void expect_in(struct placement p, int arg, const char *reg)
{
	int bytes;

	assert_int_equal(p.reg[arg], reg ? reg__offset(EM_X86_64, reg, strlen(reg), &bytes) : REG_NONE);
}

static void test_argument_is_followed_into_the_register_that_it_is_copied_to(void **state)
{
	/* mov %rsi,%r8; mov 0x10(%rdi),%rsi; push %rbx; ret */
	struct placement p = CHOOSE("\x49\x89\xf0\x48\x8b\x77\x10\x53\xc3", ARG_BIT(1));

	expect(p, 7, 0);
	expect_in(p, 0, "rdi");
	expect_in(p, 1, "r8");
	expect_in(p, 4, NULL); /* r8 was the fifth's */
	/* mov %rsi,%rax; mov %rax,%rbx; xor %esi,%esi; xor %eax,%eax; push: a copy of a copy */
	p = CHOOSE("\x48\x89\xf0\x48\x89\xc3\x31\xf6\x31\xc0\x53\xc3", ARG_BIT(1));
	expect(p, 10, 0);
	expect_in(p, 1, "rbx");
	/* mov %esi,%eax; xor %esi,%esi; push: half of it is no copy */
	expect_stepped(CHOOSE("\x89\xf0\x31\xf6\x53\xc3", ARG_BIT(1)));
	/* mov %rsi,%rax; xor %esi,%esi; xor %eax,%eax; push */
	expect_stepped(CHOOSE("\x48\x89\xf0\x31\xf6\x31\xc0\x53\xc3", ARG_BIT(1)));
}

static void test_partly_and_implicitly_written_arguments_count_as_written(void **state)
{
	expect_stepped(CHOOSE("\x40\xb7\x01\x53\xc3", ARG_BIT(0))); /* mov $1,%dil; push */
	expect_stepped(CHOOSE("\xb6\x01\x53\xc3", ARG_BIT(2)));     /* mov $1,%dh; push */
	expect_stepped(CHOOSE("\x48\xf7\xe6\x53\xc3", ARG_BIT(2))); /* mul %rsi writes rdx; push */
	expect(CHOOSE("\x48\xf7\xe6\x53\xc3", ARG_BIT(1)), 3, 0);
	expect_stepped(CHOOSE("\x48\x99\x53\xc3", ARG_BIT(2))); /* cqto; push */
	expect_stepped(CHOOSE("\xf3\xa4\x53\xc3", ARG_BIT(0))); /* rep movsb; push */
	expect_stepped(CHOOSE("\xf3\xa4\x53\xc3", ARG_BIT(3)));
	expect_stepped(CHOOSE("\x48\x87\xfe\x53\xc3", ARG_BIT(1)));     /* xchg %rdi,%rsi; push */
	expect_stepped(CHOOSE("\x0f\xa2\x53\xc3", ARG_BIT(3)));         /* cpuid; push */
	expect_stepped(CHOOSE("\x48\x0f\x44\xfe\x53\xc3", ARG_BIT(0))); /* cmove %rsi,%rdi; push */
}

static void test_place_inside_a_loop_is_refused(void **state)
{
	/* xor %eax,%eax; 2: push %rbx; pop %rbx; dec %edi; jne 2; ret: the push runs many times a call */
	expect_stepped(CHOOSE("\x31\xc0\x53\x5b\xff\xcf\x75\xfa\xc3", 0));
	/* the same with a back edge to a place between entry and push */
	expect_stepped(CHOOSE("\x31\xc0\x31\xd2\x53\x5b\xff\xcf\x75\xf8\xc3", 0));
	/* a back edge to the entry itself is a new call for byte 0 as well */
	expect(CHOOSE("\x31\xc0\x53\x5b\xff\xcf\x75\xf8\xc3", 0), 2, 0);
}

static void test_nothing_behind_the_first_branch_is_taken(void **state)
{
	/* xor; jrcxz +1; push; ret: jrcxz is a branch that the kernel does not emulate */
	expect_stepped(CHOOSE("\x31\xc0\xe3\x01\x53\xc3", 0));
	/* xor; jmp *%rax; push */
	expect_stepped(CHOOSE("\x31\xc0\xff\xe0\x53\xc3", 0));
	/* xor; syscall; push */
	expect_stepped(CHOOSE("\x31\xc0\x0f\x05\x53\xc3", 0));
	/* xor; ret; push */
	expect_stepped(CHOOSE("\x31\xc0\xc3\x53\xc3", 0));
}

static void test_lost_stack_pointer_ends_the_search(void **state)
{
	/* and $-16,%rsp; push %rbx; ret */
	expect_stepped(CHOOSE("\x48\x83\xe4\xf0\x53\xc3", 0));
	/* mov %rdi,%rsp; push %rbx */
	expect_stepped(CHOOSE("\x48\x89\xfc\x53\xc3", 0));
}

static void test_place_lies_within_the_function_and_the_reach(void **state)
{
	char code[PLACEMENT_REACH + 8];

	/* xor %eax,%eax, and then the next function begins with a push */
	expect_stepped(choose("\x31\xc0\x53\xc3", 2, 0));
	for (int i = 0; i < PLACEMENT_REACH; i += 2)
		memcpy(code + i, "\x31\xc0", 2);
	memcpy(code + PLACEMENT_REACH, "\x53\xc3", 2);
	expect_stepped(choose(code, PLACEMENT_REACH + 2, 0));
	memcpy(code + PLACEMENT_REACH - 2, "\x53\x5b", 2);
	expect(choose(code, PLACEMENT_REACH + 2, 0), PLACEMENT_REACH - 2, 0);
}

static size_t cold_part(void *arg, u64 vaddr, void *buf, size_t n)
{
	/* at 0x2000: jmp back to 0x1002 */
	static const u8 code[] = {0xe9, 0xfd, 0xef, 0xff, 0xff};

	if (vaddr != 0x2000)
		return 0;
	memcpy(buf, code, min(n, sizeof(code)));
	return min(n, sizeof(code));
}

static void test_branch_back_from_a_part_moved_out_of_line_is_seen(void **state)
{
	/* xor %eax,%eax; push %rbx; pop; je 0x2000; ret */
	static const u8 code[] = {0x31, 0xc0, 0x53, 0x5b, 0x0f, 0x84, 0xf6, 0x0f, 0x00, 0x00, 0xc3};
	struct placement_code c = {.machine = EM_X86_64,
		.code = code,
		.size = sizeof(code),
		.whole = true,
		.vaddr = 0x1000,
		.outside = cold_part};

	expect_stepped(placement__choose(&c, 0));
	c.outside = NULL;
	expect(placement__choose(&c, 0), 2, 0);
}

static void test_given_place_tells_which_arguments_are_live(void **state)
{
	/* push %rbx; mov %rdi,%rsi; push %rdx; ret */
	static const u8 code[] = {0x53, 0x48, 0x89, 0xfe, 0x52, 0xc3};
	struct placement_code c = {
		.machine = EM_X86_64, .code = code, .size = sizeof(code), .whole = true, .vaddr = 0x1000};
	u32 live;
	struct placement p = placement__at(&c, 4, &live);

	expect(p, 4, 8);
	assert_int_equal(live, 0x3f & ~ARG_BIT(1));
	p = placement__at(&c, 2, &live); /* within an instruction */
	assert_int_equal(live, 0);
	assert_int_equal(p.ret, PLACEMENT_NO_RET);
}

static void test_garbage_is_survived(void **state)
{
	u32 seed = 1;

	for (int round = 0; round < 20000; round++) {
		char code[96];
		size_t n = 1 + (seed >> 8) % sizeof(code);

		for (size_t i = 0; i < n; i++) {
			seed = seed * 1664525 + 1013904223;
			code[i] = (char)(seed >> 24);
		}
		struct placement p = choose(code, n, seed & 0x3f);

		assert_true(p.offset < n && p.offset < PLACEMENT_REACH);
		assert_int_equal(p.stepped, !placement__emulated(EM_X86_64, (const u8 *)code + p.offset, n - p.offset));
	}
}

/* ---- every exported function of the libraries of this machine, judged by another disassembler ---- */

struct line {
	u64 addr;
	char text[72];
};

struct listing {
	struct line *v;
	size_t n, cap;
	u64 *targets; /* of direct branches, sorted */
	size_t n_targets;
};

static int by_value(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static bool is_jump(const char *text)
{
	return text[0] == 'j' || !strncmp(text, "bnd j", 5) || !strncmp(text, "notrack j", 9) ||
	       !strncmp(text, "loop", 4) || !strncmp(text, "xbegin", 6);
}

static void disassemble(const char *path, struct listing *l)
{
	char cmd[300], buf[512];
	FILE *f;

	snprintf(cmd, sizeof(cmd), "objdump -d -w --no-show-raw-insn %s", path);
	f = popen(cmd, "r");
	assert_non_null(f);
	*l = (struct listing){0};
	while (fgets(buf, sizeof(buf), f)) {
		char *tab = strchr(buf, '\t'), *end;
		u64 addr = strtoull(buf, &end, 16);

		if (buf[0] != ' ' || !tab || *end != ':')
			continue;
		if (l->n == l->cap) {
			l->cap = l->cap ? 2 * l->cap : 65536;
			l->v = reallocarray(l->v, l->cap, sizeof(*l->v));
			assert_non_null(l->v);
		}
		tab[1 + strcspn(tab + 1, "\n")] = 0;
		l->v[l->n].addr = addr;
		snprintf(l->v[l->n++].text, sizeof(l->v->text), "%.71s", tab + 1);
	}
	assert_int_equal(pclose(f), 0);
	l->targets = calloc(l->n + 1, sizeof(u64));
	for (size_t i = 0; i < l->n; i++) {
		char *at = strpbrk(l->v[i].text, " \t"), *end;
		u64 to = at && is_jump(l->v[i].text) ? strtoull(at + strspn(at, " \t"), &end, 16) : 0;

		if (to)
			l->targets[l->n_targets++] = to;
	}
	qsort(l->targets, l->n_targets, sizeof(u64), by_value);
}

static const struct line *line_at(const struct listing *l, u64 addr)
{
	size_t lo = 0, hi = l->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (l->v[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < l->n && l->v[lo].addr == addr ? &l->v[lo] : NULL;
}

static bool targeted(const struct listing *l, u64 from, u64 to) /* (from, to] */
{
	for (size_t i = 0; i < l->n_targets; i++)
		if (l->targets[i] > from && l->targets[i] <= to)
			return true;
	return false;
}

/* the six of the arguments first */
static const char *const register_names[] = {"%rdi %edi %di %dil", "%rsi %esi %si %sil", "%rdx %edx %dx %dl %dh",
	"%rcx %ecx %cx %cl %ch", "%r8 %r8d %r8w %r8b", "%r9 %r9d %r9w %r9b", "%rax %eax %ax %al %ah",
	"%rbx %ebx %bx %bl %bh", "%rbp %ebp %bp %bpl", "%r10 %r10d %r10w %r10b", "%r11 %r11d %r11w %r11b",
	"%r12 %r12d %r12w %r12b", "%r13 %r13d %r13w %r13b", "%r14 %r14d %r14w %r14b", "%r15 %r15d %r15w %r15b"};
#define REGISTERS ((int)ARRAY_SIZE(register_names))
#define RAX       ARG_BIT(6)
#define RBX       ARG_BIT(7)

/* whether the operand that text begins with is the register, or a part of it */
static bool names_register(const char *text, int r)
{
	char names[64], *name, *save;

	text += strspn(text, " ");
	snprintf(names, sizeof(names), "%s", register_names[r]);
	for (name = strtok_r(names, " ", &save); name; name = strtok_r(NULL, " ", &save))
		if (!strncmp(text, name, strlen(name)) && !isalnum((unsigned char)text[strlen(name)]))
			return true;
	return false;
}

/* the last operand is the one that AT&T syntax writes to */
static bool writes_register(const char *text, int r)
{
	static const char *const reads[] = {"test", "cmp", "push", "bt ", "nop", "ucomi", "comi", "prefetch", "endbr"};
	static const struct {
		const char *name;
		u32 regs;
	} writes_more[] = {{"mul", 4 | RAX}, {"imul", 4 | RAX}, {"div", 4 | RAX}, {"idiv", 4 | RAX}, {"cqto", 4},
		{"cltd", 4}, {"cwtd", 4}, {"cltq", RAX}, {"cwtl", RAX}, {"cbtw", RAX}, {"rep", 8}, {"repz", 8},
		{"repnz", 8}, {"movs", 3}, {"cmps", 3}, {"stos", 1}, {"scas", 1}, {"lods", 2 | RAX},
		{"cpuid", 0xc | RAX | RBX}, {"rdtsc", 4 | RAX}, {"rdtscp", 0xc | RAX}, {"xgetbv", 4 | RAX},
		{"mulx", 0x7fff}, {"lahf", RAX}, {"cmpxchg", RAX}, {"lock cmpxchg", RAX}};
	const char *last = strrchr(text, ',');
	size_t len;

	/* those write both operands; the first is a register */
	if (!strncmp(text, "xchg", 4) || !strncmp(text, "xadd", 4) || strstr(text, "cmpxchg"))
		if (names_register(text + strcspn(text, " "), r))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(reads); i++)
		if (!strncmp(text, reads[i], strlen(reads[i])))
			return false;
	if (!strncmp(text, "rep", 3) && strchr(text, ' ') && writes_register(strchr(text, ' ') + 1, r))
		return true;
	/* what has results that the text does not name */
	for (size_t i = 0; i < ARRAY_SIZE(writes_more); i++) {
		len = strlen(writes_more[i].name);
		if (!strncmp(text, writes_more[i].name, len) && (text[len] == ' ' || !text[len]) &&
			!(!strncmp(text, "imul", 4) && last) && (writes_more[i].regs & ARG_BIT(r)))
			return true;
	}
	if (!last && (strstr(text, "mul ") || strstr(text, "div ")))
		return false; /* their only operand is read */
	if (last && strchr(last, ')'))
		return false; /* to memory */
	last = last ? last + 1 : strrchr(text, ' ');
	return last && names_register(last, r);
}

/* how far the stack pointer goes down */
static long moves_sp(const char *text)
{
	long by;

	if (!strncmp(text, "push", 4))
		return 8;
	if (!strncmp(text, "pop", 3))
		return -8;
	if (strstr(text, ",%rsp") && sscanf(text, "sub $%li,", &by) == 1)
		return by;
	if (strstr(text, ",%rsp") && sscanf(text, "add $%li,", &by) == 1)
		return -by;
	if (strstr(text, "(%rsp),%rsp") && sscanf(text, "lea %li(", &by) == 1)
		return -by;
	return 0;
}

static bool leaves(const char *text)
{
	return is_jump(text) || !strncmp(text, "call", 4) || !strncmp(text, "ret", 3) || !strncmp(text, "bnd", 3) ||
	       !strncmp(text, "syscall", 7) || !strncmp(text, "hlt", 3) || !strncmp(text, "ud", 2) ||
	       !strncmp(text, "int", 3) || !strncmp(text, "leave", 5);
}

struct judge {
	struct elf_file *e;
	struct listing *l;
	int functions, moved, stepped;
};

static void complain(const struct elf_symbol *s, const struct placement *p, const char *what, const char *text)
{
	fail_msg("%s at 0x%llx, place +0x%x: %s (%s)", s->name, (unsigned long long)s->vaddr, p->offset, what, text);
}

/* registers that hold the argument behind this instruction, as the text has it */
static u32 holders_behind(const char *text, u32 holders)
{
	char from[8] = "", to[8] = "";
	bool copy = sscanf(text, "mov %7[%a-z0-9],%7[%a-z0-9]", from, to) == 2 && !strchr(text, '(');
	bool copied = false;

	for (int r = 0; r < REGISTERS && copy; r++)
		copied |= (holders & ARG_BIT(r)) && !strncmp(from, register_names[r], strcspn(register_names[r], " "));
	for (int r = 0; r < REGISTERS; r++)
		if (writes_register(text, r))
			holders = copied ? holders | ARG_BIT(r) : holders & ~ARG_BIT(r);
	return holders;
}

static bool in_a_holder(u16 reg, u32 holders)
{
	int bytes;

	for (int r = 0; r < REGISTERS; r++)
		if ((holders & ARG_BIT(r)) && reg__offset(EM_X86_64, register_names[r] + 1,
						      strcspn(register_names[r] + 1, " "), &bytes) == reg)
			return true;
	return false;
}

static void judge_place(const struct judge *j, const struct elf_symbol *s, const struct placement *p, u32 need)
{
	const struct line *i = line_at(j->l, s->vaddr), *end = line_at(j->l, s->vaddr + p->offset);
	u32 holders[6] = {1, 2, 4, 8, 16, 32};
	long sp = 0;

	if (!i || !end)
		complain(s, p, "not at an instruction", "");
	for (; i < end; i++) {
		sp += moves_sp(i->text);
		if (leaves(i->text))
			complain(s, p, "control may not get there", i->text);
		for (int a = 0; a < 6; a++)
			holders[a] = holders_behind(i->text, holders[a]);
	}
	for (int a = 0; a < 6; a++)
		if (((need & ARG_BIT(a)) || p->reg[a] != REG_NONE) && !in_a_holder(p->reg[a], holders[a]))
			complain(s, p, "an argument is not where it should be", i->text);
	if (sp != (long)p->ret)
		complain(s, p, "distance to the return address", i->text);
	if (strncmp(i->text, "push", 4) && i->text[0] != 'j' && strncmp(i->text, "call", 4) && strcmp(i->text, "nop"))
		complain(s, p, "the kernel does not emulate it", i->text);
	if (p->offset && targeted(j->l, s->vaddr, s->vaddr + p->offset))
		complain(s, p, "a branch leads there", i->text);
}

static bool judge_symbol(const struct elf_symbol *s, void *arg)
{
	static const u32 needs[] = {0x3f, ARG_BIT(0)};
	struct judge *j = arg;

	if (s->type != STT_FUNC)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(needs); i++) {
		struct placement p;

		assert_int_equal(placement__of_symbol(j->e, s, needs[i], &p), 0);
		if (!p.stepped)
			judge_place(j, s, &p, needs[i]);
		j->functions += i == 1;
		j->moved += i == 1 && p.offset;
		j->stepped += i == 1 && p.stepped;
	}
	return true;
}

static bool judge_library(const char *path)
{
	struct elf_file e;
	struct listing l;
	struct judge j = {.e = &e, .l = &l};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	assert_int_equal(elf_file__open(&e, fd), 0);
	disassemble(path, &l);
	assert_int_equal(elf_file__each_symbol(&e, ELF_DYNSYM, judge_symbol, &j), 0);
	print_message("%s: %d functions, byte 0 serves %d, moved %d, stepped %d\n", path, j.functions,
		j.functions - j.moved - j.stepped, j.moved, j.stepped);
	assert_true(j.functions > 0);
	free(l.v);
	free(l.targets);
	elf_file__close(&e);
	close(fd);
	return true;
}

static void test_places_in_every_exported_function_hold_what_they_promise(void **state)
{
	static const char *const libs[] = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libSDL2-2.0.so.0",
		"libGLX.so.0", "libGL.so.1", "libEGL.so.1", "libGLX_mesa.so.0", "libEGL_mesa.so.0", "libgbm.so.1",
		"libglapi.so.0", "libvulkan.so.1", "libX11.so.6", "libxcb.so.1", "libjemalloc.so.2",
		"libmimalloc.so.2"};
	int done = 0;

	for (size_t i = 0; i < ARRAY_SIZE(libs); i++) {
		char path[128];

		snprintf(path, sizeof(path), "/lib/x86_64-linux-gnu/%s", libs[i]);
		if (judge_library(path))
			done++;
		else
			print_message("%s: not on this machine\n", libs[i]);
	}
	assert_true(done >= 2); /* libc and libm at the least */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_byte_is_taken_where_it_is_a_push),
		cmocka_unit_test(test_glibc_free_is_probed_at_its_first_branch),
		cmocka_unit_test(test_endbr64_and_long_nops_are_passed_over),
		cmocka_unit_test(test_distance_to_the_return_address_counts_what_was_pushed),
		cmocka_unit_test(test_written_argument_ends_the_search),
		cmocka_unit_test(test_argument_is_followed_into_the_register_that_it_is_copied_to),
		cmocka_unit_test(test_partly_and_implicitly_written_arguments_count_as_written),
		cmocka_unit_test(test_place_inside_a_loop_is_refused),
		cmocka_unit_test(test_nothing_behind_the_first_branch_is_taken),
		cmocka_unit_test(test_lost_stack_pointer_ends_the_search),
		cmocka_unit_test(test_place_lies_within_the_function_and_the_reach),
		cmocka_unit_test(test_branch_back_from_a_part_moved_out_of_line_is_seen),
		cmocka_unit_test(test_given_place_tells_which_arguments_are_live),
		cmocka_unit_test(test_garbage_is_survived),
		cmocka_unit_test(test_places_in_every_exported_function_hold_what_they_promise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
