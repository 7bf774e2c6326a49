// SPDX-License-Identifier: GPL-2.0-only
/* The Vulkan present function of a running process, found through a made-up loader's tables in its memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <ctype.h>
#include "eh_frame.h"
#include "regs.h"
#include "vulkan.h"
#include "vulkan_fixture.h"

static char why[4096];
static struct site_list list;
static struct vulkan_scan scan;
static struct objects objects;

/* ---- the slot ---- */

static int slot(const char *code, size_t n)
{
	u64 v = 0;
	int err = vulkan__slot((const u8 *)code, n, &v);

	return err ? err : (int)v;
}
#define SLOT(code) slot(code, sizeof(code) - 1)

static void test_slot_is_read_from_each_form_that_compilers_give_the_call(void **state)
{
	assert_int_equal(SLOT("\x48\x8b\x07\xff\xa0\xf8\x05\x00\x00"), 0x5f8); /* mov (%rdi),%rax; jmp *0x5f8(%rax) */
	assert_int_equal(SLOT("\x48\x8b\x07\xff\x90\xf8\x05\x00\x00\xc3"), 0x5f8); /* …; call *0x5f8(%rax) */
	/* mov (%rdi),%rax; mov 0x5f8(%rax),%rax; jmp *%rax */
	assert_int_equal(SLOT("\x48\x8b\x07\x48\x8b\x80\xf8\x05\x00\x00\xff\xe0"), 0x5f8);
	/* mov %rdi,%rbx; mov (%rbx),%rcx; mov 0x40(%rcx),%rdx; call *%rdx */
	assert_int_equal(SLOT("\x48\x89\xfb\x48\x8b\x0b\x48\x8b\x51\x40\xff\xd2"), 0x40);
	/* call helper(%rdi); call *0x5f8(%rax) */
	assert_int_equal(SLOT("\xe8\x00\x01\x00\x00\xff\x90\xf8\x05\x00\x00"), 0x5f8);
}

static void test_code_that_calls_through_no_table_has_no_slot(void **state)
{
	assert_int_equal(SLOT("\xff\xa0\xf8\x05\x00\x00"), -ENOENT);                 /* jmp *0x5f8(%rax): of whom? */
	assert_int_equal(SLOT("\x48\x8b\x06\xff\xa0\xf8\x05\x00\x00"), -ENOENT);     /* mov (%rsi),%rax; … */
	assert_int_equal(SLOT("\x48\x8b\x47\x08\xff\xa0\xf8\x05\x00\x00"), -ENOENT); /* mov 8(%rdi),%rax; … */
	assert_int_equal(SLOT("\x48\x8b\x07\x31\xc0\xff\xa0\xf8\x05\x00\x00"), -ENOENT); /* xor %eax,%eax between */
	assert_int_equal(SLOT("\x48\x8b\x07\xff\xa0\xf9\x05\x00\x00"), -ENOENT);         /* not a multiple of 8 */
	assert_int_equal(SLOT("\x48\x8b\x07\xff\xa0\xf8\xff\xff\xff"), -ENOENT);         /* before the table */
	assert_int_equal(SLOT(""), -ENOENT);
}

static void test_any_bytes_end_and_give_no_slot_out_of_bounds(void **state)
{
	u8 code[256];
	u32 seed = 1;

	for (int n = 0; n < 20000; n++) {
		u64 v = 8;

		for (size_t i = 0; i < sizeof(code); i++) {
			seed = seed * 1664525 + 1013904223;
			code[i] = (u8)(seed >> 24);
		}
		memcpy(code, "\x48\x8b\x07", 3);
		if (!vulkan__slot(code, sizeof(code), &v))
			assert_true(v >= 8 && v < 65536 && v % 8 == 0);
	}
}

/* ---- running games ---- */

static int find(pid_t pid)
{
	int n;

	sites__free(&list);
	objects__free(&objects);
	why[0] = 0;
	assert_int_equal(objects__read(&objects, (u32)pid), 0);
	n = vulkan__sites(&list, &objects, &scan, why, sizeof(why));
	return n;
}

static pid_t start(const char *name, const char *body)
{
	return fixture__run(vulkan__game(name, body, ""), name);
}

static void expect(const char *name, const char *body, int sites, const char *file)
{
	pid_t pid = start(name, body);
	int n = find(pid);

	fixture__kill(pid);
	if (n != sites)
		fail_msg("%s: %d sites instead of %d: %s", name, n, sites, why);
	if (file)
		assert_non_null(strstr(list.files[list.sites[0].file].path, file));
}

static void test_slot_is_read_from_loaders_of_every_optimisation(void **state)
{
	static const char *const flags[] = {"-O0", "-O1", "-O2", "-O3", "-Os", "-O2 -fcf-protection=none", "-O0 -fPIE",
		"-O2 -fno-inline", "-O1 -fstack-protector-all", "-O2 -fno-omit-frame-pointer"};
	pid_t pid;

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		vulkan__library("libvulkan.so.1", flags[i], VK_LOADER);
		pid = start("game", "d = device(a_core(), a_present());");
		if (find(pid) != 1)
			fail_msg("loader built with %s: %s", flags[i], why);
		fixture__kill(pid);
	}
	vulkan__libraries();
}

static void test_site_is_the_drivers_function_with_the_swapchain_as_stream(void **state)
{
	const struct site *s;
	int bytes;

	expect("game", "d = device(a_core(), a_present());", 1, "libdriver_a.so");
	s = &list.sites[0];
	assert_int_equal(s->desc.what, PROBE_FRAME);
	assert_memory_equal(s->label, "vulkan:libdriver_a.so+0x", 24);
	assert_int_equal(strtoull(strchr(s->label, '+') + 1, NULL, 16), s->offset);
	assert_false(s->stepped); /* the je behind the entry, not the mov at it */
	assert_int_equal(s->desc.args[0].from, ARG_NONE);
	assert_int_equal(s->desc.args[1].from, ARG_MEM_MEM);
	assert_int_equal(s->desc.args[1].value, 40);
	assert_int_equal(s->desc.args[1].reg, reg__offset(EM_X86_64, "r8", 2, &bytes));
	assert_int_equal(scan.tables, 1);
	assert_false(scan.cut);
}

static void test_devices_of_one_driver_share_a_site_and_drivers_have_their_own(void **state)
{
	expect("same", "for (int i = 0; i < 5; i++) device(a_core(), a_present());", 1, "libdriver_a.so");
	assert_int_equal(scan.tables, 5);
	expect("two", "device(a_core(), a_present()); device(b_core(), b_present());", 2, NULL);
}

static void test_under_a_layer_only_the_layers_function_is_taken(void **state)
{
	expect("layer", "d = device(a_core(), layer_present(a_present()));", 1, "liblayer.so");
}

static void test_no_device_and_a_device_that_cannot_present_are_told_apart(void **state)
{
	expect("none", "", 0, NULL);
	assert_non_null(strstr(why, "no Vulkan device"));
	expect("compute", "d = device(a_core(), 0);", 0, NULL);
	assert_non_null(strstr(why, "cannot present"));
}

static void test_present_function_outside_all_files_is_said(void **state)
{
	expect("jit",
		"d = device(a_core(), mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, "
		"-1, 0));",
		0, NULL);
	assert_non_null(strstr(why, "code that is in no file"));
	expect("nowhere", "d = device(a_core(), (void *)0x123456789000);", 0, NULL);
	expect("data", "d = device(a_core(), chains);", 0, NULL); /* of a file, but no code */
}

static void test_the_mark_in_garbage_is_no_table(void **state)
{
	/* everywhere, and behind it neither code nor anything */
	expect("marks", "uint64_t *m = malloc(1 << 20); for (int i = 0; i < 1 << 17; i++) m[i] = MAGIC;", 0, NULL);
	/* a table whose functions lead nowhere: one slot would be code by chance */
	expect("chance", "d = device((void *)16, a_present());", 0, NULL);
	/* the mark in the last word of a mapping, with nothing behind it */
	expect("edge",
		"char *m = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); munmap(m + 4096, "
		"4096); *(uint64_t *)(m + 4088) = MAGIC;",
		0, NULL);
	/* a table cut short by the end of its mapping: the slot is not there any more */
	expect("short",
		"char *m = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); munmap(m + 4096, "
		"4096); d = device(a_core(), a_present()); memcpy(m + 4096 - 1024, d, 1024); memset(d, 0, sizeof(*d));",
		0, NULL);
	/* and with all that about, the true one is found */
	expect("amid",
		"uint64_t *m = malloc(1 << 20); for (int i = 0; i < 1 << 17; i++) m[i] = MAGIC; d = device(a_core(), "
		"a_present());",
		1, "libdriver_a.so");
}

static void test_table_in_shared_memory_is_not_believed(void **state)
{
	expect("shared",
		"table *m = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0); d = "
		"device(a_core(), a_present()); memcpy(m, d, sizeof(*d)); memset(d, 0, sizeof(*d));",
		0, NULL);
}

static u64 resident_kib(pid_t pid)
{
	char path[64], line[128];
	u64 kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "VmRSS:", 6))
			kib = strtoull(line + 6, NULL, 10);
	fclose(f);
	return kib;
}

static void test_memory_that_the_game_never_touched_stays_untouched(void **state)
{
	pid_t pid = start("large",
		"mmap(0, 1 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0); d = "
		"device(a_core(), a_present());");
	u64 before = resident_kib(pid);

	assert_int_equal(find(pid), 1);
	assert_in_range(resident_kib(pid), before, before + 256); /* glibc's own pages come and go */
	assert_true(scan.bytes < 16 << 20);
	fixture__kill(pid);
}

static void test_loader_that_is_no_loader_is_said(void **state)
{
	vulkan__library("libvulkan.so.1", "-O2",
		VK_TYPES
		"int vkQueuePresentKHR(void *q, void *i) { return 0; }\n"
		"int vkCreateDevice(table **d, void *c, void *p) { *d = calloc(1, sizeof(table)); return 0; }\n");
	expect("odd", "d = device(a_core(), a_present());", 0, NULL);
	assert_non_null(strstr(why, "of no known form"));
	vulkan__libraries();
}

/* ---- how long functions are ---- */

static bool compare_size(const struct elf_symbol *s, void *arg)
{
	struct {
		struct elf_file *e;
		int same, other, absent;
	} *c = arg;
	u64 size;

	if (s->type != STT_FUNC || !s->size)
		return true;
	if (eh_frame__function(c->e, s->vaddr, &size))
		c->absent++;
	else if (size == s->size)
		c->same++;
	else
		c->other++;
	if (!eh_frame__function(c->e, s->vaddr + 1, &size) && s->size > 1)
		c->other++; /* no function begins there */
	return true;
}

static void test_unwind_tables_know_where_functions_begin_and_end(void **state)
{
	static const char *const files[] = {"/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libm.so.6"};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct elf_file e;
		struct {
			struct elf_file *e;
			int same, other, absent;
		} c = {&e, 0, 0, 0};
		int fd = open(files[i], O_RDONLY | O_CLOEXEC);

		assert_int_equal(elf_file__open(&e, fd), 0);
		assert_int_equal(elf_file__each_symbol(&e, ELF_DYNSYM, compare_size, &c), 0);
		assert_true(c.same > 500);
		/* functions written by hand have several entries, or none of it */
		if (c.other > c.same / 50 || c.absent > c.same / 20)
			fail_msg("%s: %d the same, %d other, %d absent", files[i], c.same, c.other, c.absent);
		elf_file__close(&e);
		close(fd);
	}
}

static int setup(void **state)
{
	if (fixture__setup(state))
		return -1;
	vulkan__libraries();
	return 0;
}

static int teardown(void **state)
{
	sites__free(&list);
	objects__free(&objects);
	return fixture__teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slot_is_read_from_each_form_that_compilers_give_the_call),
		cmocka_unit_test(test_code_that_calls_through_no_table_has_no_slot),
		cmocka_unit_test(test_any_bytes_end_and_give_no_slot_out_of_bounds),
		cmocka_unit_test(test_slot_is_read_from_loaders_of_every_optimisation),
		cmocka_unit_test(test_site_is_the_drivers_function_with_the_swapchain_as_stream),
		cmocka_unit_test(test_devices_of_one_driver_share_a_site_and_drivers_have_their_own),
		cmocka_unit_test(test_under_a_layer_only_the_layers_function_is_taken),
		cmocka_unit_test(test_no_device_and_a_device_that_cannot_present_are_told_apart),
		cmocka_unit_test(test_present_function_outside_all_files_is_said),
		cmocka_unit_test(test_the_mark_in_garbage_is_no_table),
		cmocka_unit_test(test_table_in_shared_memory_is_not_believed),
		cmocka_unit_test(test_memory_that_the_game_never_touched_stays_untouched),
		cmocka_unit_test(test_loader_that_is_no_loader_is_said),
		cmocka_unit_test(test_unwind_tables_know_where_functions_begin_and_end),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
