/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What the game's rings say is believed only as far as it can be a call.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../../preload/area.h"
#include "events_desc.h"
#include "preload.h"

#define NOW 0x123456789abcULL

static struct preload_record ring[PRELOAD_RECORDS];

static struct preload_record record(u64 what, u64 fn, u64 how, u64 ticks)
{
	return (struct preload_record){what | fn << 48 | (ticks >> 32 & 0xff) << 56, how | ticks << 32};
}

static void test_a_call_is_read_with_its_time_of_full_width(void **state)
{
	struct preload_call c;
	u64 at = PRELOAD_RECORDS * 3; /* the ring goes round */

	ring[0] = record(0x7fff12345678, ALLOC_CALLOC, 4096, NOW - 5000);
	assert_true(preload__decode(ring, &at, at + 1, NOW, &c));
	assert_int_equal(at, PRELOAD_RECORDS * 3 + 1);
	assert_int_equal(c.ticks, NOW - 5000);
	assert_int_equal(c.caller, 0x7fff12345678);
	assert_int_equal(c.size, 4096);
	assert_int_equal(c.fn, ALLOC_CALLOC);
}

static void test_a_time_from_before_the_counters_low_half_went_round_is_in_the_past(void **state)
{
	u64 now = 5ULL << 40 | 3, at = 0;
	struct preload_call c;

	ring[0] = record(1, ALLOC_MALLOC, 1, now - 10);
	assert_true(preload__decode(ring, &at, 1, now, &c));
	assert_int_equal(c.ticks, now - 10);
}

static void test_a_time_a_moment_after_now_is_now(void **state)
{
	struct preload_call c;
	u64 at = 0;

	ring[0] = record(1, ALLOC_MALLOC, 1, NOW + 100);
	assert_true(preload__decode(ring, &at, 1, NOW, &c));
	assert_int_equal(c.ticks, NOW);
}

static void test_more_belongs_to_the_call_behind_it_and_is_none_without_it(void **state)
{
	struct preload_call c;
	u64 at = PRELOAD_RECORDS - 1;

	ring[PRELOAD_RECORDS - 1] = record(0xabcdef, PRELOAD_MORE, 2, NOW);
	ring[0] = record(0x1000, ALLOC_REALLOC, 7, NOW);
	assert_true(preload__decode(ring, &at, PRELOAD_RECORDS + 1, NOW, &c));
	assert_int_equal(at, PRELOAD_RECORDS + 1);
	assert_int_equal(c.size, (2ULL << 32) + 7);
	assert_int_equal(c.block, 0xabcdef);
	at = PRELOAD_RECORDS - 1;
	assert_false(preload__decode(ring, &at, PRELOAD_RECORDS, NOW, &c));
	assert_int_equal(at, PRELOAD_RECORDS);
}

static void test_any_bytes_move_on_and_give_a_known_function_or_nothing(void **state)
{
	struct preload_call c;

	srand(1);
	for (size_t i = 0; i < PRELOAD_RECORDS * sizeof(ring[0]); i++)
		((u8 *)ring)[i] = (u8)rand();
	for (u64 at = 0, before; at < PRELOAD_RECORDS;) {
		bool is_call;

		before = at;
		is_call = preload__decode(ring, &at, PRELOAD_RECORDS, NOW, &c);
		assert_in_range(at, before + 1, before + 2);
		assert_true(!is_call || (c.fn <= ALLOC_DELETE_ARRAY && c.ticks <= NOW));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_call_is_read_with_its_time_of_full_width),
		cmocka_unit_test(test_a_time_from_before_the_counters_low_half_went_round_is_in_the_past),
		cmocka_unit_test(test_a_time_a_moment_after_now_is_now),
		cmocka_unit_test(test_more_belongs_to_the_call_behind_it_and_is_none_without_it),
		cmocka_unit_test(test_any_bytes_move_on_and_give_a_known_function_or_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
