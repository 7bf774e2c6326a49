// SPDX-License-Identifier: GPL-2.0-only
/* The time index that record writes: of a real game, it reads as without. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "live.h"
#include "recording.h"

#define FRAMES "1680" /* some 6 MiB, and more where other processes work */

static void record(struct live *l)
{
	char game[PATH_MAX];
	char *argv[] = {(char *)live__program(), "record", "-q", "--sample", "10000", "--budget", "240fps", "-o",
		l->recording, "--no-trace", "--", game, "--quiet", "--fps", "240", "--every", "180", "--hitch",
		"lock,read,chain", "--frames", FRAMES, NULL};

	snprintf(game, sizeof(game), "%s/examples/hitches", LIVE_BUILD);
	l->redframe = live__spawn(l, "said", argv);
	live__end_redframe(l);
}

/* the records alone */
static void copy_records(const struct live *l, const char *path)
{
	int from = open(l->recording, O_RDONLY | O_CLOEXEC), to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct recording r;
	off_t at = 0;

	assert_int_equal(recording__open(&r, l->recording), 0);
	if (r.end >= r.size)
		fail_msg("of %llu bytes, without an index; redframe said: %s", (unsigned long long)r.size, l->said);
	while (at < (off_t)r.end)
		assert_true(sendfile(to, from, &at, r.end - (size_t)at) > 0);
	recording__close(&r);
	close(from);
	close(to);
}

static char *explain(struct live *l, const char *path, const char *option, const char *value)
{
	char *argv[] = {(char *)live__program(), "explain", (char *)path, (char *)option, (char *)value, NULL};
	int status;
	char *text = live__output(l, &status, argv);

	assert_int_equal(status, 0);
	return text;
}

static void test_frames_and_times_of_a_real_recording_read_the_same_without_it(void **state)
{
	static const char *const asked[][2] = {
		{"--frame", "3"}, {"--frame", "1000"}, {"--frame", "1260"}, {"--frame", "1440"}, {"--from", "6"}};
	char path[160];
	struct live l;

	live__init(&l);
	record(&l);
	snprintf(path, sizeof(path), "%s/plain.redframe", l.dir);
	copy_records(&l, path);
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		char *with = explain(&l, l.recording, asked[i][0], asked[i][1]);
		char *without = explain(&l, path, asked[i][0], asked[i][1]);

		assert_string_equal(with, without);
		assert_true(strlen(with) > 100);
		free(with);
		free(without);
	}
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_frames_and_times_of_a_real_recording_read_the_same_without_it),
};
LIVE_MAIN(tests)
