/* SPDX-License-Identifier: GPL-2.0-only */
#include "explain_fixture.h"
#include "timeline.h"

/* A recording's records into a timeline, in file order. */
struct fed {
	struct timeline t;
	struct model *m;
};

static void feed(struct fed *f, const char *text)
{
	struct recording r;
	const struct ev_hdr *rec;

	timeline__init(&f->t);
	f->m = model__new();
	assert_int_equal(recording__open_fd(&r, recfile__from_string(text)), 0);
	while (recording__next(&r, &rec) == 1) {
		assert_int_equal(model__event(f->m, rec), 0);
		assert_int_equal(timeline__event(&f->t, f->m, rec), 0);
	}
	recording__close(&r);
}

static void fed__free(struct fed *f)
{
	timeline__free(&f->t);
	model__free(f->m);
}

static const struct off *off_at(const struct fed *f, u32 tid, u32 i)
{
	const struct line *l = timeline__line(&f->t, tid);

	assert_non_null(l);
	assert_true(i < l->offs.n);
	return fifo__at(&l->offs, i);
}

static void test_block_and_wakeup_make_one_stretch(void **state)
{
	struct fed f;
	const struct off *o;

	feed(&f, "1ms 100 0 switch next_tid=5 prev_state=1 sys=futex flags=2\n"
		 "3ms 100 1 waking waker=101 target_cpu=1\n"
		 "4ms 5 1 switch next_tid=100 flags=4\n");
	o = off_at(&f, 100, 0);
	assert_int_equal(o->out, 1000000);
	assert_int_equal(o->wake, 3000000);
	assert_int_equal(o->in, 4000000);
	assert_int_equal(o->waker, 101);
	assert_int_equal(o->next, 5);
	assert_int_equal(o->wait_cpu, 1);
	assert_int_equal(o->flags, 0);
	fed__free(&f);
}

static void test_the_cost_of_a_probe_is_told_by_its_place_in_the_file(void **state)
{
	struct fed f;

	feed(&f, "0 0 0 info text=\"game.tgid=100\"\n"
		 "0 0 0 info text=\"probe.0.at=7+4660\"\n" /* 0x1234 */
		 "0 100 0 map start=0x10000 end=0x20000 offset=0x1000 ino=7 prot=READ|EXEC path=\"/lib/libc.so.6\"\n"
		 "0 100 0 map start=0x20000 end=0x30000 offset=0x1000 ino=8 prot=READ|EXEC path=\"/lib/other.so\"\n");
	assert_false(timeline__in_probe(&f.t, f.m, 0x10233));
	assert_true(timeline__in_probe(&f.t, f.m, 0x10234));
	assert_true(timeline__in_probe(&f.t, f.m, 0x10235));
	assert_false(timeline__in_probe(&f.t, f.m, 0x1023a));
	assert_false(timeline__in_probe(&f.t, f.m, 0x20234));
	assert_false(timeline__in_probe(&f.t, f.m, 0x40000));
	fed__free(&f);
	/* one that is not emulated runs in a page of the kernel's */
	feed(&f, "0 0 0 info text=\"game.tgid=100\"\n0 0 0 info text=\"probe.0.at=7+4660\"\n"
		 "0 0 0 symbol addr=0x50000 size=4096 name=\"[uprobes]\"\n");
	assert_true(timeline__in_probe(&f.t, f.m, 0x50082));
	assert_false(timeline__in_probe(&f.t, f.m, 0x51000));
	fed__free(&f);
}

static void test_preempted_thread_is_runnable_at_once(void **state)
{
	struct fed f;

	feed(&f, "1ms 100 0 switch next_tid=5 prev_state=0 flags=3\n");
	assert_int_equal(off_at(&f, 100, 0)->wake, 1000000);
	assert_int_equal(off_at(&f, 100, 0)->in, TIME_OPEN);
	assert_true(off_at(&f, 100, 0)->flags & OFF_PREEMPT);
	fed__free(&f);
}

static void test_waker_in_an_interrupt_is_no_waker(void **state)
{
	struct fed f;

	feed(&f, "1ms 100 0 switch next_tid=0 prev_state=1 sys=nanosleep flags=2\n"
		 "2ms 100 0 waking waker=101 target_cpu=0 flags=HARDIRQ\n");
	assert_int_equal(off_at(&f, 100, 0)->waker, 0);
	assert_true(off_at(&f, 100, 0)->flags & OFF_IRQ);
	fed__free(&f);
}

static void test_lost_switch_out_leaves_a_guess_that_is_marked(void **state)
{
	struct fed f;

	feed(&f, "1ms 0 0 switch next_tid=100 flags=4\n"
		 "5ms 0 1 switch next_tid=100 flags=4\n");
	/* what it did before the first is not known either */
	assert_true(off_at(&f, 100, 0)->flags & OFF_LOST);
	assert_int_equal(off_at(&f, 100, 1)->out, 1000000);
	assert_int_equal(off_at(&f, 100, 1)->in, 5000000);
	assert_true(off_at(&f, 100, 1)->flags & OFF_LOST);
	fed__free(&f);
}

static void test_lost_switch_in_ends_at_the_wakeup(void **state)
{
	struct fed f;

	feed(&f, "1ms 100 0 switch next_tid=0 prev_state=1 flags=2\n"
		 "2ms 100 0 waking waker=101 target_cpu=0\n"
		 "5ms 100 0 switch next_tid=0 prev_state=1 flags=2\n");
	assert_int_equal(off_at(&f, 100, 0)->in, 2000000);
	assert_true(off_at(&f, 100, 0)->flags & OFF_LOST);
	assert_int_equal(off_at(&f, 100, 1)->out, 5000000);
	fed__free(&f);
}

static void test_record_of_a_thread_shows_that_it_runs_again(void **state)
{
	struct fed f;

	feed(&f, "1ms 100 0 switch next_tid=0 prev_state=1 sys=clock_nanosleep flags=2\n"
		 "4ms 100 0 syscall dur=3.1ms sys=clock_nanosleep\n"
		 "6ms 100 0 switch next_tid=0 prev_state=1 sys=futex flags=2\n");
	assert_int_equal(off_at(&f, 100, 0)->in, 4000000);
	assert_true(off_at(&f, 100, 0)->flags & OFF_LOST);
	assert_int_equal(off_at(&f, 100, 1)->out, 6000000);
	assert_false(off_at(&f, 100, 1)->flags & OFF_LOST);
	fed__free(&f);
}

static void test_reused_id_is_dead_in_between(void **state)
{
	struct fed f;

	feed(&f, "1ms 100 0 exit tgid=100 code=0\n"
		 "1ms 100 0 switch next_tid=0 prev_state=128 flags=2\n"
		 "5ms 100 1 fork tgid=100 parent=99 clone_flags=0 comm=\"new\"\n"
		 "6ms 0 1 switch next_tid=100 flags=4\n");
	assert_true(off_at(&f, 100, 0)->flags & OFF_DEAD);
	assert_int_equal(off_at(&f, 100, 0)->in, 5000000);
	assert_true(off_at(&f, 100, 1)->flags & OFF_NEW);
	assert_int_equal(off_at(&f, 100, 1)->in, 6000000);
	assert_false(timeline__line(&f.t, 100)->dead);
	fed__free(&f);
}

static void test_losses_that_touch_are_one(void **state)
{
	struct fed f;
	const struct loss *l;

	feed(&f, "5ms 0 0 lost class=2 count=5 since=3ms\n"
		 "6ms 0 1 lost class=3 count=5 since=2ms\n"
		 "9ms 0 1 lost class=3 count=5 since=8ms\n"
		 "9ms 0 1 lost class=1 count=5 since=7ms\n");
	assert_int_equal(f.t.losses.n, 2);
	l = fifo__at(&f.t.losses, 0);
	assert_int_equal(l->start, 2000000);
	assert_int_equal(l->end, 6000000);
	l = fifo__at(&f.t.losses, 1); /* of the frame class nothing hides time */
	assert_int_equal(l->start, 8000000);
	fed__free(&f);
}

static void test_duration_longer_than_time_begins_at_zero(void **state)
{
	struct fed f;
	const struct span *s;

	feed(&f, "5ms 100 0 fault dur=3600s addr=0 flags=0\n");
	s = fifo__at(&timeline__line(&f.t, 100)->spans, 0);
	assert_int_equal(s->start, 0);
	assert_int_equal(s->end, 5000000);
	fed__free(&f);
}

static void push_faults(struct timeline *t, struct model *m, u64 from, u32 n)
{
	struct ev_fault e = {.hdr = {.tid = 100, .kind = EV_FAULT, .words = sizeof(e) / 8}, .dur = 100};

	for (u32 i = 0; i < n; i++) {
		e.hdr.ts = from + i * 100000;
		assert_int_equal(timeline__event(t, m, &e.hdr), 0);
	}
}

static void test_memory_is_flat_when_the_horizon_moves_on(void **state)
{
	struct timeline t;
	struct model *m = model__new();
	size_t after_one;

	timeline__init(&t);
	push_faults(&t, m, 1000000, 10000);
	after_one = t.bytes;
	for (u64 i = 1; i < 200; i++) {
		timeline__forget(&t, 1000000 + i * 1000000000);
		push_faults(&t, m, 1000000 + i * 1000000000, 10000);
	}
	assert_true(t.bytes <= 2 * after_one);
	timeline__free(&t);
	model__free(m);
}

static void test_a_frame_without_end_gives_up_its_beginning(void **state)
{
	struct timeline t;
	struct model *m = model__new();

	timeline__init(&t);
	t.limit = 1 << 20;
	push_faults(&t, m, 1000000, 100000);
	assert_true(t.bytes <= t.limit + (t.limit >> 1));
	assert_true(t.cut > 1000000);
	assert_int_equal(((struct loss *)fifo__at(&t.losses, 0))->start, 0);
	assert_int_equal(((struct loss *)fifo__at(&t.losses, 0))->end, t.cut);
	timeline__free(&t);
	model__free(m);
}

static void test_threads_that_came_and_went_are_forgotten(void **state)
{
	struct timeline t;
	struct model *m = model__new();
	struct ev_switch in = {.hdr = {.kind = EV_SWITCH, .words = sizeof(in) / 8}};
	struct ev_exit gone = {.hdr = {.kind = EV_EXIT, .words = sizeof(gone) / 8}};

	timeline__init(&t);
	for (u32 tid = 1; tid < 100000; tid++) {
		in.hdr.ts = gone.hdr.ts = tid * 1000;
		in.next_tid = gone.hdr.tid = tid;
		assert_int_equal(timeline__event(&t, m, &in.hdr), 0);
		assert_int_equal(timeline__event(&t, m, &gone.hdr), 0);
		timeline__forget(&t, tid * 1000);
	}
	assert_true(t.n_lines < 2000);
	timeline__free(&t);
	model__free(m);
}

static void test_late_record_takes_its_place(void **state)
{
	struct fed f;
	const struct line *l;

	feed(&f, "5ms 100 0 fault dur=1ms addr=1 flags=0\n"
		 "7ms 100 0 fault dur=1ms addr=2 flags=0\n"
		 "6ms 100 0 fault dur=1ms addr=3 flags=0\n");
	l = timeline__line(&f.t, 100);
	assert_int_equal(fifo__end(&l->spans, 1), 6000000);
	assert_int_equal(fifo__end(&l->spans, 2), 7000000);
	assert_int_equal(f.t.late, 0);
	fed__free(&f);
}

static void test_names_do_not_run_out_however_many_there_were(void **state)
{
	struct timeline t;
	struct model *m = model__new();
	u64 last = 0;

	timeline__init(&t);
	for (u64 i = 1; i <= 3 * INTERN_MAX_TEXTS; i++) {
		struct ev_path_arg arg = {.hdr = {.ts = i * 100000, .tid = 100, .kind = EV_PATH_ARG}};
		struct ev_file_meta open = {
			.hdr = {.ts = i * 100000, .tid = 100, .kind = EV_FILE_META, .words = sizeof(open) / 8},
			.dur = 60000,
			.ret = -2,
			.fd = -1};
		u64 rec[EV_MAX_BYTES / 8] = {0};

		arg.hdr.words = (u8)(sizeof(arg) / 8 + 4);
		memcpy(rec, &arg, sizeof(arg));
		snprintf((char *)rec + sizeof(arg), 32, "/missing/%llu", (unsigned long long)i);
		assert_int_equal(model__event(m, (struct ev_hdr *)rec), 0);
		assert_int_equal(model__event(m, &open.hdr), 0);
		assert_int_equal(timeline__event(&t, m, &open.hdr), 0);
		if (i % 100 == 0)
			timeline__forget(&t, i * 100000 - 500000);
		last = i;
	}
	const struct line *l = timeline__line(&t, 100);
	const struct span *s = fifo__last(&l->spans);
	char expected[32];

	snprintf(expected, sizeof(expected), "/missing/%llu", (unsigned long long)last);
	assert_string_equal(intern__text(&t.names, s->what), expected);
	assert_true(t.names.n <= INTERN_MAX_TEXTS);
	timeline__free(&t);
	model__free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_cost_of_a_probe_is_told_by_its_place_in_the_file),
		cmocka_unit_test(test_block_and_wakeup_make_one_stretch),
		cmocka_unit_test(test_preempted_thread_is_runnable_at_once),
		cmocka_unit_test(test_waker_in_an_interrupt_is_no_waker),
		cmocka_unit_test(test_lost_switch_out_leaves_a_guess_that_is_marked),
		cmocka_unit_test(test_lost_switch_in_ends_at_the_wakeup),
		cmocka_unit_test(test_record_of_a_thread_shows_that_it_runs_again),
		cmocka_unit_test(test_reused_id_is_dead_in_between),
		cmocka_unit_test(test_losses_that_touch_are_one),
		cmocka_unit_test(test_duration_longer_than_time_begins_at_zero),
		cmocka_unit_test(test_memory_is_flat_when_the_horizon_moves_on),
		cmocka_unit_test(test_a_frame_without_end_gives_up_its_beginning),
		cmocka_unit_test(test_threads_that_came_and_went_are_forgotten),
		cmocka_unit_test(test_late_record_takes_its_place),
		cmocka_unit_test(test_names_do_not_run_out_however_many_there_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
