/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The time index: the same words as without it, from a small part of the file; and never trusted.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "explain.h"
#include "long_recording.h"
#include "replay.h"
#include "time_index.h"

#define FRAMES 6000

static void same(const struct long_recording *with, const struct long_recording *without, const char *words)
{
	int a, b;
	char *x = long_recording__explain(with->path, words, &a),
	     *y = long_recording__explain(without->path, words, &b);

	assert_int_equal(a, b);
	assert_string_equal(x, y);
	assert_true(strlen(x) > 100);
	free(x);
	free(y);
}

static void test_a_frame_and_a_slice_read_the_same_with_and_without_the_index(void **state)
{
	static const u32 frames[] = {1, 77, 4927, 5004, 5158, 5500, FRAMES - 1, 1005000};
	struct long_recording with, without;
	char words[64];

	long_recording__make(&with, FRAMES, true, NULL);
	long_recording__make(&without, FRAMES, false, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		snprintf(words, sizeof(words), "--frame %u", frames[i]);
		same(&with, &without, words);
	}
	same(&with, &without, "--from 50 --to 60");
	same(&with, &without, "--from 50 --to 60 --json");
	same(&with, &without, "--from 90 --budget auto --json");
	same(&with, &without, "--to 5");
	unlink(with.path);
	unlink(without.path);
}

/* what a long-lived owner sleeps in, a condition variable's name, the scene, what was left out: known from long ago */
static void test_what_was_learnt_long_before_is_known(void **state)
{
	struct long_recording g;
	int status;
	char *said;

	long_recording__make(&g, FRAMES, true, NULL);
	said = long_recording__explain(g.path, "--frame 4927", &status); /* 64 × 77 ends it */
	assert_non_null(strstr(said, "held by Sleeper, which"));
	assert_non_null(strstr(said, "scene harbour"));
	free(said);
	said = long_recording__explain(g.path, "--frame 5004", &status);
	assert_non_null(strstr(said, "condition variable at 0x600000"));
	free(said);
	unlink(g.path);
}

/* through the index as explain does */
static u64 bytes_for(const char *path, u64 number, u64 *size)
{
	struct index_begin b;
	struct explain_options o;
	struct model *m = model__new();
	struct time_index ix;
	struct recording r;
	struct explain *x;
	struct replay replay = {.index = &ix, .begin = &b};
	u64 bytes, i = 0;

	assert_int_equal(recording__open(&r, path), 0);
	assert_true(time_index__open(&ix, &r));
	while (ix.frames[i].number != number)
		assert_true(++i < ix.list.n_frames);
	time_index__find(&ix, ix.frames[i].end, ix.frames[i].end, ix.frames[i].stream, &b);
	replay.until = b.until;
	assert_int_equal(replay__prepare_from(&r, m, &ix), 0);
	replay__explain_options(m, &o);
	x = explain__new(&o);
	assert_int_equal(replay__run(&r, m, x, NULL, 0, &replay), 0);
	bytes = r.bytes_read + ix.list.n_points * sizeof(*ix.points) + ix.list.n_frames * sizeof(*ix.frames);
	*size = r.size;
	explain__free(x);
	model__free(m);
	time_index__free(&ix);
	recording__close(&r);
	return bytes;
}

static void test_one_frame_takes_a_small_part_of_a_long_recording(void **state)
{
	struct long_recording g;
	u64 size;

	long_recording__make(&g, 4 * FRAMES, true, NULL);
	assert_true(bytes_for(g.path, 20000, &size) < size / 16);
	assert_true(bytes_for(g.path, 10, &size) < size / 16);
	unlink(g.path);
}

static void test_a_cut_recording_has_no_index_and_is_read(void **state)
{
	struct time_index ix;
	struct recording r;
	struct long_recording g;
	int status;
	char *said;

	long_recording__make(&g, 2000, true, NULL);
	assert_int_equal(recording__open(&r, g.path), 0);
	assert_true(time_index__open(&ix, &r));
	time_index__free(&ix);
	assert_int_equal(truncate(g.path, (off_t)r.end - 8), 0);
	recording__close(&r);
	assert_int_equal(recording__open(&r, g.path), 0);
	assert_false(time_index__open(&ix, &r));
	recording__close(&r);
	said = long_recording__explain(g.path, "--frame 1000", &status);
	assert_int_equal(status, EXIT_OK);
	assert_non_null(strstr(said, "frame 1000"));
	free(said);
	unlink(g.path);
}

static void test_a_damaged_or_hostile_index_does_no_harm(void **state)
{
	struct recording r;
	struct long_recording g;
	u64 from, to;
	int fd, status;
	char *good, *said;

	long_recording__make(&g, 900, true, NULL);
	good = long_recording__explain(g.path, "--frame 800", &status);
	assert_int_equal(recording__open(&r, g.path), 0);
	from = r.end;
	to = r.size - sizeof(struct index_tail);
	recording__close(&r);
	fd = open(g.path, O_RDWR);
	for (u32 i = 0; i < 48; i++) {
		/* half of them in the list, near the end */
		u64 at = i % 2 ? to - 8 * (1 + long_recording__random(&g, 120))
			       : from + 8 * long_recording__random(&g, (to - from) / 8),
		    was, bad;

		assert_int_equal(pread(fd, &was, 8, (off_t)at), 8);
		bad = i % 3 ? was ^ 1ULL << long_recording__random(&g, 64)
			    : long_recording__random(&g, ~0U) << long_recording__random(&g, 33);
		assert_int_equal(pwrite(fd, &bad, 8, (off_t)at), 8);
		if (i % 4 < 3)
			long_recording__mend_index(fd);
		said = long_recording__explain(g.path, "--frame 800", &status);
		assert_true(status == EXIT_OK || status == EXIT_NOT_MEASURED || status == EXIT_USAGE);
		if (i % 4 == 3 && i % 2) /* not mended, in the list: read whole */
			assert_string_equal(said, good);
		free(said);
		assert_int_equal(pwrite(fd, &was, 8, (off_t)at), 8);
		long_recording__mend_index(fd);
	}
	close(fd);
	said = long_recording__explain(g.path, "--frame 800", &status);
	assert_string_equal(said, good);
	free(said);
	free(good);
	unlink(g.path);
}

static void test_times_that_hold_no_frame_say_so(void **state)
{
	struct long_recording g;
	int status;

	long_recording__make(&g, 500, true, NULL);
	free(long_recording__explain(g.path, "--from 100", &status));
	assert_int_equal(status, EXIT_NOT_MEASURED);
	free(long_recording__explain(g.path, "--frame 499 --from 1", &status));
	assert_int_equal(status, EXIT_USAGE);
	unlink(g.path);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_frame_and_a_slice_read_the_same_with_and_without_the_index),
		cmocka_unit_test(test_what_was_learnt_long_before_is_known),
		cmocka_unit_test(test_one_frame_takes_a_small_part_of_a_long_recording),
		cmocka_unit_test(test_a_cut_recording_has_no_index_and_is_read),
		cmocka_unit_test(test_a_damaged_or_hostile_index_does_no_harm),
		cmocka_unit_test(test_times_that_hold_no_frame_say_so),
	};

	/* nothing is kept elsewhere: test_kept_index */
	if (setenv("REDFRAME_CACHE", "", 1))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
