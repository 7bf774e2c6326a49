// SPDX-License-Identifier: GPL-2.0-only
/* The kernel's symbol list: which function an address lies in, and what is no list of addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kallsyms.h"

static int file_of(const char *text)
{
	int fd = memfd_create("kallsyms", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void test_an_address_is_named_by_the_function_it_lies_in_and_by_the_first_of_its_names(void **state)
{
	struct kallsyms k;

	assert_int_equal(kallsyms__read(&k, file_of("ffffffffc0001000 t module_ioctl\t[vendor]\n"
						    "ffffffff81000100 T schedule\n"
						    "ffffffff81000100 T __pfx_other_name\n"
						    "ffffffff81000180 d some_data\n"
						    "ffffffff81000200 W weak_function\n")),
		0);
	assert_null(kallsyms__name(&k, 0xffffffff810000ff));
	assert_string_equal(kallsyms__name(&k, 0xffffffff81000100), "schedule");
	assert_string_equal(kallsyms__name(&k, 0xffffffff810001ff), "schedule");
	assert_string_equal(kallsyms__name(&k, 0xffffffff81000200), "weak_function");
	assert_string_equal(kallsyms__name(&k, 0xffffffffc0001010), "module_ioctl");
	/* no function is as long as the gap between the kernel and its modules */
	assert_null(kallsyms__name(&k, 0xffffffffc0000000));
	kallsyms__free(&k);
}

static void test_names_without_addresses_are_no_access(void **state)
{
	struct kallsyms k;

	assert_int_equal(
		kallsyms__read(&k, file_of("0000000000000000 T schedule\n0000000000000000 t other\n")), -EACCES);
	assert_null(kallsyms__name(&k, 0));
	kallsyms__free(&k);
	assert_int_equal(kallsyms__read(&k, file_of("")), -EACCES);
	kallsyms__free(&k);
	assert_int_equal(kallsyms__read(&k, -EPERM), -EPERM);
	kallsyms__free(&k);
}

static void test_lines_that_are_none_are_passed_over(void **state)
{
	char text[4096], *long_name = text + sizeof("ffffffff81000300 T ") - 1;
	struct kallsyms k;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	memcpy(text, "ffffffff81000300 T ", long_name - text);
	assert_int_equal(kallsyms__read(&k, file_of(text)), 0);
	assert_int_equal(strlen(kallsyms__name(&k, 0xffffffff81000300)), 511);
	kallsyms__free(&k);
	assert_int_equal(kallsyms__read(&k, file_of("garbage\n\n T\nffffffff81000100\nffffffff81000100 T f\n")), 0);
	assert_int_equal(k.n, 1);
	kallsyms__free(&k);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_an_address_is_named_by_the_function_it_lies_in_and_by_the_first_of_its_names),
	cmocka_unit_test(test_names_without_addresses_are_no_access),
	cmocka_unit_test(test_lines_that_are_none_are_passed_over),
};

int main(void)
{
	return cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL);
}
