/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model.h"
#include "recfile.h"
#include "recording.h"

#define FRAMES 4096
static struct frame frames[FRAMES];
static u32 n_frames;

static struct model *model;

static void keep(struct model *m)
{
	const struct frame *f = model__ended_frame(m);

	if (f && n_frames < FRAMES)
		frames[n_frames++] = *f;
}

static void feed(struct model *m, u64 ts, u32 tid, u64 stream, u32 site, u64 number, u32 mark)
{
	struct ev_frame e = {.hdr = {.ts = ts, .tid = tid, .kind = EV_FRAME, .words = sizeof(e) / 8},
		.number = number,
		.stream = stream,
		.site = site,
		.mark = mark};

	assert_int_equal(model__event(m, &e.hdr), 0);
	keep(m);
}

static void say(struct model *m, const char *text)
{
	union {
		struct ev_hdr hdr;
		char bytes[16 + 64];
	} e = {.hdr = {.kind = EV_INFO, .words = sizeof(e) / 8}};

	strcpy(e.bytes + 16, text);
	assert_int_equal(model__event(m, &e.hdr), 0);
}

static int setup(void **state)
{
	n_frames = 0;
	model = model__new();
	return !model;
}

static int teardown(void **state)
{
	model__free(model);
	return 0;
}

#define MS NSEC_PER_MSEC

static void test_a_frame_runs_from_mark_to_mark(void **state)
{
	feed(model, 10 * MS, 1, 0, 0, 7, FRAME_MARK);
	assert_int_equal(n_frames, 0);
	feed(model, 26 * MS, 1, 0, 0, 8, FRAME_MARK);
	feed(model, 50 * MS, 2, 0, 0, 9, FRAME_MARK);
	assert_int_equal(n_frames, 2);
	assert_int_equal(frames[0].start, 10 * MS);
	assert_int_equal(frames[0].end, 26 * MS);
	assert_int_equal(frames[0].number, 8); /* a mark says which frame it ends */
	assert_int_equal(frames[1].number, 9);
	assert_int_equal(frames[1].index, 1);
	assert_int_equal(frames[1].tid, 2);
	assert_int_equal(model__stats(model)->counts[CLASS_FRAME], 3);
	assert_int_equal(model__stats(model)->frames, 2);
}

static void test_frames_without_a_number_take_their_index(void **state)
{
	feed(model, 1 * MS, 1, 0, 0, FRAME_NO_NUMBER, FRAME_MARK);
	feed(model, 20 * MS, 1, 0, 0, FRAME_NO_NUMBER, FRAME_MARK);
	feed(model, 40 * MS, 1, 0, 0, FRAME_NO_NUMBER, FRAME_MARK);
	assert_int_equal(frames[0].number, 0);
	assert_int_equal(frames[1].number, 1);
}

static void test_swapchains_and_sources_are_kept_apart(void **state)
{
	feed(model, 10 * MS, 1, 0xa, 0, 0, FRAME_MARK);
	feed(model, 11 * MS, 1, 0xb, 0, 0, FRAME_MARK);
	feed(model, 12 * MS, 1, 0xa, 1, 0, FRAME_MARK);
	feed(model, 26 * MS, 1, 0xa, 0, 1, FRAME_MARK);
	assert_int_equal(n_frames, 1);
	assert_int_equal(frames[0].end - frames[0].start, 16 * MS);
	assert_non_null(model__stream(model, 2));
	assert_null(model__stream(model, 3));
}

static void test_vulkan_layer_and_driver_are_one_present(void **state)
{
	u32 i;

	say(model, "probe.0=vulkan:liblayer.so+0x10");
	say(model, "probe.1=vulkan:libdriver.so+0x20");
	for (i = 0; i < 100; i++) { /* at 2000 fps: no time is too short for a frame */
		feed(model, 10 * MS + i * MS / 2, 1, 0xa, 0, FRAME_NO_NUMBER, FRAME_MARK);
		feed(model, 10 * MS + i * MS / 2 + 100, 1, 0xa, 1, FRAME_NO_NUMBER, FRAME_MARK);
	}
	assert_int_equal(n_frames, 99);
	assert_int_equal(model__stream(model, 0)->doubled, 100);
	/* another swapchain goes to the driver at once */
	feed(model, 70 * MS, 1, 0xb, 1, FRAME_NO_NUMBER, FRAME_MARK);
	feed(model, 71 * MS, 1, 0xb, 1, FRAME_NO_NUMBER, FRAME_MARK);
	assert_int_equal(n_frames, 100);
	/* the handle comes back with another device */
	feed(model, 2070 * MS, 1, 0xa, 1, FRAME_NO_NUMBER, FRAME_MARK);
	feed(model, 2080 * MS, 1, 0xa, 1, FRAME_NO_NUMBER, FRAME_MARK);
	assert_int_equal(n_frames, 102);
	assert_null(model__stream(model, 2));
}

static void test_pace_silence_and_the_thread_that_presents_are_recognised(void **state)
{
	const struct frame_stream *s;
	u64 ts = 10 * MS;
	u32 i;

	for (i = 0; i <= 320; i++, ts += 16666667) /* 60 fps, with a display's jitter */
		feed(model, ts + i % 5 * 100000, 1, 0, 0, FRAME_NO_NUMBER, FRAME_MARK);
	s = model__stream(model, 0);
	assert_in_range(s->steady_ns, 16400000, 17000000);
	assert_int_equal(s->silences + s->moves, 0);
	feed(model, ts + 4000 * MS, 2, 0, 0, FRAME_NO_NUMBER, FRAME_MARK); /* it loads; then another thread goes on */
	feed(model, ts + 4017 * MS, 2, 0, 0, FRAME_NO_NUMBER, FRAME_MARK);
	assert_int_equal(s->silences, 1);
	assert_in_range(s->silent_ns, 4000 * MS, 4020 * MS);
	assert_int_equal(s->moves, 1);
	assert_int_equal(s->tid, 2);
	for (i = 0; i < 640; i++) /* as fast as it can */
		feed(model, ts += 4020 * MS + i * i % 13 * MS, 2, 7, 0, FRAME_NO_NUMBER, FRAME_MARK);
	for (i = 0, ts += MS; i < 640; i++)
		feed(model, ts += 2 * MS + i * i % 13 * MS, 2, 8, 0, FRAME_NO_NUMBER, FRAME_MARK);
	assert_int_equal(model__stream(model, 1)->silences, 639);
	assert_int_equal(model__stream(model, 2)->steady_ns, 0);
}

static void test_usdt_sites_of_one_provider_are_one_source(void **state)
{
	say(model, "probe.3=usdt:redframe:frame");
	say(model, "probe.4=usdt:redframe:frame");
	say(model, "probe.5=usdt:redframe:frame_begin");
	feed(model, 10 * MS, 1, 0, 3, 1, FRAME_MARK);
	feed(model, 20 * MS, 1, 0, 4, 2, FRAME_MARK);
	feed(model, 30 * MS, 1, 0, 3, 3, FRAME_MARK);
	assert_int_equal(n_frames, 2);
	assert_null(model__stream(model, 1));
}

static void test_frames_run_from_begin_to_begin_and_the_last_to_its_end(void **state)
{
	const struct ev_hdr *end;

	feed(model, 5 * MS, 1, 0, 0, 9, FRAME_END); /* of a frame that began before the recording */
	feed(model, 10 * MS, 1, 0, 0, 10, FRAME_BEGIN);
	feed(model, 18 * MS, 1, 0, 0, 10, FRAME_END);
	feed(model, 26 * MS, 1, 0, 0, 11, FRAME_BEGIN);
	feed(model, 30 * MS, 1, 0, 0, 0, FRAME_MARK); /* ignored */
	feed(model, 34 * MS, 1, 0, 0, 11, FRAME_END);
	assert_int_equal(n_frames, 1);
	assert_int_equal(frames[0].number, 10);
	assert_int_equal(frames[0].start, 10 * MS);
	assert_int_equal(frames[0].end, 26 * MS);
	end = model__finish(model);
	assert_non_null(end);
	assert_int_equal(end->ts, 34 * MS);
	assert_int_equal(model__ended_frame(model)->number, 11);
	assert_int_equal(model__ended_frame(model)->end, 34 * MS);
	assert_null(model__finish(model));
	assert_null(model__ended_frame(model));
}

static void test_a_game_with_ends_only_has_frames_between_them(void **state)
{
	feed(model, 10 * MS, 1, 0, 0, 1, FRAME_END);
	feed(model, 20 * MS, 1, 0, 0, 2, FRAME_END);
	assert_int_equal(n_frames, 1);
	assert_int_equal(frames[0].number, 2);
	assert_null(model__finish(model));
}

static void test_a_present_seen_twice_counts_once(void **state)
{
	u64 t;
	int i;

	for (i = 0, t = MS; i < 600; i++, t += 16667000) {
		feed(model, t, 1, 0, 0, FRAME_NO_NUMBER, FRAME_MARK);
		feed(model, t + 30000, 1, 0, 0, FRAME_NO_NUMBER, FRAME_MARK);
	}
	/* before the usual gap is known a few go through */
	assert_in_range(n_frames, 599, 602);
	assert_in_range(model__stream(model, 0)->doubled, 597, 600);
}

static void test_a_game_of_2200_frames_a_second_counts_every_one(void **state)
{
	u64 t = MS;
	int i;

	for (i = 0; i < 2200; i++) {
		feed(model, t, 1, 0, 0, FRAME_NO_NUMBER, FRAME_MARK);
		/* 0.45 ms with some noise, and a hitch of a second */
		t += 450000 + (u64)(i * 7919 % 200000) - 100000 + (i == 1000 ? NSEC_PER_SEC : 0);
	}
	assert_int_equal(n_frames, 2199);
	assert_int_equal(model__stream(model, 0)->doubled, 0);
}

static void test_usdt_marks_are_never_taken_for_doubled(void **state)
{
	u64 t;
	int i;

	say(model, "probe.0=usdt:redframe:frame");
	for (i = 0, t = MS; i < 100; i++, t += i % 2 ? 16667000 : 1000)
		feed(model, t, 1, 0, 0, (u64)i, FRAME_MARK);
	assert_int_equal(n_frames, 99);
}

static void lose(struct model *m, u64 since, u64 ts, u32 class, u32 count)
{
	struct ev_lost e = {.hdr = {.ts = ts, .kind = EV_LOST, .words = sizeof(e) / 8},
		.class = class,
		.count = count,
		.since = since};

	assert_int_equal(model__event(m, &e.hdr), 0);
}

static void test_losses_are_spread_over_the_frames_that_they_hurt(void **state)
{
	u64 classes[CLASS_COUNT] = {0};

	feed(model, 10 * MS, 1, 0, 0, 0, FRAME_MARK);
	lose(model, 12 * MS, 14 * MS, CLASS_FILE, 5);
	feed(model, 20 * MS, 1, 0, 0, 1, FRAME_MARK);
	assert_int_equal(frames[0].lost, 5);
	assert_int_equal(frames[0].lost_class[CLASS_FILE], 5);
	lose(model, 18 * MS, 26 * MS, CLASS_SCHED, 100); /* told of after the frame's end */
	feed(model, 30 * MS, 1, 0, 0, 2, FRAME_MARK);
	assert_int_equal(frames[1].lost, 75);
	assert_int_equal(model__lost_in(model, 10 * MS, 20 * MS, classes), 30);
	assert_int_equal(classes[CLASS_FILE], 5);
	assert_int_equal(classes[CLASS_SCHED], 25);
	assert_int_equal(model__lost_in(model, 40 * MS, 50 * MS, NULL), 0);
	assert_int_equal(model__lost_in(model, 25 * MS + 999999, 26 * MS, NULL), 1); /* never rounded to nothing */
}

static void test_time_that_goes_back_makes_no_frame(void **state)
{
	feed(model, 20 * MS, 1, 0, 0, 0, FRAME_MARK);
	feed(model, 20 * MS, 1, 0, 0, 1, FRAME_MARK);
	feed(model, 10 * MS, 1, 0, 0, 2, FRAME_MARK);
	assert_int_equal(n_frames, 0);
	feed(model, 30 * MS, 1, 0, 0, 3, FRAME_MARK);
	assert_int_equal(n_frames, 1);
	assert_int_equal(frames[0].start, 20 * MS);
}

static void test_no_frame_reaches_over_a_change_of_source(void **state)
{
	feed(model, 10 * MS, 1, 5, 0, FRAME_NO_NUMBER, FRAME_MARK);
	feed(model, 20 * MS, 1, 5, 0, FRAME_NO_NUMBER, FRAME_MARK);
	say(model, "frame.left=uprobe:liba:present until 0.020 s");
	assert_int_equal(model__stream(model, 0)->open_since, 0); /* and nothing waits for its end */
	feed(model, 900 * MS, 1, 5, 0, FRAME_NO_NUMBER, FRAME_MARK);
	feed(model, 910 * MS, 1, 5, 0, FRAME_NO_NUMBER, FRAME_MARK);
	assert_int_equal(n_frames, 2);
	assert_int_equal(frames[0].end, 20 * MS);
	assert_int_equal(frames[1].start, 900 * MS);
}

static void test_streams_without_end_stay_bounded(void **state)
{
	u64 i;

	for (i = 0; i < 100000; i++)
		feed(model, MS + i * MS, 1, i, 0, 0, FRAME_MARK);
	assert_null(model__stream(model, 1024));
	assert_int_equal(model__stats(model)->kinds[EV_FRAME], 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_frame_runs_from_mark_to_mark, setup, teardown),
		cmocka_unit_test_setup_teardown(test_frames_without_a_number_take_their_index, setup, teardown),
		cmocka_unit_test_setup_teardown(test_swapchains_and_sources_are_kept_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_vulkan_layer_and_driver_are_one_present, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_pace_silence_and_the_thread_that_presents_are_recognised, setup, teardown),
		cmocka_unit_test_setup_teardown(test_usdt_sites_of_one_provider_are_one_source, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_frames_run_from_begin_to_begin_and_the_last_to_its_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_game_with_ends_only_has_frames_between_them, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_present_seen_twice_counts_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_game_of_2200_frames_a_second_counts_every_one, setup, teardown),
		cmocka_unit_test_setup_teardown(test_usdt_marks_are_never_taken_for_doubled, setup, teardown),
		cmocka_unit_test_setup_teardown(test_losses_are_spread_over_the_frames_that_they_hurt, setup, teardown),
		cmocka_unit_test_setup_teardown(test_time_that_goes_back_makes_no_frame, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_frame_reaches_over_a_change_of_source, setup, teardown),
		cmocka_unit_test_setup_teardown(test_streams_without_end_stay_bounded, setup, teardown),
	};

	return cmocka_run_group_tests_name("frames", tests, NULL, NULL);
}
