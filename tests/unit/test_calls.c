// SPDX-License-Identifier: GPL-2.0-only
/* Call chains in the model: what a recording says of them is taken only where it makes sense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "model.h"
#include "where.h"

static void add_call(struct model *m, u32 id, u32 caller, u64 addr, u64 flags)
{
	struct ev_call e = {.hdr = {.kind = EV_CALL, .words = sizeof(e) / 8},
		.id = id,
		.caller = caller,
		.addr = addr,
		.flags = flags};

	assert_int_equal(model__event(m, &e.hdr), 0);
}

static void add_stack(struct model *m, u64 ts, u32 tid, u32 chain)
{
	struct ev_stack e = {.hdr = {.ts = ts, .tid = tid, .kind = EV_STACK, .words = sizeof(e) / 8}, .chain = chain};

	assert_int_equal(model__event(m, &e.hdr), 0);
}

static bool count(const struct where_step *s, void *arg)
{
	++*(u32 *)arg;
	return false;
}

static u32 length(const struct model *m, u32 chain)
{
	u32 n = 0;

	where__each(m, chain, count, &n);
	return n;
}

static void test_a_chain_leads_from_the_innermost_call_to_the_outermost(void **state)
{
	struct model *m = model__new();

	add_call(m, 1, 0, 0x10, 0);
	add_call(m, 2, 1, 0x20, 0);
	add_call(m, 3, 1, 0x30, 0);
	assert_int_equal(length(m, 2), 2);
	assert_int_equal(length(m, 3), 2);
	assert_int_equal(model__call(m, 3)->addr, 0x30);
	assert_int_equal(model__call(m, model__call(m, 3)->caller)->addr, 0x10);
	model__free(m);
}

/* or a chain would never end */
static void test_a_call_that_names_itself_or_a_later_one_as_its_caller_is_left_out(void **state)
{
	struct model *m = model__new();

	add_call(m, 1, 1, 0x10, 0);
	assert_null(model__call(m, 1));
	add_call(m, 1, 2, 0x10, 0);
	assert_null(model__call(m, 1));
	add_call(m, 1, 0, 0x10, 0);
	add_call(m, 4000000000u, 1, 0x20, 0); /* no memory for a number */
	assert_null(model__call(m, 4000000000u));
	assert_null(model__call(m, 2));
	assert_null(model__call(m, 0));
	model__free(m);
}

static void test_a_chain_belongs_to_the_event_of_the_same_thread_and_moment_only(void **state)
{
	struct ev_hdr same = {.ts = 50, .tid = 7}, later = {.ts = 51, .tid = 7}, other = {.ts = 50, .tid = 8};
	struct model *m = model__new();

	add_call(m, 1, 0, 0x10, 0);
	add_stack(m, 50, 7, 1);
	assert_int_equal(model__chain(m, &same), 1);
	assert_int_equal(model__chain(m, &later), 0);
	assert_int_equal(model__chain(m, &other), 0);
	add_stack(m, 51, 7, 2); /* there is no such call */
	assert_int_equal(model__chain(m, &later), 0);
	model__free(m);
}

static void test_a_very_deep_chain_is_walked_to_a_bound(void **state)
{
	struct model *m = model__new();

	for (u32 i = 1; i <= 100000; i++)
		add_call(m, i, i - 1, 0x10, 0);
	assert_true(length(m, 100000) <= 1024);
	model__free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_chain_leads_from_the_innermost_call_to_the_outermost),
		cmocka_unit_test(test_a_call_that_names_itself_or_a_later_one_as_its_caller_is_left_out),
		cmocka_unit_test(test_a_chain_belongs_to_the_event_of_the_same_thread_and_moment_only),
		cmocka_unit_test(test_a_very_deep_chain_is_walked_to_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
