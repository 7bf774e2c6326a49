// SPDX-License-Identifier: GPL-2.0-only
/* The compilation units of a module, one after the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <dwarf.h>

#include "build_fixture.h"
#include "units.h"

#define BIAS 0x7f0000000000ULL

struct seen {
	char names[256]; /* of the units, each followed by a blank */
	u64 bias;
	u32 n;
	int answer;
};

static int see(Dwarf_Die *unit, u64 bias, void *arg)
{
	struct seen *s = arg;
	Dwarf_Attribute attr;
	const char *name = dwarf_formstring(dwarf_attr(unit, DW_AT_name, &attr));
	size_t len = strlen(s->names);

	assert_int_equal(dwarf_tag(unit), DW_TAG_compile_unit);
	name = name ? strrchr(name, '/') ? strrchr(name, '/') + 1 : name : "?";
	snprintf(s->names + len, sizeof(s->names) - len, "%s ", name);
	s->bias = bias;
	s->n++;
	return s->answer;
}

static int each(const char *name, struct seen *s)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf, .find_debuginfo = dwfl_standard_find_debuginfo};
	Dwfl *dwfl = dwfl_begin(&callbacks);
	Dwfl_Module *mod;
	int err;

	dwfl_report_begin(dwfl);
	mod = dwfl_report_elf(dwfl, name, fixture__path(name), -1, BIAS, true);
	dwfl_report_end(dwfl, NULL, NULL);
	assert_non_null(mod);
	err = units__each(mod, see, s);
	dwfl_end(dwfl);
	return err;
}

static void build(const char *name, const char *more)
{
	char flags[512];

	fixture__write("b.c", "int b(void) { return 2; }\n", 26);
	fixture__write("c.c", "int c(void) { return 3; }\n", 26);
	snprintf(flags, sizeof(flags), "-shared -fPIC -nostdlib %s %s %s", more, fixture__path("b.c"),
		fixture__path("c.c"));
	fixture__build(name, flags, "int a(void) { return 1; }\n");
}

static void test_every_unit_is_seen_once_with_the_bias_of_its_module(void **state)
{
	struct seen s = {.answer = 1};

	build("three", "-g");
	assert_int_equal(each("three", &s), 0);
	assert_string_equal(s.names, "b.c c.c three.src ");
	assert_true(s.bias == BIAS);
}

static void test_compressed_and_older_debug_data_is_read_as_well(void **state)
{
	static const char *const flags[] = {"-g -gz=zlib", "-gdwarf-2", "-gdwarf-3", "-gdwarf-4 -fdebug-types-section"};

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		struct seen s = {.answer = 1};

		build("other", flags[i]);
		assert_int_equal(each("other", &s), 0);
		assert_string_equal(s.names, "b.c c.c other.src ");
	}
}

static void test_a_module_without_debug_data_has_no_units(void **state)
{
	struct seen s = {.answer = 1};

	build("none", "-g0 -s");
	assert_int_equal(each("none", &s), 0);
	assert_int_equal(s.n, 0);
}

static void test_an_error_ends_it_and_is_returned(void **state)
{
	struct seen s = {.answer = -ENOMEM};

	build("three", "-g");
	assert_int_equal(each("three", &s), -ENOMEM);
	assert_int_equal(s.n, 1);
}

/* six units of 6 MiB each: what libdw knows of them is thrown away meanwhile, and the next ones are right still */
static void test_units_that_outgrow_what_is_kept_are_all_seen(void **state)
{
	static const char source[] =
		".section .debug_abbrev\n.uleb128 1,0x11\n.byte 0\n.uleb128 3,8,0,0\n.byte 0\n.section .debug_info\n"
		".irp n,u0,u1,u2,u3,u4,u5\n\\n\\(): .long end\\n-begin\\n\nbegin\\n: .short 4\n.long 0\n.byte 8\n"
		".uleb128 1\n.asciz \"\\n\"\n.fill 6<<20,1,0\nend\\n:\n.endr\n";
	struct seen s = {.answer = 1};

	fixture__build("large", "-DASM -shared -nostdlib", source);
	assert_int_equal(each("large", &s), 0);
	assert_string_equal(s.names, "u0 u1 u2 u3 u4 u5 ");
}

/* The second unit's length is wrong: the first is seen, and it ends. */
static void test_units_of_a_wrong_length_end_it(void **state)
{
	static const char *const lengths[] = {"0", "1", "3", "0x7fffffff", "0xfffffff0", "0xfffffffe"};

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct seen s = {.answer = 1};
		char source[512];

		snprintf(source, sizeof(source),
			".section .debug_abbrev\n.uleb128 1,0x11\n.byte 0\n.uleb128 3,8,0,0\n.byte 0\n"
			".section .debug_info\n.long end-begin\nbegin: .short 4\n.long 0\n.byte 8\n.uleb128 1\n"
			".asciz \"good\"\nend: .long %s\n.short 4\n.long 0\n.byte 8\n.uleb128 1\n.asciz \"bad\"\n",
			lengths[i]);
		fixture__build("wrong", "-DASM -shared -nostdlib", source);
		assert_int_equal(each("wrong", &s), 0);
		assert_int_equal(strncmp(s.names, "good ", 5), 0);
		assert_in_range(s.n, 1, 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_unit_is_seen_once_with_the_bias_of_its_module),
		cmocka_unit_test(test_compressed_and_older_debug_data_is_read_as_well),
		cmocka_unit_test(test_a_module_without_debug_data_has_no_units),
		cmocka_unit_test(test_an_error_ends_it_and_is_returned),
		cmocka_unit_test(test_units_that_outgrow_what_is_kept_are_all_seen),
		cmocka_unit_test(test_units_of_a_wrong_length_end_it),
	};
	return cmocka_run_group_tests(tests, fixture__setup, fixture__teardown);
}
