/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A recording without a time index, cut off as a rule, is read whole once; the index made then is kept in the user's
 * cache, says the same, and is not trusted either.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "explain.h"
#include "explain_view.h"
#include "log.h"
#include "long_recording.h"
#include "replay.h"
#include "time_index.h"

#define LONG_FRAMES 7200 /* more than INDEX_MADE_BYTES */

static char cache[] = "/tmp/redframe-test-XXXXXX";

/* What `explain --verbose` says it has read; *size: of how much. */
static u64 bytes_told(const char *path, const char *words, u64 *size)
{
	int said = memfd_create("said", 0), was = dup(STDERR_FILENO), status;
	enum log_level level = log_level;
	unsigned long long read = 0, all = 0;
	char text[512] = "";

	fflush(stderr);
	dup2(said, STDERR_FILENO);
	free(long_recording__explain(path, words, &status));
	log_level = level;
	fflush(stderr);
	dup2(was, STDERR_FILENO);
	close(was);
	assert_true(pread(said, text, sizeof(text) - 1, 0) > 0);
	close(said);
	assert_int_equal(status, EXIT_OK);
	assert_int_equal(sscanf(text, "redframe: %llu of %llu bytes were read", &read, &all), 2);
	*size = all;
	return read;
}

/* once for what holds for all of it, and again up to there */
static void test_a_cut_recording_is_not_read_beyond_what_is_asked_for(void **state)
{
	struct long_recording cut;
	u64 size, read;

	long_recording__make(&cut, 6000, false, NULL);
	assert_int_equal(truncate(cut.path, (off_t)(cut.w.bytes - 8)), 0);
	read = bytes_told(cut.path, "--from 10 --to 12 --verbose", &size);
	assert_in_range(read, size, size + size / 4);
	assert_true(bytes_told(cut.path, "--from 10 --verbose", &size) >= 2 * size - (2u << 20));
	unlink(cut.path);
}

/* The path of the one index that is kept; false: there is none. */
static bool find_kept(char path[PATH_MAX])
{
	char dir[64];
	struct dirent *e;
	DIR *d;
	u32 n = 0;

	snprintf(dir, sizeof(dir), "%s/indexes", cache);
	d = opendir(dir);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.' && ++n)
			snprintf(path, PATH_MAX, "%s/%s", dir, e->d_name);
	if (d)
		closedir(d);
	assert_true(n <= 1);
	return n;
}

static void forget_kept(void)
{
	char path[PATH_MAX];

	if (find_kept(path))
		assert_int_equal(unlink(path), 0);
}

/* What is said of a frame by whoever reads all of it, without any index: the caller frees. */
static char *read_whole(const char *path, u64 number)
{
	struct view *view = view__new(&(struct view_options){.has_frame = true, .frame = number});
	struct replay replay = {.verdict = view__verdict, .arg = view};
	struct model *m = model__new();
	struct explain_options o;
	struct recording r;
	struct explain *x;
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(recording__open(&r, path), 0);
	assert_int_equal(replay__prepare(&r, m), 0);
	replay__explain_options(m, &o);
	o.has_frame = true;
	o.frame = number;
	x = explain__new(&o);
	assert_int_equal(replay__run(&r, m, x, NULL, 0, &replay), 0);
	assert_int_equal(view__print(view, out, NULL, NULL, &r), 0);
	fclose(out);
	explain__free(x);
	model__free(m);
	view__free(view);
	recording__close(&r);
	return text;
}

static void same_as_whole(const char *path, u64 number)
{
	char words[64], *a, *b;
	int status;

	snprintf(words, sizeof(words), "--frame %llu", (unsigned long long)number);
	a = long_recording__explain(path, words, &status);
	b = read_whole(path, number);
	assert_int_equal(status, EXIT_OK);
	assert_string_equal(a, b);
	assert_true(strlen(a) > 100);
	free(a);
	free(b);
}

static void test_a_recording_cut_anywhere_is_read_once_and_then_in_part(void **state)
{
	static const u32 frames[] = {1, 5005, 6930, 1005000};
	char path[PATH_MAX];
	u64 size, read;
	struct long_recording g;

	long_recording__make(&g, LONG_FRAMES, false, NULL);
	for (u64 cut = g.w.bytes - 8; cut > INDEX_MADE_BYTES; cut -= 300003 + long_recording__random(&g, 9)) {
		assert_int_equal(truncate(g.path, (off_t)cut), 0);
		read = bytes_told(g.path, "--frame 5005 --verbose", &size); /* the index kept before is not its own */
		if (cut == g.w.bytes - 8) /* the names of code are there: they hold from the beginning on */
			assert_in_range(read, 3 * size, 3 * size + size / 3);
		else
			assert_in_range(read, size, size + size / 3);
		assert_true(bytes_told(g.path, "--frame 5005 --verbose", &size) < size / 8);
		assert_true(bytes_told(g.path, "--from 60 --to 62 --verbose", &size) < size / 2);
		for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
			same_as_whole(g.path, frames[i]);
	}
	assert_true(find_kept(path));
	forget_kept();
	unlink(g.path);
}

/* another process turned out to be the game, or another one its child: from the beginning on, to who reads all */
static void test_what_turns_out_late_holds_from_the_beginning(void **state)
{
	u64 size, read;
	struct long_recording g;

	for (const char *const *late = (const char *const[]){"game.tgid=777", "child.104=100", "game.tgid=100",
		     "session.attach_ms=3", NULL};
		*late; late++) {
		long_recording__make(&g, LONG_FRAMES, false, *late);
		assert_int_equal(truncate(g.path, (off_t)(g.w.bytes - 40000)), 0);
		read = bytes_told(g.path, "--frame 4927 --verbose", &size);
		if (!strcmp(*late, "game.tgid=777") || !strncmp(*late, "child.", 6))
			assert_in_range(read, 2 * size + size / 4, 3 * size);
		else
			assert_in_range(read, size, size + size / 3);
		same_as_whole(g.path, 77);
		same_as_whole(g.path, 4927);
		forget_kept();
		unlink(g.path);
	}
}

/* whoever recorded it was killed before it came to that */
static void test_a_whole_recording_without_an_index_gets_one_too(void **state)
{
	struct long_recording g;
	u64 size;

	long_recording__make(&g, LONG_FRAMES, false, NULL);
	same_as_whole(g.path, 4927);
	assert_true(bytes_told(g.path, "--frame 5004 --verbose", &size) < size / 8);
	same_as_whole(g.path, 5004);
	forget_kept();
	unlink(g.path);
}

static void test_where_nothing_is_kept_it_reads_the_same(void **state)
{
	char path[PATH_MAX];
	struct long_recording g;

	long_recording__make(&g, LONG_FRAMES, false, NULL);
	setenv("REDFRAME_CACHE", "", 1);
	same_as_whole(g.path, 6930);
	setenv("REDFRAME_CACHE", cache, 1);
	assert_false(find_kept(path));
	unlink(g.path);
}

static void test_what_begins_at_the_beginning_needs_none(void **state)
{
	char path[PATH_MAX];
	struct long_recording g;
	int status;

	long_recording__make(&g, LONG_FRAMES, false, NULL);
	for (const char *const *words = (const char *const[]){"--to 5", "--frame 50 --json", "--worst 3", NULL}; *words;
		words++) {
		free(long_recording__explain(g.path, *words, &status));
		assert_int_equal(status, EXIT_OK);
		assert_false(find_kept(path));
	}
	unlink(g.path);
}

static void test_a_kept_index_that_is_damaged_or_not_ours_is_made_again(void **state)
{
	char path[PATH_MAX];
	struct long_recording g;
	u64 size, was, bad;
	int fd;

	long_recording__make(&g, LONG_FRAMES, false, NULL);
	same_as_whole(g.path, 4927);
	assert_true(find_kept(path));
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &was, 8, lseek(fd, -200, SEEK_END)), 8);
	bad = was ^ 1024;
	assert_int_equal(pwrite(fd, &bad, 8, lseek(fd, 0, SEEK_CUR)), 8);
	close(fd);
	assert_true(bytes_told(g.path, "--frame 4927 --verbose", &size) > 2 * size);
	assert_true(bytes_told(g.path, "--frame 4927 --verbose", &size) < size / 8);
	assert_true(find_kept(path));
	assert_int_equal(chmod(path, 0666), 0);
	assert_true(bytes_told(g.path, "--frame 4927 --verbose", &size) > 2 * size);
	same_as_whole(g.path, 4927);
	forget_kept();
	unlink(g.path);
}

static void test_a_hostile_kept_index_does_no_harm(void **state)
{
	char path[PATH_MAX];
	struct long_recording g;
	u64 was, bad, size;
	int fd, status;

	long_recording__make(&g, LONG_FRAMES, false, NULL);
	same_as_whole(g.path, 4927);
	assert_true(find_kept(path));
	fd = open(path, O_RDWR | O_CLOEXEC);
	size = (u64)lseek(fd, 0, SEEK_END);
	for (u32 i = 0; i < 6; i++) {
		u64 at = i % 2 ? size - sizeof(struct index_tail) - 8 * (1 + long_recording__random(&g, 120))
			       : 64 + 8 * long_recording__random(&g, size / 9);

		assert_int_equal(pread(fd, &was, 8, (off_t)at), 8);
		bad = i % 3 ? was ^ 1ULL << long_recording__random(&g, 64)
			    : long_recording__random(&g, ~0U) << long_recording__random(&g, 33);
		assert_int_equal(pwrite(fd, &bad, 8, (off_t)at), 8);
		long_recording__mend_index(fd);
		free(long_recording__explain(g.path, "--frame 4927", &status));
		assert_true(status == EXIT_OK || status == EXIT_NOT_MEASURED || status == EXIT_USAGE);
		close(fd);
		forget_kept(); /* it may have been made again */
		same_as_whole(g.path, 4927);
		assert_true(find_kept(path));
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	close(fd);
	forget_kept();
	unlink(g.path);
}

int main(void)
{
	char dir[64];
	int failed;
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_cut_recording_is_not_read_beyond_what_is_asked_for),
		cmocka_unit_test(test_a_recording_cut_anywhere_is_read_once_and_then_in_part),
		cmocka_unit_test(test_what_turns_out_late_holds_from_the_beginning),
		cmocka_unit_test(test_a_whole_recording_without_an_index_gets_one_too),
		cmocka_unit_test(test_where_nothing_is_kept_it_reads_the_same),
		cmocka_unit_test(test_what_begins_at_the_beginning_needs_none),
		cmocka_unit_test(test_a_kept_index_that_is_damaged_or_not_ours_is_made_again),
		cmocka_unit_test(test_a_hostile_kept_index_does_no_harm),
	};

	if (!mkdtemp(cache) || setenv("REDFRAME_CACHE", cache, 1))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(dir, sizeof(dir), "%s/indexes", cache);
	rmdir(dir);
	rmdir(cache);
	return failed;
}
