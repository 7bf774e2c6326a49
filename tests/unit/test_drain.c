// SPDX-License-Identifier: GPL-2.0-only
/* What is counted of records on their way from the ring into the recording. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drain.h"
#include "recording.h"

static void take_switch(struct drain *d, u16 cpu, u32 from, u32 to)
{
	static u64 ts = 1000;
	struct drain_ring ring = {.drain = d};
	struct ev_switch e = {.hdr = {.ts = ++ts, .tid = from, .kind = EV_SWITCH, .cpu = cpu, .words = sizeof(e) / 8},
		.next_tid = to};

	assert_int_equal(drain__take(&ring, &e, sizeof(e)), 0);
}

static void test_a_switch_that_was_not_told_is_seen_at_the_next(void **state)
{
	struct recording_writer w;
	struct drain d = {.out = &w};

	assert_int_equal(recording__create(&w, memfd_create("drain", MFD_CLOEXEC), 1), 0);
	take_switch(&d, 0, 10, 11); /* what came before is not known */
	take_switch(&d, 1, 20, 0);
	take_switch(&d, 0, 11, 12);
	take_switch(&d, 1, 0, 20);
	assert_int_equal(d.unseen_switches, 0);
	take_switch(&d, 0, 13, 10); /* but 12 had come */
	assert_int_equal(d.unseen_switches, 1);
	take_switch(&d, 0, 10, 12);
	take_switch(&d, DRAIN_CPUS, 1, 2);
	take_switch(&d, DRAIN_CPUS, 3, 4);
	assert_int_equal(d.unseen_switches, 1);
	assert_int_equal(recording__finish(&w, true), 0);
}

static void test_a_record_beyond_the_slice_stays(void **state)
{
	struct recording_writer w;
	struct drain d = {.out = &w, .until = 100};
	struct drain_ring ring = {.drain = &d};
	struct ev_exit e = {.hdr = {.ts = 100, .kind = EV_EXIT, .words = sizeof(e) / 8}};

	assert_int_equal(recording__create(&w, memfd_create("drain", MFD_CLOEXEC), 1), 0);
	assert_int_equal(drain__take(&ring, &e, sizeof(e)), 0);
	e.hdr.ts = 101;
	assert_int_equal(drain__take(&ring, &e, sizeof(e)), 1);
	assert_int_equal(d.records, 1);
	assert_int_equal(recording__finish(&w, true), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_switch_that_was_not_told_is_seen_at_the_next),
		cmocka_unit_test(test_a_record_beyond_the_slice_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
