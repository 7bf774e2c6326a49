/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>

#include "explain_fixture.h"
#include "partition.h"
#include "strings.h"

/* The cut of thread 100 between two times in ms, as "cause ns, cause ns, …" */
static void check_cut(const char *text, u64 from_ms, u64 to_ms, const char *want)
{
	struct timeline t;
	struct partition p = {};
	struct model *m = model__new();
	struct recording r;
	const struct ev_hdr *rec;
	struct str got = {};

	timeline__init(&t);
	assert_int_equal(recording__open_fd(&r, recfile__from_string(text)), 0);
	while (recording__next(&r, &rec) == 1) {
		assert_int_equal(model__event(m, rec), 0);
		assert_int_equal(timeline__event(&t, m, rec), 0);
	}
	assert_int_equal(partition__cut(&p, &t, timeline__line(&t, 100), from_ms * 1000000, to_ms * 1000000), 0);
	str__add(&got, "");
	for (u32 i = 0; i < p.n; i++)
		str__fmt(&got, "%s%s %g", i ? ", " : "", cause_names[p.pieces[i].cause],
			(p.pieces[i].end - p.pieces[i].start) / 1e6);
	assert_string_equal(got.s, want);
	str__free(&got);
	partition__free(&p);
	timeline__free(&t);
	model__free(m);
	recording__close(&r);
}

static void test_thread_of_which_nothing_is_known_ran_code(void **state)
{
	check_cut("1ms 7 0 irq dur=1us irq=3\n", 0, 10, "code 10");
}

static void test_fault_inside_a_read_is_a_fault(void **state)
{
	check_cut("1ms 0 0 switch next_tid=100\n"
		  "5ms 100 0 fault dur=2ms addr=0 flags=0\n"
		  "6ms 100 0 file_read dur=4ms mode=0x8000 ret=1 sys=read\n",
		1, 7, "code 1, file_read 1, page_fault 2, file_read 1, code 1");
}

static void test_ticks_that_are_missing_tell_that_the_cpu_did_not_run(void **state)
{
	/* it runs from 1 ms on; ticks are due each ms, and none comes between 3 and 9 */
	check_cut("0 0 0 info text=\"sample.hz=1000\"\n"
		  "1ms 0 0 switch next_tid=100\n"
		  "2ms 100 0 sample ip=1\n"
		  "3ms 100 0 sample ip=1\n"
		  "9ms 100 0 sample ip=1\n"
		  "11ms 100 0 sample ip=1\n",
		1, 12, "code 2, cpu_wait 6, code 3");
}

static void test_ticks_are_not_missed_while_a_thread_is_off_the_cpu(void **state)
{
	check_cut("0 0 0 info text=\"sample.hz=1000\"\n"
		  "1ms 0 0 switch next_tid=100\n"
		  "2ms 100 0 sample ip=1\n"
		  "2ms 100 0 switch next_tid=0 prev_state=1 sys=nanosleep flags=2\n"
		  "8ms 0 0 switch next_tid=100 flags=4\n"
		  "9ms 100 0 sample ip=1\n",
		1, 10, "code 1, sleep 6, code 2");
}

static void test_short_gaps_between_faults_in_a_row_are_theirs(void **state)
{
	check_cut("1ms 0 0 switch next_tid=100\n"
		  "3000us 100 0 fault dur=1000us addr=0 flags=0\n"
		  "4000us 100 0 fault dur=999500ns addr=4096 flags=0\n"
		  "6000us 100 0 fault dur=998us addr=8192 flags=0\n"
		  "7000us 100 0 fault dur=999500ns addr=8192 flags=KERNEL\n",
		1, 7,
		"code 1, page_fault 1, page_fault 1, code 1.002, page_fault 0.998, code 0.0005, page_fault 0.9995");
}

static void test_wait_for_an_io_uring_read_is_a_file_read(void **state)
{
	/* the first completion lies before the wait, the last is of a socket */
	check_cut("0ms 0 0 switch next_tid=100\n"
		  "1ms 100 0 uring_done dur=1ms ino=7 dev=8:1 ret=4096 op=READ\n"
		  "2ms 100 0 switch next_tid=0 prev_state=1 sys=io_uring_enter flags=2\n"
		  "7ms 100 0 uring_done dur=5ms ino=8 dev=8:1 ret=4096 op=READ\n"
		  "7ms 100 0 uring_done dur=5ms ino=9 ret=10 op=RECV\n"
		  "8ms 0 0 switch next_tid=100 flags=4\n"
		  "8ms 100 0 syscall dur=6ms sys=io_uring_enter\n"
		  "9ms 100 0 switch next_tid=0 prev_state=1 sys=io_uring_enter flags=2\n"
		  "11ms 0 0 switch next_tid=100 flags=4\n"
		  "11ms 100 0 syscall dur=2ms sys=io_uring_enter\n",
		0, 12, "code 2, file_read 6, code 1, io_wait 2, code 1");
}

static void test_off_cpu_beats_on_cpu(void **state)
{
	/* the switch covers the whole read: nothing of it is running */
	check_cut("0ms 0 0 switch next_tid=100\n"
		  "2ms 100 0 switch next_tid=0 prev_state=2 sys=read flags=2\n"
		  "8ms 0 0 switch next_tid=100 flags=4\n"
		  "8ms 100 0 file_read dur=6ms mode=0x8000 ret=1 sys=read\n",
		0, 10, "code 2, file_read 6, code 2");
}

static void test_wakeup_latency_is_cpu_wait(void **state)
{
	check_cut("0ms 0 0 switch next_tid=100\n"
		  "2ms 100 0 switch next_tid=0 prev_state=1 sys=futex flags=2\n"
		  "5ms 100 0 waking waker=101 target_cpu=0\n"
		  "8ms 0 0 switch next_tid=100 flags=4\n",
		0, 10, "code 2, lock_wait 3, cpu_wait 3, code 2");
}

static void test_yielding_inside_a_fault_waits_for_the_device(void **state)
{
	check_cut("0ms 0 0 switch next_tid=100\n"
		  "2ms 100 0 switch next_tid=7 prev_state=0 flags=10\n"
		  "3ms 7 0 switch next_tid=100 prev_state=1 flags=4\n"
		  "4ms 100 0 switch next_tid=7 prev_state=0 flags=10\n"
		  "5ms 7 0 switch next_tid=100 prev_state=1 flags=4\n"
		  "6ms 100 0 fault dur=5ms addr=0 flags=MAJOR\n",
		0, 7, "code 1, page_fault 1, page_fault 1, page_fault 1, page_fault 1, page_fault 1, code 1");
}

static void test_preempted_inside_a_fault_waits_for_a_cpu(void **state)
{
	check_cut("0ms 0 0 switch next_tid=100\n"
		  "2ms 100 0 switch next_tid=7 prev_state=0 flags=11\n"
		  "4ms 7 0 switch next_tid=100 prev_state=1 flags=4\n"
		  "5ms 100 0 fault dur=4ms addr=0 flags=0\n",
		0, 6, "code 1, page_fault 1, cpu_wait 2, page_fault 1, code 1");
}

static void test_interval_may_begin_and_end_in_a_wait(void **state)
{
	const char *text = "0ms 0 0 switch next_tid=100\n"
			   "2ms 100 0 switch next_tid=0 prev_state=1 sys=poll flags=2\n"
			   "9ms 0 0 switch next_tid=100 flags=4\n"
			   "9ms 100 0 syscall dur=7ms sys=poll\n";

	check_cut(text, 3, 8, "io_wait 5");
	check_cut(text, 0, 5, "code 2, io_wait 3");
	check_cut(text, 5, 10, "io_wait 4, code 1");
}

static void test_wait_that_has_not_ended_is_known_by_its_call(void **state)
{
	check_cut("0ms 0 0 switch next_tid=100\n"
		  "2ms 100 0 switch next_tid=0 prev_state=1 sys=clock_nanosleep flags=2\n",
		0, 10, "code 2, sleep 8");
}

static void test_blocked_in_user_code_was_a_fault(void **state)
{
	check_cut("0ms 0 0 switch next_tid=100\n"
		  "2ms 100 0 switch next_tid=0 prev_state=2 flags=10\n"
		  "5ms 0 0 switch next_tid=100 flags=4\n",
		0, 6, "code 2, page_fault 3, code 1");
}

static void test_stopped_by_a_debugger_is_unexplained(void **state)
{
	check_cut("0ms 0 0 switch next_tid=100\n"
		  "2ms 100 0 switch next_tid=0 prev_state=8 flags=10\n"
		  "5ms 0 0 switch next_tid=100 flags=4\n",
		0, 6, "code 2, unexplained 3, code 1");
}

static void test_off_the_cpu_since_before_the_recording_is_unexplained(void **state)
{
	check_cut("5ms 0 0 switch next_tid=100 flags=4\n", 1, 6, "unexplained 4, code 1");
}

static void test_running_where_records_were_lost_is_unexplained(void **state)
{
	check_cut("0ms 0 0 switch next_tid=100\n"
		  "4ms 100 0 irq dur=1ms irq=3\n"
		  "6ms 0 0 lost class=3 count=9 since=2ms\n",
		0, 8, "code 2, unexplained 1, interrupt 1, unexplained 2, code 2");
}

static void test_loss_of_samples_hides_no_time(void **state)
{
	check_cut("0ms 0 0 switch next_tid=100\n"
		  "6ms 0 0 lost class=10 count=9 since=2ms\n",
		0, 8, "code 8");
}

static void test_without_switches_a_wait_is_taken_at_its_word(void **state)
{
	check_cut("6ms 100 0 syscall dur=4ms sys=clock_nanosleep\n", 0, 8, "code 2, sleep 4, code 2");
}

static void test_switched_out_in_an_interrupt_belongs_to_what_it_interrupted(void **state)
{
	check_cut("0ms 0 0 switch next_tid=100\n"
		  "3ms 100 0 switch next_tid=7 prev_state=1 sys=read flags=2\n"
		  "4ms 7 0 switch next_tid=100 prev_state=1\n"
		  "5ms 100 0 irq dur=3ms irq=3\n"
		  "6ms 100 0 file_read dur=5ms mode=0x8000 ret=1 sys=read\n",
		0, 7, "code 1, file_read 1, interrupt 1, file_read 1, interrupt 1, file_read 1, code 1");
}

static void test_overlapping_spans_that_do_not_nest_leave_no_gap(void **state)
{
	check_cut("0ms 0 0 switch next_tid=100\n"
		  "5ms 100 0 fault dur=4ms addr=0 flags=0\n"
		  "8ms 100 0 mem_call dur=5ms addr=0 len=1 sys=munmap\n",
		0, 10, "code 1, page_fault 2, memory_map 5, code 2");
}

static void test_same_begin_the_shorter_is_inside(void **state)
{
	check_cut("0ms 0 0 switch next_tid=100\n"
		  "4ms 100 0 fault dur=2ms addr=0 flags=0\n"
		  "6ms 100 0 file_read dur=4ms mode=0x8000 ret=1 sys=read\n",
		1, 7, "code 1, page_fault 2, file_read 2, code 1");
}

static void test_same_begin_and_end_the_first_written_is_inside(void **state)
{
	check_cut("0ms 0 0 switch next_tid=100\n"
		  "6ms 100 0 fault dur=4ms addr=0 flags=0\n"
		  "6ms 100 0 file_read dur=4ms mode=0x8000 ret=1 sys=read\n",
		1, 7, "code 1, page_fault 4, code 1");
}

static void test_pipe_read_waits_for_io(void **state)
{
	check_cut("0ms 0 0 switch next_tid=100\n"
		  "2ms 100 0 switch next_tid=0 prev_state=1 sys=read flags=2\n"
		  "5ms 0 0 switch next_tid=100 flags=4\n"
		  "6ms 100 0 file_read dur=5ms mode=0x1180 ret=1 sys=read\n",
		0, 7, "code 1, kernel 1, io_wait 3, kernel 1, code 1");
}

static void test_drm_ioctl_waits_for_the_gpu(void **state)
{
	const char *ioctl = "0ms 0 0 switch next_tid=100\n"
			    "2ms 100 0 switch next_tid=0 prev_state=1 sys=ioctl flags=2\n"
			    "5ms 0 0 switch next_tid=100 flags=4\n"
			    "6ms 100 0 syscall dur=5ms sys=ioctl fd_mode=0x21b6 arg1=";
	char text[512];

	snprintf(text, sizeof(text), "%s0xc0406448\n", ioctl);
	check_cut(text, 0, 7, "code 1, kernel 1, gpu_wait 3, kernel 1, code 1");
	snprintf(text, sizeof(text), "%s0x40084e01\n", ioctl); /* ntsync */
	check_cut(text, 0, 7, "code 1, kernel 1, thread_wait 3, kernel 1, code 1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thread_of_which_nothing_is_known_ran_code),
		cmocka_unit_test(test_fault_inside_a_read_is_a_fault),
		cmocka_unit_test(test_ticks_that_are_missing_tell_that_the_cpu_did_not_run),
		cmocka_unit_test(test_ticks_are_not_missed_while_a_thread_is_off_the_cpu),
		cmocka_unit_test(test_short_gaps_between_faults_in_a_row_are_theirs),
		cmocka_unit_test(test_wait_for_an_io_uring_read_is_a_file_read),
		cmocka_unit_test(test_off_cpu_beats_on_cpu),
		cmocka_unit_test(test_wakeup_latency_is_cpu_wait),
		cmocka_unit_test(test_yielding_inside_a_fault_waits_for_the_device),
		cmocka_unit_test(test_preempted_inside_a_fault_waits_for_a_cpu),
		cmocka_unit_test(test_interval_may_begin_and_end_in_a_wait),
		cmocka_unit_test(test_wait_that_has_not_ended_is_known_by_its_call),
		cmocka_unit_test(test_blocked_in_user_code_was_a_fault),
		cmocka_unit_test(test_stopped_by_a_debugger_is_unexplained),
		cmocka_unit_test(test_off_the_cpu_since_before_the_recording_is_unexplained),
		cmocka_unit_test(test_running_where_records_were_lost_is_unexplained),
		cmocka_unit_test(test_loss_of_samples_hides_no_time),
		cmocka_unit_test(test_without_switches_a_wait_is_taken_at_its_word),
		cmocka_unit_test(test_switched_out_in_an_interrupt_belongs_to_what_it_interrupted),
		cmocka_unit_test(test_overlapping_spans_that_do_not_nest_leave_no_gap),
		cmocka_unit_test(test_same_begin_the_shorter_is_inside),
		cmocka_unit_test(test_same_begin_and_end_the_first_written_is_inside),
		cmocka_unit_test(test_pipe_read_waits_for_io),
		cmocka_unit_test(test_drm_ioctl_waits_for_the_gpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
