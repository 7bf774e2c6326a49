/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>

#include "because.h"
#include "explain_fixture.h"

#define HEAD                                                                                                           \
	"0 0 0 info text=\"game.tgid=100\"\n"                                                                          \
	"0 100 0 thread tgid=100 nstid=100 name=\"Main\"\n"                                                            \
	"0 101 0 thread tgid=100 nstid=101 name=\"A\"\n"                                                               \
	"0 102 0 thread tgid=100 nstid=102 name=\"B\"\n"                                                               \
	"0 103 0 thread tgid=100 nstid=103 name=\"C\"\n"                                                               \
	"0 104 0 thread tgid=100 nstid=104 name=\"D\"\n"                                                               \
	"0 105 0 thread tgid=100 nstid=105 name=\"E\"\n"

/* "cause ms who (…)" of a frame, everything above 1 ms, by cause and time */
static void tell(struct str *s, const struct part *p, u32 n)
{
	const char *comma = "";

	for (int c = 0; c < CAUSE_COUNT; c++) {
		for (u32 i = 0; i < n; i++) {
			if ((int)p[i].cause != c || p[i].ns < 1000000)
				continue;
			str__fmt(s, "%s%s %.0f", comma, cause_names[c], p[i].ns / 1e6);
			if (p[i].who)
				str__fmt(s, " %s%s", p[i].who, p[i].cycle ? " cycle" : "");
			if (p[i].through)
				str__fmt(s, " through %s", p[i].through);
			if (p[i].n_because) {
				str__add(s, " (");
				tell(s, p[i].because, p[i].n_because);
				str__add(s, ")");
			}
			comma = ", ";
		}
	}
}

static void tell_verdict(const struct verdict *v, const struct model *m, void *arg)
{
	tell(arg, v->parts, v->n_parts);
}

/* One frame, 100 ms … 200 ms, on thread 100. */
static void check_frame(const char *records, const char *want)
{
	struct explain_options o = {.every_frame = true};
	struct explained e = {};
	struct str got = {};
	char *text;

	assert_true(asprintf(&text, HEAD "100ms 100 0 frame number=0\n%s200ms 100 0 frame number=1\n", records) > 0);
	explain_string(&e, text, &o, tell_verdict, &got);
	assert_string_equal(got.s, want);
	str__free(&got);
	explained__free(&e);
	free(text);
}

/* thread waits for a mutex of owner from … to, in ms, on a CPU of its own */
#define BLOCK(tid, from) from "ms " tid " 0 switch next_tid=0 prev_state=1 sys=futex flags=2\n"
#define UNBLOCK(tid, to, dur, owner, waker)                                                                            \
	to "ms " tid " 0 waking waker=" waker " target_cpu=0\n" to "ms 0 0 switch next_tid=" tid " flags=4\n" to       \
	   "ms " tid " 0 lock_wait dur=" dur "ms addr=0x5000 val=2 word=2 op=0x80 owner=" owner " waker=" waker "\n"

static void test_owner_comes_before_waker(void **state)
{
	check_frame(BLOCK("100", "110") UNBLOCK("100", "150", "40", "101", "102"), "code 60, lock_wait 40 A (code 40)");
}

static void test_without_an_owner_it_is_the_waker(void **state)
{
	check_frame(BLOCK("100", "110") UNBLOCK("100", "150", "40", "0", "102"), "code 60, lock_wait 40 B (code 40)");
}

static void test_timeout_has_nobody(void **state)
{
	check_frame(BLOCK("100", "110") "150ms 100 0 waking waker=102 target_cpu=0 flags=HARDIRQ\n"
					"150ms 0 0 switch next_tid=100 flags=4\n"
					"150ms 100 0 lock_wait dur=40ms addr=0x5000 val=7 op=0x80 ret=-ETIMEDOUT\n",
		"code 60, thread_wait 40");
}

static void test_what_the_other_did_is_cut_to_the_wait(void **state)
{
	/* A reads from before the wait began until after it: only what lies inside counts */
	check_frame("105ms 101 1 switch next_tid=0 prev_state=2 sys=read flags=2\n" BLOCK("100", "110") UNBLOCK("100",
			    "150", "40", "101", "101") "170ms 0 1 switch next_tid=101 flags=4\n"
						       "171ms 101 1 file_read dur=70ms mode=0x8000 ret=1 sys=read\n",
		"code 60, lock_wait 40 A (file_read 40)");
}

static void test_chain_is_followed_four_threads_down_and_no_further(void **state)
{
	check_frame(BLOCK("105", "101") BLOCK("104", "102") BLOCK("103", "103") BLOCK("102", "104") BLOCK("101", "105")
			    BLOCK("100", "106") UNBLOCK("105", "186", "85", "106", "106") UNBLOCK(
				    "104", "186", "84", "105", "105") UNBLOCK("103", "186", "83", "104", "104")
				    UNBLOCK("102", "186", "82", "103", "103") UNBLOCK("101", "186", "81", "102", "102")
					    UNBLOCK("100", "186", "80", "101", "101"),
		"code 20, lock_wait 80 A (lock_wait 80 B (lock_wait 80 C (lock_wait 80 D (lock_wait 80 E))))");
}

static void test_cycle_is_said_and_not_followed(void **state)
{
	check_frame(BLOCK("101", "105") BLOCK("100", "106") UNBLOCK("101", "186", "81", "100", "0")
			    UNBLOCK("100", "186", "80", "101", "101"),
		"code 20, lock_wait 80 A (lock_wait 80 Main cycle)");
}

static void test_thread_that_waits_for_itself_is_not_followed(void **state)
{
	check_frame(BLOCK("100", "110") UNBLOCK("100", "150", "40", "100", "100"), "code 60, lock_wait 40");
}

static void test_waits_for_several_workers_are_one_row(void **state)
{
	/* names that differ in digits only are one crowd */
	check_frame("0 102 0 thread tgid=100 nstid=102 name=\"Job-1\"\n"
		    "0 103 0 thread tgid=100 nstid=103 name=\"Job-2\"\n" BLOCK("100", "110") UNBLOCK(
			    "100", "130", "20", "0", "102") BLOCK("100", "140") UNBLOCK("100", "170", "30", "0", "103"),
		"code 50, lock_wait 50 Job-2 (code 50)");
}

static void test_join_names_the_thread_that_had_to_end(void **state)
{
	check_frame("110ms 100 0 switch next_tid=0 prev_state=1 sys=futex flags=2\n"
		    "149.99ms 100 1 waking waker=103 target_cpu=0\n"
		    "150ms 0 0 switch next_tid=100 flags=4\n"
		    "150ms 100 0 lock_wait dur=40ms addr=0x7000 val=103 word=103 op=0x109 waker=103\n",
		"code 60, thread_wait 40 C (code 40)");
}

static void test_pipe_is_followed_to_the_thread_that_wrote(void **state)
{
	check_frame("110ms 100 0 switch next_tid=0 prev_state=1 sys=read flags=2\n"
		    "149.99ms 100 1 waking waker=101 target_cpu=0\n"
		    "150ms 0 0 switch next_tid=100 flags=4\n"
		    "150ms 100 0 file_read dur=40ms mode=0x1180 ret=1 sys=read\n",
		"code 60, io_wait 40 A (code 40)");
}

/* Under Wine a thread asks wineserver for everything: "tid" writes a request of `from` µs after 149 ms and has its
 * reply at `to`. */
#define SERVER                                                                                                         \
	"0 900 0 process parent=1 nspid=900 cmdline=\"wineserver64\"\n"                                                \
	"0 900 0 thread tgid=900 nstid=900 name=\"wineserver64\"\n"
#define REQUEST(tid, from) "149." from "ms " tid " 1 file_write dur=5us mode=0x1180 ino=5 ret=64 sys=write\n"
#define REPLY(tid, to)     "149." to "ms " tid " 1 file_read dur=1us mode=0x1180 ino=6 ret=64 sys=read\n"
/* the server asleep until `at` µs after 149 ms; then it wakes the main thread, which waits since 110 ms */
#define SERVER_SLEEPS                                                                                                  \
	"100.1ms 900 1 switch next_tid=0 prev_state=1\n110ms 100 0 switch next_tid=0 prev_state=1 sys=read flags=2\n"
#define SERVER_WOKEN(by, at)                                                                                           \
	"149." at "ms 900 1 waking waker=" by " target_cpu=1\n149." at "ms 0 1 switch next_tid=900\n"
#define SERVER_WAKES_MAIN "149.900ms 100 1 waking waker=900 target_cpu=0\n149.901ms 0 0 switch next_tid=100 flags=4\n"
#define MAIN_READS        "150ms 100 0 file_read dur=40ms mode=0x1180 ino=7 ret=16 sys=read\n"

static void test_wineserver_woke_it_for_the_thread_that_asked_for_that(void **state)
{
	check_frame(SERVER SERVER_SLEEPS SERVER_WOKEN("101", "877") REQUEST("101", "880")
			    SERVER_WAKES_MAIN REPLY("101", "950") MAIN_READS,
		"code 60, io_wait 40 A through process wineserver64 (code 40)");
}

static void test_of_two_requests_to_a_server_the_one_that_is_answered_first_was_being_served(void **state)
{
	/* B woke it, and A wrote while it worked; the server answered A first */
	check_frame(SERVER SERVER_SLEEPS SERVER_WOKEN("102", "877") REQUEST("102", "880") REQUEST("101", "890")
			    SERVER_WAKES_MAIN REPLY("101", "950") REPLY("102", "970") MAIN_READS,
		"code 60, io_wait 40 A through process wineserver64 (code 40)");
	check_frame(SERVER SERVER_SLEEPS SERVER_WOKEN("102", "877") REQUEST("102", "880") REQUEST("101", "890")
			    SERVER_WAKES_MAIN REPLY("102", "950") REPLY("101", "970") MAIN_READS,
		"code 60, io_wait 40 B through process wineserver64 (code 40)");
}

static void test_a_reply_to_its_own_request_is_the_servers_own_doing(void **state)
{
	check_frame(SERVER SERVER_SLEEPS
		"109ms 100 0 file_write dur=5us mode=0x1180 ino=5 ret=64 sys=write\n" SERVER_WOKEN("101", "877")
			REQUEST("101", "880") SERVER_WAKES_MAIN REPLY("101", "950") MAIN_READS,
		"code 60, io_wait 40 process wineserver64 (unexplained 40 A (code 40))");
}

static void test_without_file_records_the_server_woke_it_for_who_woke_the_server_last(void **state)
{
	check_frame(SERVER SERVER_SLEEPS SERVER_WOKEN("103", "877") SERVER_WAKES_MAIN MAIN_READS,
		"code 60, io_wait 40 C through process wineserver64 (code 40)");
}

static void test_a_server_that_a_timer_woke_acts_by_itself(void **state)
{
	check_frame(SERVER SERVER_SLEEPS "149.877ms 900 1 waking waker=101 target_cpu=1 flags=HARDIRQ\n"
					 "149.880ms 0 1 switch next_tid=900\n" SERVER_WAKES_MAIN MAIN_READS,
		"code 60, io_wait 40 process wineserver64 (unexplained 40)");
}

static void test_a_request_that_the_server_slept_through_was_not_for_it(void **state)
{
	/* A talks to another process meanwhile */
	check_frame(SERVER SERVER_SLEEPS REQUEST("101", "860") SERVER_WOKEN("102", "877") REQUEST("102", "880")
			    SERVER_WAKES_MAIN REPLY("101", "940") REPLY("102", "950") MAIN_READS,
		"code 60, io_wait 40 B through process wineserver64 (code 40)");
}

static void test_ntsync_wait_is_followed_to_the_thread_that_signalled(void **state)
{
	check_frame("110ms 100 0 switch next_tid=0 prev_state=1 sys=ioctl flags=2\n"
		    "149.99ms 100 1 waking waker=101 target_cpu=0\n"
		    "150ms 0 0 switch next_tid=100 flags=4\n"
		    "150ms 100 0 syscall dur=40ms arg0=9 arg1=0xc0284e82 sys=ioctl fd_mode=0x2180\n", /* WAIT_ANY */
		"code 60, thread_wait 40 A (code 40)");
}

static void test_disk_read_has_no_other_thread(void **state)
{
	check_frame("110ms 100 0 switch next_tid=0 prev_state=2 sys=read flags=2\n"
		    "149.99ms 100 1 waking waker=900 target_cpu=0\n"
		    "150ms 0 0 switch next_tid=100 flags=4\n"
		    "150ms 100 0 file_read dur=40ms mode=0x8000 ret=1 sys=read\n",
		"code 60, file_read 40");
}

static void test_fault_that_a_thread_of_the_game_ended_names_it(void **state)
{
	check_frame("110ms 100 0 switch next_tid=0 prev_state=2 flags=10\n"
		    "148ms 101 1 mem_call dur=38ms addr=0 len=64M sys=munmap\n"
		    "149.99ms 100 1 waking waker=101 target_cpu=0\n"
		    "150ms 0 0 switch next_tid=100 flags=4\n"
		    "150ms 100 0 fault dur=40ms addr=0 flags=0\n",
		"code 60, page_fault 40 A (code 2, memory_map 38)");
}

static void test_more_things_than_fit_still_sum(void **state)
{
	struct explain_options o = {.every_frame = true};
	struct explained e = {};
	struct str text = {}, got = {};

	str__add(&text, HEAD "100ms 100 0 frame number=0\n");
	for (u32 i = 0; i < 3000; i++) /* each a file of its own */
		str__fmt(&text, "%uus 100 0 file_read dur=30us mode=0x8000 ret=1 ino=%u sys=read\n", 100100 + i * 33,
			i + 1);
	str__add(&text, "200ms 100 0 frame number=1\n");
	explain_string(&e, text.s, &o, tell_verdict, &got);
	assert_string_equal(got.s, "code 10, file_read 90");
	str__free(&text);
	str__free(&got);
	explained__free(&e);
}

static void test_tally_keeps_the_largest(void **state)
{
	struct tally t = {};
	u64 n;

	for (u64 id = 1; id <= 50; id++)
		tally__add(&t, id, 1);
	tally__add(&t, 77, 1000);
	tally__add(&t, 77, 1);
	assert_int_equal(tally__top(&t, &n), 77);
	assert_true(n >= 1001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owner_comes_before_waker),
		cmocka_unit_test(test_without_an_owner_it_is_the_waker),
		cmocka_unit_test(test_timeout_has_nobody),
		cmocka_unit_test(test_what_the_other_did_is_cut_to_the_wait),
		cmocka_unit_test(test_chain_is_followed_four_threads_down_and_no_further),
		cmocka_unit_test(test_cycle_is_said_and_not_followed),
		cmocka_unit_test(test_thread_that_waits_for_itself_is_not_followed),
		cmocka_unit_test(test_waits_for_several_workers_are_one_row),
		cmocka_unit_test(test_join_names_the_thread_that_had_to_end),
		cmocka_unit_test(test_pipe_is_followed_to_the_thread_that_wrote),
		cmocka_unit_test(test_wineserver_woke_it_for_the_thread_that_asked_for_that),
		cmocka_unit_test(test_of_two_requests_to_a_server_the_one_that_is_answered_first_was_being_served),
		cmocka_unit_test(test_a_reply_to_its_own_request_is_the_servers_own_doing),
		cmocka_unit_test(test_without_file_records_the_server_woke_it_for_who_woke_the_server_last),
		cmocka_unit_test(test_a_server_that_a_timer_woke_acts_by_itself),
		cmocka_unit_test(test_a_request_that_the_server_slept_through_was_not_for_it),
		cmocka_unit_test(test_ntsync_wait_is_followed_to_the_thread_that_signalled),
		cmocka_unit_test(test_disk_read_has_no_other_thread),
		cmocka_unit_test(test_fault_that_a_thread_of_the_game_ended_names_it),
		cmocka_unit_test(test_more_things_than_fit_still_sum),
		cmocka_unit_test(test_tally_keeps_the_largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
