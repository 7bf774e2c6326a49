// SPDX-License-Identifier: GPL-2.0-only
/* Frames, verdicts, lanes and counters, as the real trace processor reads them. */
#include "perfetto_fixture.h"

#define US 1000ull
#define MS 1000000ull

static void mark(struct trace *t, u64 ts, u64 number)
{
	PUT(t, FRAME, frame, ts, GAME, 0, .number = number, .site = 1);
}

static void fault(struct trace *t, u64 end, u64 dur, u32 tid)
{
	PUT(t, FAULT, fault, end, tid, 0, .dur = dur, .addr = 0x7f0000001000, .ip = 0x400123,
		.flags = FAULT_MAJOR | FAULT_WRITE);
}

static const struct frame_stream stream = {.id = 0, .tid = GAME, .site = 1};

static struct frame frame(u64 number, u64 start, u64 end)
{
	return (struct frame){.number = number, .stream = &stream, .tid = GAME, .start = start, .end = end};
}

static void put_verdict(struct trace *t, const struct verdict *v)
{
	assert_int_equal(t->e->ops->frame(t->e, t->m, v), 0);
}

static void put_normal(struct trace *t, u64 number, u64 start, u64 end)
{
	struct verdict v = {.frame = frame(number, start, end)};

	put_verdict(t, &v);
}

#define THREAD_SLICES                                                                                                  \
	"select s.ts, s.dur, s.name, s.depth, th.tid, tr.name from slice s join track tr on s.track_id = tr.id left "  \
	"join thread_track tt on tt.id = tr.id left join thread th using(utid) "

static void test_tracks_head_tells_machine_clock_and_meta(void **state)
{
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	mark(&t, 1000, 1);
	trace__end(&t);
	expect_clean(&t);
	expect(&t, "select str_value from metadata where name = 'system_release'", "6.18.44\n");
	expect(&t, "select length(str_value) from metadata where name = 'trace_uuid'", "36\n");
	expect(&t, "select clock_name, clock_value from clock_snapshot order by clock_id",
		"REALTIME,1700000000000000000\nMONOTONIC,90\nBOOTTIME,100\n");
	trace__close(&t);
}

static void test_tracks_each_frame_is_a_slice_and_a_slow_one_tells_why(void **state)
{
	const struct part because[] = {{.cause = CAUSE_PAGE_FAULT, .ns = 20 * MS, .what = "shaders.pak", .major = 3}};
	const struct part parts[] = {
		{.cause = CAUSE_LOCK_WAIT,
			.ns = 30 * MS,
			.excess_ns = 29 * MS,
			.count = 2,
			.what = "g_lock \"x\"\xff",
			.who_tid = RENDER,
			.who = "RenderThread",
			.because = because,
			.n_because = 1},
		{.cause = CAUSE_CODE, .ns = 10 * MS, .excess_ns = -1000},
	};
	const struct stretch stretches[] = {
		{.start = 100 * MS, .end = 104 * MS, .part = 1},
		{.start = 104 * MS, .end = 134 * MS, .part = 0, .waker_ts = 133 * MS, .waker_tid = RENDER},
		{.start = 134 * MS, .end = 140 * MS, .part = 1},
	};
	struct verdict v = {.frame = frame(7, 100 * MS, 140 * MS),
		.slow = true,
		.typical_ns = 16 * MS,
		.sentence = "30.0 ms waiting for g_lock",
		.parts = parts,
		.n_parts = 2,
		.stretches = stretches,
		.n_stretches = 3};
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	put_normal(&t, 6, 84 * MS, 100 * MS);
	put_verdict(&t, &v);
	put_normal(&t, 8, 140 * MS, 156 * MS);
	trace__end(&t);
	expect_clean(&t);
	expect(&t,
		"select s.ts, s.dur, s.name, s.category, s.depth from slice s join track t on s.track_id = t.id "
		"where t.name = 'Frames' order by s.ts",
		"84000000,16000000,frame 6,frame,0\n100000000,40000000,SLOW frame 7,slow_frame,0\n"
		"140000000,16000000,frame 8,frame,0\n");
	expect(&t,
		"select extract_arg(arg_set_id, 'debug.verdict'), extract_arg(arg_set_id, 'debug.causes[0].cause'), "
		"extract_arg(arg_set_id, 'debug.causes[0].ms'), extract_arg(arg_set_id, 'debug.causes[0].what'), "
		"extract_arg(arg_set_id, 'debug.causes[0].who'), extract_arg(arg_set_id, 'debug.causes[1].cause'), "
		"extract_arg(arg_set_id, 'debug.causes[0].because[0].what') from slice where name = 'SLOW frame 7'",
		"30.0 ms waiting for g_lock,lock_wait,30,\"g_lock "
		"\"\"x\"\"\xef\xbf\xbd\",RenderThread,code,shaders.pak\n");
	expect(&t,
		"select s.ts, s.dur, s.name, s.category, p.name from slice s join track t on s.track_id = t.id join "
		"track p on t.parent_id = p.id where t.name = 'why' order by s.ts",
		"100000000,4000000,code,code,Frames\n"
		"104000000,30000000,\"lock_wait g_lock \"\"x\"\"\xef\xbf\xbd\",lock_wait,Frames\n"
		"134000000,6000000,code,code,Frames\n");
	expect(&t,
		"select a.ts, b.ts, b.name, th.tid from flow f join slice a on f.slice_out = a.id join slice b on "
		"f.slice_in = b.id join thread_track t on b.track_id = t.id join thread th using(utid)",
		"104000000,133000000,woke MainThread,4243\n");
	expect(&t,
		"select ts, value from counter join track t on track_id = t.id where t.name = 'frame time' order by ts",
		"100000000,16\n140000000,40\n156000000,16\n");
	trace__close(&t);
}

static void test_tracks_a_frame_that_did_not_end_says_so(void **state)
{
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	mark(&t, 10 * MS, 1);
	fault(&t, 11 * MS, 1000, GAME);
	fault(&t, 12 * MS, 1000, GAME);
	mark(&t, 20 * MS, 2);
	put_normal(&t, 1, 10 * MS, 20 * MS);
	fault(&t, 25 * MS, 1000, GAME);
	trace__end(&t);
	expect_clean(&t);
	expect(&t,
		"select s.ts, s.dur, s.name like '%(unfinished)' from slice s join track t on s.track_id = t.id where "
		"t.name = 'Frames' order by s.ts",
		"10000000,10000000,0\n20000000,-1,1\n");
	expect(&t, "select ts, value from counter join track t on track_id = t.id where t.name = 'faults per frame'",
		"20000000,2\n");
	trace__close(&t);
}

static void test_tracks_a_frame_of_a_source_that_was_left_is_not_shown(void **state)
{
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	mark(&t, 100 * MS, 8);
	put_info(&t, "frame.left=uprobe:liba:present until 0.1 s");
	fault(&t, 300 * MS, 1 * MS, GAME);
	trace__end(&t);
	expect_clean(&t);
	expect(&t, "select count(*) from slice where name glob '*unfinished*'", "0\n");
	trace__close(&t);
}

static void test_tracks_frames_come_first_in_the_process(void **state)
{
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	PUT(&t, COST, cost, 5 * MS, 0, 0, .cpu_ns = 1 * MS);
	put_normal(&t, 1, 10 * MS, 20 * MS);
	PUT(&t, COST, cost, 105 * MS, 0, 0, .cpu_ns = 3 * MS, .ring_used = 4096);
	trace__end(&t);
	expect_clean(&t);
	/* the order in which the interface shows a process's tracks */
	expect(&t,
		"include perfetto module viz.summary.track_event; select name from _track_event_tracks_ordered_groups "
		"where upid is not null and has_data order by order_id limit 2",
		"Frames\nframe time\n");
	expect(&t, "select value from counter join track t on track_id = t.id where t.name = 'redframe CPU'", "2\n");
	expect(&t, "select value from counter join track t on track_id = t.id where t.name = 'redframe cost ring_used'",
		"0\n4096\n");
	trace__close(&t);
}

static void test_tracks_spans_nest_and_those_that_cannot_get_another_lane(void **state)
{
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	PUT(&t, IRQ, irq, 1500, GAME, 0, .dur = 200);          /* in what follows */
	PUT(&t, SOFTIRQ, softirq, 2000, GAME, 0, .dur = 1000); /* [1000, 2000] */
	PUT(&t, IRQ, irq, 2500, GAME, 0, .dur = 1000);         /* [1500, 2500] overlaps */
	PUT(&t, IRQ, irq, 3000, GAME, 0, .dur = 500);          /* [2500, 3000] touches */
	PUT(&t, SOFTIRQ, softirq, 4000, GAME, 0, .dur = 1500); /* [2500, 4000] begins with the one before */
	PUT(&t, IRQ, irq, 4000, GAME, 0, .dur = 0);            /* no length, at an end */
	PUT(&t, IRQ, irq, 5000, GAME, 0, .dur = 0);
	PUT(&t, SOFTIRQ, softirq, 6000, GAME, 0, .dur = 1000); /* [5000, 6000] begins where that one was */
	trace__end(&t);
	expect_clean(&t);
	expect(&t, THREAD_SLICES "order by s.ts, s.dur, tr.name",
		"1000,1000,softirq,0,4242,interrupts\n1300,200,irq,1,4242,interrupts\n"
		"1500,1000,irq,0,4242,interrupts 2\n2500,500,irq,0,4242,interrupts\n"
		"2500,1500,softirq,0,4242,interrupts 2\n4000,0,irq,0,4242,interrupts\n"
		"5000,0,irq,0,4242,interrupts\n5000,1000,softirq,0,4242,interrupts\n");
	trace__close(&t);
}

static void test_tracks_random_spans_keep_their_exact_times(void **state)
{
	enum { SPANS = 3000 };
	u64 seed = 1, sum = 0, starts = 0;
	char expected[128];
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	for (u32 i = 0; i < SPANS; i++) {
		u64 end = 100000 + i * 3, dur;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		dur = (seed >> 33) % ((seed >> 60) ? 9 : 300);
		PUT(&t, IRQ, irq, end, GAME, 0, .dur = dur, .irq = i);
		sum += dur * (i + 1);
		starts += (end - dur) * (i + 1) % 1000003;
	}
	trace__end(&t);
	expect_clean(&t);
	snprintf(expected, sizeof(expected), "%d,%llu,%llu,0\n", SPANS, (unsigned long long)sum,
		(unsigned long long)starts);
	expect(&t,
		"select count(*), sum(dur * (i + 1)), sum((ts * (i + 1)) % 1000003), sum(dur < 0) from "
		"(select *, extract_arg(arg_set_id, 'debug.irq') as i from slice)",
		expected);
	expect(&t,
		"select count(*) from slice c join slice p on c.parent_id = p.id where c.ts < p.ts or c.ts + c.dur > "
		"p.ts + p.dur",
		"0\n");
	trace__close(&t);
}

static void test_tracks_async_work_never_shares_a_lane(void **state)
{
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	PUT(&t, URING_DONE, uring_done, 2000, GAME, 0, .dur = 1000);
	PUT(&t, URING_DONE, uring_done, 2500, GAME, 0, .dur = 2000); /* around the first: still its own lane */
	PUT(&t, URING_DONE, uring_done, 3000, GAME, 0, .dur = 500);  /* the first lane is free again */
	PUT(&t, FILE_READ, file_read, 3000, GAME, 0, .dur = 100, .ret = 42, .offset = FILE_NO_OFFSET, .sys = 2);
	trace__end(&t);
	expect_clean(&t);
	expect(&t, THREAD_SLICES "order by s.ts",
		"500,2000,uring_done,0,4242,files in flight 2\n1000,1000,uring_done,0,4242,files in flight\n"
		"2500,500,uring_done,0,4242,files in flight\n2900,100,file_read,0,4242,files\n");
	trace__close(&t);
}

static void test_tracks_more_overlaps_than_lanes_are_still_told(void **state)
{
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	for (u32 i = 0; i < LANES_MAX + 10; i++)
		PUT(&t, URING_DONE, uring_done, 10000 + i, GAME, 0, .dur = 5000);
	trace__end(&t);
	expect_clean(&t);
	expect(&t,
		"select count(*), sum(dur = 5000), sum(dur = 0 and extract_arg(arg_set_id, 'debug.dur') = 5000) from "
		"slice where name = 'uring_done'",
		"266,256,10\n");
	trace__close(&t);
}

static void test_tracks_args_are_written_by_their_units(void **state)
{
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	fault(&t, 5000, 400, GAME);
	PUT(&t, FILE_READ, file_read, 6000, RENDER, 0, .dur = 100, .ret = -5, .offset = FILE_NO_OFFSET, .cold = 4096,
		.sys = 2);
	trace__end(&t);
	expect_clean(&t);
	expect(&t,
		"select s.ts, s.dur, s.category, extract_arg(arg_set_id, 'debug.addr'), "
		"extract_arg(arg_set_id, 'debug.dur') is null, extract_arg(arg_set_id, 'debug.flags') like '%MAJOR%' "
		"from slice s where name = 'fault'",
		"4600,400,fault,139637976731648,1,1\n");
	expect(&t,
		"select extract_arg(arg_set_id, 'debug.sys'), extract_arg(arg_set_id, 'debug.offset'), "
		"extract_arg(arg_set_id, 'debug.cold'), extract_arg(arg_set_id, 'debug.ret') from slice where "
		"name = 'file_read'",
		"pread64,[NULL],4096,-5\n");
	trace__close(&t);
}

/* more values than the memo of what is interned has places: some share theirs with the name of the argument */
static void test_tracks_each_word_is_its_own(void **state)
{
	enum { READS = 8 * IID_MEMO };
	char expected[32];
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	for (u32 i = 1; i <= READS; i++)
		PUT(&t, FILE_READ, file_read, 5000 + i, RENDER, 0, .dev = i);
	trace__end(&t);
	expect_clean(&t);
	snprintf(expected, sizeof(expected), "%d,%d\n", READS, READS);
	expect(&t,
		"select count(*), sum(extract_arg(arg_set_id, 'debug.dev') = '0:' || (ts - 5000)) from slice "
		"where name = 'file_read'",
		expected);
	trace__close(&t);
}

static void test_tracks_every_kind_but_meta_and_sched_is_shown_without_a_line_of_its_own(void **state)
{
	u32 shown = 0;
	char expected[32];
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	for (u32 kind = 1; kind < EV_KINDS; kind++) {
		const struct ev_desc *d = ev__desc((u8)kind);
		union {
			struct ev_hdr h;
			u64 words[64];
		} r = {.words = {0}};

		if (!d || d->shape == SHAPE_META || d->shape == SHAPE_STATE || d->shape == SHAPE_COUNTER ||
			kind == EV_FRAME)
			continue;
		r.h = (struct ev_hdr){
			.ts = 1000 * kind, .tid = GAME, .kind = (u8)kind, .words = (u8)(d->size / 8 + d->has_text)};
		trace__put(&t, &r.h);
		shown++;
	}
	trace__end(&t);
	expect_clean(&t);
	snprintf(expected, sizeof(expected), "%u,%u\n", shown, shown);
	expect(&t, "select count(*), count(distinct name) from slice", expected);
	trace__close(&t);
}

static void test_tracks_hostile_text_stays_text(void **state)
{
	static const char text[] = "';drop table slice;--\"\xc3(\xff\x01";
	struct ev_message msg = {.hdr = HDR(MESSAGE, message, 5000, GAME, 0)};
	struct ev_note note = {.hdr = HDR(NOTE, note, 6000, 0, 0), .severity = 1};
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	put_thread(&t, RENDER, GAME, text);
	trace__put_text(&t, &msg, sizeof(msg), text, strlen(text));
	trace__put_text(&t, &note, sizeof(note), text, strlen(text));
	trace__end(&t);
	expect_clean(&t);
	expect(&t, "select s.name, extract_arg(arg_set_id, 'debug.text') from slice s order by ts",
		"message,\"';drop table slice;--\"\"\xef\xbf\xbd(\xef\xbf\xbd\x01\"\n"
		"note,\"';drop table slice;--\"\"\xef\xbf\xbd(\xef\xbf\xbd\x01\"\n");
	expect(&t, "select name from thread where tid = 4243",
		"\"';drop table slice;--\"\"\xef\xbf\xbd(\xef\xbf\xbd\x01\"\n");
	trace__close(&t);
}

/* more strings than the table holds, twice over: state is cleared, and what comes after can still be read */
static void test_tracks_intern_table_that_fills_is_begun_anew(void **state)
{
	enum { MESSAGES = 3 * INTERN_ENTRIES };
	char text[64];
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	for (u32 i = 0; i < MESSAGES; i++) {
		struct ev_message msg = {.hdr = HDR(MESSAGE, message, 5000 + i, GAME, 0)};

		snprintf(text, sizeof(text), "message %u", i);
		trace__put_text(&t, &msg, sizeof(msg), text, strlen(text));
	}
	trace__end(&t);
	expect_clean(&t);
	snprintf(text, sizeof(text), "%d,%d\n", MESSAGES, MESSAGES);
	expect(&t,
		"select count(*), sum(extract_arg(arg_set_id, 'debug.text') = 'message ' || (ts - 5000)) from slice "
		"where name = 'message' and category = 'frame'",
		text);
	trace__close(&t);
}

static void test_tracks_slices_are_whole_after_a_loss(void **state)
{
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	fault(&t, 5000, 400, GAME);
	PUT(&t, LOST, lost, 6000, 0, 0, .class = CLASS_FAULT, .count = 3, .since = 5000);
	fault(&t, 7000, 400, GAME);
	trace__end(&t);
	expect(&t, "select ts, dur, name, category from slice order by ts",
		"4600,400,fault,fault\n6000,0,3 fault events lost,lost\n6600,400,fault,fault\n");
	expect(&t, "select count(*) from stats where severity = 'error' and value > 0", "0\n");
	trace__close(&t);
}

static void fill(struct trace *t)
{
	trace__start(t);
	for (u64 i = 0; i < 5000; i++) {
		mark(t, i * 16 * MS, i);
		if (i)
			put_normal(t, i, (i - 1) * 16 * MS, i * 16 * MS);
		fault(t, i * 16 * MS + 500 * US, 20 * US, i % 2 ? GAME : RENDER);
	}
	trace__end(t);
}

static void test_tracks_same_records_give_the_same_bytes(void **state)
{
	char cmd[256];
	struct trace a, b;

	(void)state;
	fill(&a);
	fill(&b);
	snprintf(cmd, sizeof(cmd), "cmp '%s' '%s'", a.path, b.path);
	assert_true(trace__bytes(&a) > 1000);
	assert_int_equal(system(cmd), 0);
	trace__close(&a);
	trace__close(&b);
}

static void test_tracks_full_disk_is_an_error(void **state)
{
	struct trace t;
	int full = open("/dev/full", O_WRONLY);

	(void)state;
	assert_true(full >= 0);
	trace__open(&t, true);
	t.e->ops->close(t.e);
	t.e = perfetto__open(full, true);
	assert_non_null(t.e);
	PUT(&t, MIGRATE, migrate, 5000, GAME, 0, .from_cpu = 1);
	assert_true(t.e->ops->end(t.e, t.m, NULL) < 0);
	trace__close(&t);
	close(full);
}

/* Anything that a reader lets through: whole records of known kinds, whatever is in them. */
static void test_tracks_any_bytes_in_records_give_a_trace_that_loads(void **state)
{
	u64 seed = 42;
	struct trace t;

	(void)state;
	need_tp();
	trace__start(&t);
	for (u32 i = 0; i < 30000; i++) {
		union {
			struct ev_hdr h;
			u64 words[64];
		} r;
		const struct ev_desc *d;

		for (size_t w = 0; w < ARRAY_SIZE(r.words); w++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			r.words[w] = seed >> (seed >> 58);
		}
		d = ev__desc(r.h.kind);
		if (!d)
			continue;
		r.h.words = (u8)(d->size / 8 + (d->has_text ? r.h.words % 32 : 0));
		if (i % 3)
			r.h.ts = 1000 + i;
		r.h.tid %= 50;
		r.h.cpu %= i % 16 ? 4 : 65535;
		trace__put(&t, &r.h);
	}
	trace__end(&t);
	expect(&t, "select count(*) > 1000 from slice", "1\n");
	trace__close(&t);
}

static void test_tracks_an_empty_recording_is_a_trace(void **state)
{
	struct trace t;

	(void)state;
	need_tp();
	trace__open(&t, true);
	trace__end(&t);
	expect_clean(&t);
	expect(&t, "select count(*) from slice", "0\n");
	trace__close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tracks_head_tells_machine_clock_and_meta),
		cmocka_unit_test(test_tracks_each_frame_is_a_slice_and_a_slow_one_tells_why),
		cmocka_unit_test(test_tracks_a_frame_that_did_not_end_says_so),
		cmocka_unit_test(test_tracks_a_frame_of_a_source_that_was_left_is_not_shown),
		cmocka_unit_test(test_tracks_frames_come_first_in_the_process),
		cmocka_unit_test(test_tracks_spans_nest_and_those_that_cannot_get_another_lane),
		cmocka_unit_test(test_tracks_random_spans_keep_their_exact_times),
		cmocka_unit_test(test_tracks_async_work_never_shares_a_lane),
		cmocka_unit_test(test_tracks_more_overlaps_than_lanes_are_still_told),
		cmocka_unit_test(test_tracks_args_are_written_by_their_units),
		cmocka_unit_test(test_tracks_each_word_is_its_own),
		cmocka_unit_test(test_tracks_every_kind_but_meta_and_sched_is_shown_without_a_line_of_its_own),
		cmocka_unit_test(test_tracks_hostile_text_stays_text),
		cmocka_unit_test(test_tracks_intern_table_that_fills_is_begun_anew),
		cmocka_unit_test(test_tracks_slices_are_whole_after_a_loss),
		cmocka_unit_test(test_tracks_same_records_give_the_same_bytes),
		cmocka_unit_test(test_tracks_full_disk_is_an_error),
		cmocka_unit_test(test_tracks_any_bytes_in_records_give_a_trace_that_loads),
		cmocka_unit_test(test_tracks_an_empty_recording_is_a_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
