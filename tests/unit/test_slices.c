/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Exports of a part of a recording and in several files: what is in which, and that each stands alone.
 */
#include "perfetto_fixture.h"

#include <errno.h>

#include "explain.h"
#include "log.h"
#include "recfile.h"
#include "recording.h"
#include "replay.h"
#include "selection.h"
#include "slices.h"

#define FRAMES   400 /* of 10 ms from 1 s on; frame 200 is slow: it takes 60 ms */
#define SLOW     200
#define AUDIT    "select name,value from stats where severity in ('error','data_loss') and value>0"
#define N_FRAMES "select count(*) from slice where category in ('frame','slow_frame')"

struct cut {
	char dir[32];
	u32 reads; /* beside each frame, to fill files */
	struct selection_options only;
	u64 split;
	const struct exporter_ops *format;
	int found; /* what selection__find returned */
	u32 files;
};

static u64 frame_end_ms(u32 frame)
{
	return 1000 + frame * 10 + (frame >= SLOW ? 50 : 0);
}

/* A frame thread, and a worker with a lock wait of 800 ms that ends at 1.9 s; they take turns on CPU 0. */
static int record(u32 reads)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	int fd;

	fprintf(f,
		"0 0 0 clock monotonic=1 realtime=2\n0 0 0 info text=\"game.tgid=100\"\n"
		"0 0 0 info text=\"kernel.release=6.18.44\"\n0 0 0 info text=\"budget.ms=16.667\"\n"
		"0 100 0 process parent=1 nspid=100 cmdline=\"./game\\0\"\n"
		"0 100 0 thread tgid=100 nstid=100 name=\"Main\"\n0 101 0 thread tgid=100 nstid=101 name=\"Worker\"\n"
		"0 0 0 note severity=warning class=lock text=\"said at the beginning\"\n"
		"1000ms 100 0 frame number=0 site=0\n");
	for (u32 i = 1; i <= FRAMES; i++) {
		u64 end = frame_end_ms(i), ms = end - 9;

		fprintf(f,
			"%llums 100 0 switch next_tid=101 prev_state=S flags=GAME|NEXT_GAME prev_prio=120 "
			"next_prio=120\n",
			(unsigned long long)ms);
		fprintf(f,
			"%llums 101 0 switch next_tid=100 prev_state=S flags=GAME|NEXT_GAME prev_prio=120 "
			"next_prio=120\n",
			(unsigned long long)ms + 2);
		for (u32 k = 0; k < reads; k++)
			fprintf(f, "%llu 101 0 file_read dur=1us offset=%u ret=4096 sys=pread64\n",
				(unsigned long long)(ms * NSEC_PER_MSEC + (k + 1) * 10000), k);
		if (ms == 1891)
			fprintf(f,
				"1900ms 101 0 lock_wait dur=800ms addr=0x2000 val=2 owner=100 op=FUTEX_WAIT words=1\n");
		fprintf(f, "%llums 100 0 frame number=%u site=0\n", (unsigned long long)end, i);
	}
	fclose(f);
	fd = recfile__from_string(text);
	assert_true(fd >= 0);
	free(text);
	return fd;
}

static void export(struct cut *c)
{
	char path[96];
	struct model *m = model__new();
	struct explain_options xo;
	struct explain *x;
	struct selection only;
	struct exporter *e;
	struct recording r;

	strcpy(c->dir, "/tmp/redframe-test-XXXXXX");
	assert_non_null(mkdtemp(c->dir));
	assert_int_equal(recording__open_fd(&r, record(c->reads)), 0);
	c->found = selection__find(&only, &r, NULL, &c->only);
	if (!c->found) {
		const struct slices_options o = {
			.format = c->format ? c->format : &exporter_perfetto,
			.path = path,
			.split_bytes = c->split,
			.only = only.v,
			.n_only = only.n,
		};

		snprintf(path, sizeof(path), "%s/run.pftrace", c->dir);
		assert_int_equal(slices__open(&e, &o), 0);
		assert_int_equal(replay__prepare(&r, m), 0);
		replay__explain_options(m, &xo);
		x = explain__new(&xo);
		assert_int_equal(replay__run(&r, m, x, &e, 1, NULL), 0);
		c->files = slices__files(e);
		e->ops->close(e);
		explain__free(x);
	}
	selection__free(&only);
	model__free(m);
	recording__close(&r);
}

static struct trace file(const struct cut *c, u32 i)
{
	struct trace t = {0};

	snprintf(t.path, sizeof(t.path), i ? "%s/run-%u.pftrace" : "%s/run.pftrace", c->dir, i + 1);
	return t;
}

static void clean(struct cut *c)
{
	for (u32 i = 0; i < c->files; i++)
		unlink(file(c, i).path);
	assert_int_equal(rmdir(c->dir), 0); /* there was no other file */
}

static long number(const struct cut *c, u32 i, const char *query)
{
	struct trace t = file(c, i);
	char *rows = sql(&t, query);
	long n = strtol(rows, NULL, 10);

	free(rows);
	return n;
}

static void test_without_options_all_is_in_one_file(void **state)
{
	struct cut c = {};
	struct trace t;

	need_tp();
	export(&c);
	assert_int_equal(c.files, 1);
	t = file(&c, 0);
	expect(&t, AUDIT, "");
	assert_int_equal(number(&c, 0, N_FRAMES), FRAMES);
	assert_int_equal(number(&c, 0, "select count(*) from sched"), 2 * FRAMES);
	clean(&c);
}

/* a file of nearly no bytes: a cut at each frame that was written out */
static void test_each_frame_is_in_one_file_and_each_file_stands_alone(void **state)
{
	struct cut c = {.split = 1, .reads = 100};
	long frames = 0;

	need_tp();
	export(&c);
	assert_true(c.files >= 2);
	for (u32 i = 0; i < c.files; i++) {
		struct trace t = file(&c, i);

		expect(&t, AUDIT, "");
		expect(&t,
			"select name from thread where utid in (select utid from sched) and tid in (100,101) order by "
			"tid",
			"Main\nWorker\n");
		assert_int_equal(
			number(&c, i, "select count(*) from slice where name like '%said at the beginning%'"), i > 0);
		frames += number(&c, i, N_FRAMES);
		/* what ran at the cut runs on: the CPU is never without a thread */
		assert_int_equal(number(&c, i,
					 "select count(*) from (select ts,dur,lead(ts) over (order by ts) as next "
					 "from sched) where dur>=0 and next is not null and ts+dur!=next"),
			0);
	}
	assert_int_equal(frames, FRAMES);
	clean(&c);
}

static void test_a_slice_by_frames_has_these_frames(void **state)
{
	struct cut c = {.only = {.frames = "50..59"}};
	struct trace t;

	need_tp();
	export(&c);
	t = file(&c, 0);
	expect(&t, AUDIT, "");
	assert_int_equal(number(&c, 0, N_FRAMES), 10);
	assert_int_equal(number(&c, 0, "select min(ts)/1000000 from slice where category='frame'"), frame_end_ms(49));
	assert_int_equal(
		number(&c, 0, "select max(ts+dur)/1000000 from slice where category='frame'"), frame_end_ms(59));
	clean(&c);
}

/* the wait from 1.1 s to 1.9 s touches a slice from 1.4 s to 1.6 s, and one from 1.5 s on */
static void test_a_wait_over_the_cut_is_cut_off_there_and_says_how_long_it_was(void **state)
{
	static const struct {
		double from, to;
		long begin_ms, dur_ms;
	} cases[] = {{0.4, 0.6, 1400, 200}, {0.5, 0, 1500, 400}};

	need_tp();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cut c = {.only = {.from_s = cases[i].from, .to_s = cases[i].to}};
		struct trace t;

		export(&c);
		t = file(&c, 0);
		expect(&t, AUDIT, "");
		assert_int_equal(
			number(&c, 0, "select ts/1000000 from slice where name='lock_wait'"), cases[i].begin_ms);
		assert_int_equal(
			number(&c, 0, "select dur/1000000 from slice where name='lock_wait'"), cases[i].dur_ms);
		assert_int_equal(number(&c, 0,
					 "select int_value from args join slice using(arg_set_id) where "
					 "slice.name='lock_wait' and key='debug.dur'"),
			800000000);
		clean(&c);
	}
}

static void test_around_slow_frames_leaves_out_the_rest(void **state)
{
	struct cut c = {.only = {.around_slow = true}};
	long frames;

	need_tp();
	export(&c);
	frames = number(&c, 0, N_FRAMES);
	assert_int_equal(number(&c, 0, "select count(*) from slice where category='slow_frame'"), 1);
	/* half a second of frames on both sides, and those that reach over the ends */
	assert_in_range(frames, 1 + 2 * 50, 1 + 2 * 51);
	clean(&c);
}

static void test_what_cannot_be_selected_is_refused(void **state)
{
	static const struct selection_options wrong[] = {{.frames = "1..x"}, {.frames = "9..3"}, {.frames = "-4"},
		{.frames = ""}, {.from_s = 2, .to_s = 1}, {.frames = "1", .around_slow = true}};
	struct cut none = {.only = {.frames = "5000.."}};

	log_level = LOG_QUIET - 1;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct cut c = {.only = wrong[i]};

		export(&c);
		assert_int_equal(c.found, -EINVAL);
		clean(&c);
	}
	export(&none);
	assert_int_equal(none.found, -ENOENT);
	clean(&none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_options_all_is_in_one_file),
		cmocka_unit_test(test_each_frame_is_in_one_file_and_each_file_stands_alone),
		cmocka_unit_test(test_a_slice_by_frames_has_these_frames),
		cmocka_unit_test(test_a_wait_over_the_cut_is_cut_off_there_and_says_how_long_it_was),
		cmocka_unit_test(test_around_slow_frames_leaves_out_the_rest),
		cmocka_unit_test(test_what_cannot_be_selected_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
