/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What a person reads who asked for something that there is not, or compares what two commands say.
 */
#include <fcntl.h>
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

#include "afterwards.h"
#include "explain_verb.h"
#include "export.h"
#include "log.h"
#include "recfile.h"
#include "session.h"

static char dir[] = "/tmp/redframe-test-XXXXXX";
static char recording[64], output[64];
static char said[16384]; /* on both standard outputs, by the last run of: */

static int run(int (*verb)(int, char **), int argc, char **argv)
{
	int out = memfd_create("said", MFD_CLOEXEC), was[] = {dup(STDOUT_FILENO), dup(STDERR_FILENO)}, status;
	ssize_t n;

	fflush(NULL);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	status = verb(argc, argv);
	fflush(NULL);
	dup2(was[0], STDOUT_FILENO);
	dup2(was[1], STDERR_FILENO);
	close(was[0]);
	close(was[1]);
	n = pread(out, said, sizeof(said) - 1, 0);
	close(out);
	said[max(n, (ssize_t)0)] = 0;
	return status;
}

#define RUN(verb, ...) run(verb, ARRAY_SIZE(((char *[]){__VA_ARGS__})), (char *[]){__VA_ARGS__, NULL})

static void assert_said(const char *what)
{
	if (!strstr(said, what))
		fail_msg("not said: %s\nbut: %s", what, said);
}

static int make_recording(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(recording, sizeof(recording), "%s/r.redframe", dir);
	snprintf(output, sizeof(output), "%s/out.pftrace", dir);
	return recfile__compile("tests/golden/explain_lock_owner.txt", recording);
}

static int clean(void **state)
{
	unlink(recording);
	unlink(output);
	return rmdir(dir);
}

static void test_an_impossible_process_id_is_named(void **state)
{
	assert_int_equal(RUN(verb__record, "-p", "0"), EXIT_USAGE);
	assert_said("--pid: '0' is not a process id");
	assert_int_equal(RUN(verb__record, "--pid=4294967297"), EXIT_USAGE);
	assert_said("--pid: '4294967297' is not a process id");
}

static void test_an_empty_list_of_events_is_no_list(void **state)
{
	assert_int_equal(RUN(verb__record, "-p", "1", "--events", ""), EXIT_USAGE);
	assert_said("--events: name at least one class; there are sched, fault");
	assert_int_equal(RUN(verb__record, "-p", "1", "--events", ",sched"), EXIT_USAGE);
	assert_said("--events: no class ''; there are sched, fault");
}

static void test_record_refuses_an_output_that_means_another_format(void **state)
{
	static char *const names[] = {"x.txt", "some/x.json", "x.csv", "x.html"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(RUN(verb__record, "-p", "1", "-o", names[i]), EXIT_USAGE);
		assert_said("record writes a recording (x.redframe) or its trace (x.pftrace)");
		assert_said(names[i]);
		assert_true(access(names[i], F_OK));
	}
	assert_int_equal(RUN(verb__record, "-p", "1", "--no-trace", "-o", output), EXIT_USAGE);
	assert_said("only the trace is written, and --no-trace leaves it out");
}

static void test_asked_for_a_frame_that_is_not_there_the_range_is_said(void **state)
{
	assert_int_equal(RUN(verb__explain, recording, "--frame", "99999"), EXIT_USAGE);
	assert_said("--frame: there is no frame 99999: this recording holds frames 1 to 32");
	assert_int_equal(RUN(verb__export, recording, "-o", output, "--frames", "40..50"), EXIT_USAGE);
	assert_said("--frames: there is no frame 40..50: this recording holds frames 1 to 32");
	assert_true(access(output, F_OK));
}

static void test_export_from_beyond_the_end_is_an_error_and_leaves_no_file(void **state)
{
	assert_int_equal(RUN(verb__export, recording, "-o", output, "--from", "100"), EXIT_USAGE);
	assert_said("--from: nothing came 100 s after the first event, or later: this recording spans 0 to 0.346 s");
	assert_true(access(output, F_OK));
	assert_int_equal(RUN(verb__export, recording, "-o", output, "--from", "0.3"), EXIT_OK);
	assert_int_equal(access(output, F_OK), 0);
}

static int end_of_record(int argc, char **argv)
{
	struct record_options o;
	struct session s = {.o = &o, .start = 1, .stop = 60 * NSEC_PER_SEC};
	int fd = open(argv[0], O_RDONLY | O_CLOEXEC), err;

	record_options__defaults(&o);
	err = afterwards(fd, argv[0], "", &o, &s);
	close(fd);
	return err;
}

/* of what was said: the seconds at the end of the first words that come so */
static double seconds_before(const char *words)
{
	const char *at = strstr(said, words), *from = at;

	if (!at)
		fail_msg("not said: %s\nbut: %s", words, said);
	while (from > said && strchr("0123456789.", from[-1]))
		from--;
	assert_true(from < at);
	return strtod(from, NULL);
}

static void test_record_and_explain_give_a_recording_the_same_duration(void **state)
{
	double recorded, explained;

	assert_int_equal(RUN(end_of_record, recording), 0);
	recorded = seconds_before(" s, 32 frames, ");
	assert_int_equal(RUN(verb__explain, recording), EXIT_OK);
	explained = seconds_before(" s, 40 events");
	assert_true(explained > 0.2 && explained < 0.5);
	assert_true(recorded == explained);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_impossible_process_id_is_named),
		cmocka_unit_test(test_an_empty_list_of_events_is_no_list),
		cmocka_unit_test(test_record_refuses_an_output_that_means_another_format),
		cmocka_unit_test(test_asked_for_a_frame_that_is_not_there_the_range_is_said),
		cmocka_unit_test(test_export_from_beyond_the_end_is_an_error_and_leaves_no_file),
		cmocka_unit_test(test_record_and_explain_give_a_recording_the_same_duration),
	};

	return cmocka_run_group_tests_name("messages", tests, make_recording, clean);
}
