// SPDX-License-Identifier: GPL-2.0-only
/* Switches, wakeups and who the threads are, as the real trace processor reads them. */
#include "perfetto_fixture.h"

#define TASK_INTERRUPTIBLE   0x1
#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_IDLE            0x402

static void sw(struct trace *t, u64 ts, u16 cpu, u32 prev, u16 state, u32 next)
{
	PUT(t, SWITCH, switch, ts, prev, cpu, .next_tid = next, .prev_state = state, .prev_prio = 120,
		.next_prio = 120);
}

static void preempt(struct trace *t, u64 ts, u16 cpu, u32 prev, u16 state, u32 next)
{
	PUT(t, SWITCH, switch, ts, prev, cpu, .next_tid = next, .prev_state = state, .prev_prio = 120, .next_prio = 99,
		.flags = SWITCH_PREEMPT);
}

static void wake(struct trace *t, u64 ts, u16 cpu, u32 waker, u32 woken, u8 flags)
{
	PUT(t, WAKING, waking, ts, woken, cpu, .waker = waker, .target_cpu = 1, .prio = 120, .flags = flags);
}

/* raw state of the kernel → what its tracepoint prints */
static void test_sched_prev_state_is_what_the_tracepoint_prints(void **state)
{
	static const struct {
		u16 raw;
		u32 printed;
	} rows[] = {{0, 0}, {1, 1}, {2, 2}, {4, 4}, {8, 8}, {0x10, 0x10}, {0x20, 0x20}, {0x40, 0x40}, {0x402, 0x80},
		{0x90, 0x10}, {0xa0, 0x20}, {0x102, 2}, {0x2001, 1}, {0x1000, 2}, {0x8000, 2}, {0x800, 0},
		{0x30, 0x20}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(sched__prev_state(rows[i].raw, false), rows[i].printed);
		assert_int_equal(sched__prev_state(rows[i].raw, true), 0x100);
	}
}

static void test_sched_slices_and_states_are_exactly_the_switches(void **state)
{
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	sw(&t, 1000, 0, 0, 0, GAME);
	sw(&t, 1100, 1, 0, 0, RENDER);
	sw(&t, 2000, 0, GAME, TASK_INTERRUPTIBLE, 0);
	wake(&t, 2500, 1, RENDER, GAME, 0);
	preempt(&t, 2600, 1, RENDER, 0, GAME);
	sw(&t, 3000, 1, GAME, TASK_UNINTERRUPTIBLE, RENDER);
	sw(&t, 3500, 1, RENDER, TASK_IDLE, 0);
	sw(&t, 4000, 0, 0, 0, OTHER);
	sw(&t, 5000, 0, OTHER, 0x20, 0);
	sw(&t, 6000, 0, 0, 0, 0);
	trace__end(&t);
	expect_clean(&t);
	expect(&t,
		"select ts, dur, ucpu, tid, end_state, priority from sched_slice join thread using(utid) order by ts, "
		"ucpu",
		"1000,1000,0,4242,S,120\n1100,1500,1,4243,R+,120\n2000,2000,0,0,R,120\n2600,400,1,4242,D,99\n"
		"3000,500,1,4243,I,120\n3500,-1,1,0,[NULL],120\n4000,1000,0,77,Z,120\n5000,1000,0,0,R,120\n"
		"6000,-1,0,0,[NULL],120\n");
	expect(&t,
		"select s.ts, s.dur, s.state, w.tid from thread_state s join thread t using(utid) "
		"left join thread w on s.waker_utid = w.utid where t.tid = 4242 order by s.ts",
		"1000,1000,Running,[NULL]\n2000,500,S,[NULL]\n2500,100,R,4243\n2600,400,Running,[NULL]\n"
		"3000,-1,D,[NULL]\n");
	expect(&t, "select irq_context from thread_state where ts = 2500", "0\n");
	trace__close(&t);
}

static void test_sched_first_wakeup_of_a_cpu_is_kept_with_its_waker(void **state)
{
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	sw(&t, 1000, 0, GAME, TASK_INTERRUPTIBLE, 0);
	wake(&t, 1500, 3, OTHER, GAME, 0); /* nothing was seen of CPU 3 yet */
	sw(&t, 2000, 0, 0, 0, GAME);
	sw(&t, 3000, 0, GAME, TASK_INTERRUPTIBLE, 0);
	wake(&t, 3500, 0, 0, GAME, WAKE_HARDIRQ);
	sw(&t, 3600, 0, 0, 0, GAME);
	trace__end(&t);
	expect_clean(&t);
	expect(&t,
		"select s.ts, s.state, w.tid, s.irq_context from thread_state s join thread t using(utid) left join "
		"thread w on s.waker_utid = w.utid where t.tid = 4242 and state = 'R' order by s.ts",
		"1500,R,77,[NULL]\n3500,R,0,1\n"); /* of a single event the importer does not read the flags */
	trace__close(&t);
}

static void test_sched_names_are_known_before_at_and_after_a_rename(void **state)
{
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	PUT(&t, FORK, fork, 500, 4300, 0, .tgid = GAME, .parent = GAME, .clone_flags = 0x10000, .comm = "MainThread");
	sw(&t, 1000, 0, 0, 0, 4300);
	PUT(&t, RENAME, rename, 1500, 4300, 0, .tgid = GAME, .comm = "Worker \"1\"\xff");
	sw(&t, 2000, 0, 4300, TASK_INTERRUPTIBLE, 0);
	trace__end(&t);
	expect_clean(&t);
	expect(&t,
		"select t.tid, t.name, p.pid, p.name, t.is_main_thread from thread t join process p using(upid) "
		"where p.pid in (4242, 77) order by tid",
		"77,Xorg,77,Xorg,1\n4242,MainThread,4242,./hitches,1\n4243,RenderThread,4242,./hitches,0\n"
		"4300,\"Worker \"\"1\"\"\xef\xbf\xbd\",4242,./hitches,0\n");
	expect(&t, "select cmdline, parent_upid is null from process where pid = 4242", "./hitches --fast,0\n");
	trace__close(&t);
}

static void test_sched_reused_tid_is_another_thread(void **state)
{
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	for (u64 life = 0; life < 2; life++) {
		u64 at = 1000 + life * 10000;

		PUT(&t, FORK, fork, at, 5000, 0, .tgid = GAME, .parent = GAME, .clone_flags = 0x10000,
			.comm = "MainThread");
		sw(&t, at + 100, 0, 0, 0, 5000);
		PUT(&t, RENAME, rename, at + 200, 5000, 0, .tgid = GAME, .comm = "life");
		PUT(&t, EXIT, exit, at + 300, 5000, 0, .tgid = GAME);
		sw(&t, at + 400, 0, 5000, 0x90, 0);
	}
	trace__end(&t);
	expect_clean(&t);
	expect(&t, "select name, start_ts, end_ts from thread where tid = 5000 order by start_ts",
		"life,1000,1401\nlife,11000,11401\n");
	expect(&t, "select ts, dur, end_state from sched_slice join thread using(utid) where tid = 5000 order by ts",
		"1100,300,X\n11100,300,X\n");
	trace__close(&t);
}

static void test_sched_lost_records_show_and_later_ones_are_right(void **state)
{
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	sw(&t, 1000, 0, 0, 0, GAME);
	sw(&t, 2000, 0, GAME, TASK_INTERRUPTIBLE, 0);
	PUT(&t, LOST, lost, 3000, 0, 0, .class = CLASS_SCHED, .count = 7, .since = 2100);
	PUT(&t, LOST, lost, 3001, 0, 1, .class = CLASS_LOCK, .count = 5, .since = 2100);
	sw(&t, 4000, 0, OTHER, TASK_INTERRUPTIBLE, GAME);
	sw(&t, 5000, 0, GAME, TASK_UNINTERRUPTIBLE, 0);
	trace__end(&t);
	expect(&t, "select count(*) > 0 from stats where severity = 'data_loss' and value > 0", "1\n");
	expect(&t,
		"select s.ts, s.name, extract_arg(s.arg_set_id, 'debug.count') from slice s join process_track t on "
		"s.track_id = t.id join process using(upid) where pid = 4242 order by ts",
		"3000,7 sched events lost,7\n3001,5 lock events lost,5\n");
	expect(&t,
		"select ts, value from counter join track t on track_id = t.id where t.name = 'lost events' order by "
		"ts",
		"2100,0\n3000,7\n3001,12\n");
	expect(&t, "select ts, dur, end_state from sched_slice join thread using(utid) where tid = 4242 order by ts",
		"1000,1000,S\n4000,1000,D\n");
	trace__close(&t);
}

static void test_sched_a_switch_that_the_kernel_kept_back_is_told(void **state)
{
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	sw(&t, 1000, 0, 0, 0, GAME);
	sw(&t, 2000, 0, OTHER, TASK_INTERRUPTIBLE, RENDER); /* who ran OTHER? */
	sw(&t, 3000, 0, RENDER, TASK_INTERRUPTIBLE, 0);
	trace__end(&t);
	expect(&t, "select name from slice", "1 places where switches are missing\n");
	expect(&t, "select name from stats where severity = 'error' and value > 0", "");
	expect(&t, "select ts, dur from sched_slice join thread using(utid) where tid = 4243", "2000,1000\n");
	trace__close(&t);
}

/* every CPU's first switch, its bundles' edges, and names that change in between */
static void test_sched_no_switch_is_missing_in_a_long_stream(void **state)
{
	enum { CPUS = 3, SWITCHES = 20000 };
	u32 running[CPUS] = {0};
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	for (u32 i = 0; i < SWITCHES; i++) {
		u16 cpu = i % CPUS;
		u32 next = 10000 + (i * 7919u) % 900;

		sw(&t, 1000 + i * 977, cpu, running[cpu], i % 2, next);
		running[cpu] = next;
	}
	trace__end(&t);
	expect_clean(&t);
	expect(&t, "select count(*) from sched_slice", "20000\n");
	expect(&t, "select ucpu, min(ts), count(*), sum(dur = -1), sum(end_state = 'S') from sched_slice group by ucpu",
		"0,1000,6667,1,3333\n1,1977,6667,1,3333\n2,2954,6666,1,3333\n");
	trace__close(&t);
}

static void test_sched_late_records_keep_their_times(void **state)
{
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	sw(&t, 1000, 0, 0, 0, GAME);
	sw(&t, 2000, 0, GAME, TASK_INTERRUPTIBLE, 0);
	sw(&t, 3000, 0, 0, 0, OTHER);
	wake(&t, 3500, 0, OTHER, GAME, 0);
	wake(&t, 3400, 0, OTHER, RENDER, 0); /* merge gives out late ones as they are */
	sw(&t, 4000, 0, OTHER, 1, GAME);
	trace__end(&t);
	expect_clean(&t);
	expect(&t, "select ts, tid from thread_state join thread using(utid) where state = 'R' and tid > 0 order by ts",
		"3400,4243\n3500,4242\n");
	trace__close(&t);
}

/* the promise of the design: a switch with its wakeup costs at most 24 bytes, deflated or not */
static void test_sched_a_switch_with_its_wakeup_takes_at_most_24_bytes(void **state)
{
	enum { PAIRS = 200000 };
	static const u32 tids[] = {GAME, RENDER};

	(void)state;
	for (int deflate = 0; deflate < 2; deflate++) {
		struct trace t;
		u64 ts = 1000000;
		off_t head;

		trace__open(&t, deflate);
		sw(&t, ts, 0, 0, 0, tids[0]);
		head = trace__bytes(&t);
		for (u32 i = 0; i < PAIRS; i++) {
			ts += 2000 + (i * 2654435761u >> 16) % 30000;
			wake(&t, ts, 0, tids[i % 2], tids[(i + 1) % 2], 0);
			ts += 700 + (i * 40503u) % 900;
			sw(&t, ts, 0, tids[i % 2], TASK_INTERRUPTIBLE, tids[(i + 1) % 2]);
		}
		trace__end(&t);
		print_message("%s: %.1f bytes per switch with its wakeup\n", deflate ? "deflated" : "plain",
			(double)(trace__bytes(&t) - head) / PAIRS);
		assert_true(trace__bytes(&t) - head <= 24 * PAIRS);
		if (have_tp()) {
			expect_clean(&t);
			expect(&t, "select count(*) from sched_slice", "200001\n");
			expect(&t, "select count(*) from thread_state where state = 'R' and waker_utid is not null",
				"200000\n");
		}
		trace__close(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sched_prev_state_is_what_the_tracepoint_prints),
		cmocka_unit_test(test_sched_slices_and_states_are_exactly_the_switches),
		cmocka_unit_test(test_sched_first_wakeup_of_a_cpu_is_kept_with_its_waker),
		cmocka_unit_test(test_sched_names_are_known_before_at_and_after_a_rename),
		cmocka_unit_test(test_sched_reused_tid_is_another_thread),
		cmocka_unit_test(test_sched_lost_records_show_and_later_ones_are_right),
		cmocka_unit_test(test_sched_a_switch_that_the_kernel_kept_back_is_told),
		cmocka_unit_test(test_sched_no_switch_is_missing_in_a_long_stream),
		cmocka_unit_test(test_sched_late_records_keep_their_times),
		cmocka_unit_test(test_sched_a_switch_with_its_wakeup_takes_at_most_24_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
