/* SPDX-License-Identifier: GPL-2.0-only */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "merge.h"

struct rec {
	struct ev_hdr hdr;
	u64 id;
};

static void push(struct merge *m, u64 ts, u16 cpu, u64 id)
{
	struct rec r = {.hdr = {.ts = ts, .cpu = cpu, .kind = EV_FRAME, .words = sizeof(r) / 8}, .id = id};

	assert_int_equal(merge__push(m, &r.hdr), 0);
}

static u64 pop(struct merge *m, bool flush)
{
	const struct rec *r = (const struct rec *)merge__pop(m, flush);

	return r ? r->id : 0;
}

static void test_merge_orders_by_time(void **state)
{
	struct merge *m = merge__new(1000, 1 << 20);

	push(m, 30, 0, 3);
	push(m, 10, 0, 1);
	push(m, 20, 0, 2);
	push(m, 40, 0, 4);
	assert_int_equal(pop(m, true), 1);
	assert_int_equal(pop(m, true), 2);
	assert_int_equal(pop(m, true), 3);
	assert_int_equal(pop(m, true), 4);
	assert_int_equal(pop(m, true), 0);
	merge__free(m);
}

static void test_merge_orders_equal_timestamps_by_cpu_then_arrival(void **state)
{
	struct merge *m = merge__new(1000, 1 << 20);

	push(m, 10, 2, 4);
	push(m, 10, 1, 2);
	push(m, 10, 2, 5);
	push(m, 10, 1, 3);
	push(m, 10, 0, 1);
	assert_int_equal(pop(m, true), 1);
	assert_int_equal(pop(m, true), 2);
	assert_int_equal(pop(m, true), 3);
	assert_int_equal(pop(m, true), 4);
	assert_int_equal(pop(m, true), 5);
	merge__free(m);
}

static void test_merge_holds_back_for_the_window(void **state)
{
	struct merge *m = merge__new(100, 1 << 20);

	push(m, 1000, 0, 1);
	push(m, 1099, 0, 2);
	assert_int_equal(pop(m, false), 0);
	push(m, 1100, 0, 3);
	assert_int_equal(pop(m, false), 1);
	assert_int_equal(pop(m, false), 0);
	assert_int_equal(pop(m, true), 2);
	merge__free(m);
}

static void test_merge_gives_out_late_records_at_once_and_counts_them(void **state)
{
	struct merge *m = merge__new(100, 1 << 20);

	push(m, 1000, 0, 1);
	push(m, 2000, 0, 2);
	assert_int_equal(pop(m, false), 1);
	push(m, 500, 0, 3);
	assert_int_equal(pop(m, false), 3);
	assert_int_equal(merge__late(m), 1);
	assert_int_equal(pop(m, false), 0);
	merge__free(m);
}

static void test_merge_holds_no_more_than_it_may(void **state)
{
	struct merge *m = merge__new(UINT64_MAX, 100 * sizeof(struct rec));
	u64 i, out = 0;

	for (i = 1; i <= 100000; i++) {
		push(m, i, 0, i);
		while (pop(m, false))
			out++;
		assert_in_range(i - out, 0, 100);
	}
	merge__free(m);
}

/* pseudo-random and adversarial arrival orders against the definition: sorted by (ts, cpu, arrival) */
static void check_order(u64 (*ts_of)(u64 i), u64 n)
{
	struct merge *m = merge__new(UINT64_MAX, SIZE_MAX);
	const struct rec *r;
	u64 i, out = 0, last_ts = 0, last_order = 0;

	for (i = 0; i < n; i++)
		push(m, ts_of(i), (u16)(i % 4), i);
	while ((r = (const struct rec *)merge__pop(m, true))) {
		u64 order = (u64)r->hdr.cpu << 48 | r->id;

		assert_int_equal(r->hdr.ts, ts_of(r->id));
		assert_true(r->hdr.ts > last_ts || (r->hdr.ts == last_ts && (order > last_order || !out)));
		last_ts = r->hdr.ts;
		last_order = order;
		out++;
	}
	assert_int_equal(out, n);
	merge__free(m);
}

static u64 backwards(u64 i)
{
	return 1000000 - i;
}
static u64 scattered(u64 i)
{
	return i * 2654435761u % 5000;
}
static u64 nearly_sorted(u64 i)
{
	return i / 4 * 10 + (i % 7 == 0 ? 0 : 25);
}
static u64 far_future_first(u64 i)
{
	return i ? i : UINT64_MAX;
}

static void test_merge_sorts_any_arrival_order(void **state)
{
	check_order(backwards, 200000);
	check_order(scattered, 200000);
	check_order(nearly_sorted, 200000);
	check_order(far_future_first, 200000);
}

/* The rings of many CPUs, emptied one after the other each 5 ms; one record in 97 was held up on its way in. */
#define STREAMS    128u
#define PASS       5000u /* records of all streams */
#define PASSES     200u
#define MAX_BYTES  (1u << 20)
#define ROOM_BYTES (8u << 20) /* what is held, the order of each, and of each stream two blocks that are not full */

static u64 ts_in_stream(u64 pass, u64 stream, u64 k)
{
	u64 ts = (pass * PASS + k * STREAMS + stream) * 1000;

	return 1000000 + ts - (k % 97 == 96 ? 300000 : 0);
}

static void test_merge_of_128_streams_is_in_order_and_in_bounded_memory(void **state)
{
	struct merge *m = merge__new(2 * PASS * 1000, MAX_BYTES);
	size_t before = mallinfo2().uordblks + mallinfo2().hblkhd, most = 0;
	u64 in = 0, out = 0, last = 0;
	const struct ev_hdr *r;

	for (u64 pass = 0; pass <= PASSES; pass++) {
		for (u64 s = 0; s < STREAMS && pass < PASSES; s++)
			for (u64 k = 0; k < PASS / STREAMS; k++)
				push(m, ts_in_stream(pass, s, k), (u16)s, ++in);
		while ((r = merge__pop(m, pass == PASSES))) {
			assert_true(r->ts >= last);
			last = r->ts;
			out++;
		}
		most = max(most, mallinfo2().uordblks + mallinfo2().hblkhd - before);
	}
	assert_int_equal(merge__late(m), 0);
	assert_int_equal(out, in);
	assert_true(most < ROOM_BYTES); /* where a sanitizer allocates it is 0 */
	merge__free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge_orders_by_time),
		cmocka_unit_test(test_merge_orders_equal_timestamps_by_cpu_then_arrival),
		cmocka_unit_test(test_merge_holds_back_for_the_window),
		cmocka_unit_test(test_merge_gives_out_late_records_at_once_and_counts_them),
		cmocka_unit_test(test_merge_holds_no_more_than_it_may),
		cmocka_unit_test(test_merge_sorts_any_arrival_order),
		cmocka_unit_test(test_merge_of_128_streams_is_in_order_and_in_bounded_memory),
	};

	return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
