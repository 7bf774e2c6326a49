// SPDX-License-Identifier: GPL-2.0-only
/* Work in a process of its own: what it wrote is in the recording if it ended well, and nothing of it if it did not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apart.h"
#include "recording.h"

struct job {
	struct recording_writer w;
	int fd; /* the recording, to read it */
	u32 records, result;
	int signal;
	bool hang;
};

static void put(struct recording_writer *w, u64 ts)
{
	struct ev_cost e = {.hdr = {.ts = ts, .kind = EV_COST, .words = sizeof(e) / 8}};

	recording__append(w, &e, sizeof(e));
}

static void begin(struct job *j)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);

	*j = (struct job){.fd = dup(fd)};
	assert_int_equal(recording__create(&j->w, fd, 0), 0);
	put(&j->w, 1);
	put(&j->w, 2);
}

static void do_work(void *arg)
{
	struct job *j = arg;

	apart__at(0x1234);
	for (u32 i = 0; i < j->records; i++)
		put(&j->w, 100 + i);
	recording__flush(&j->w);
	j->result = 42;
	while (j->hang)
		pause();
	if (j->signal) {
		signal(j->signal, SIG_DFL); /* not for a sanitizer to handle */
		raise(j->signal);
	}
}

static int run(struct job *j, struct apart *a, u32 seconds)
{
	*a = (struct apart){
		.work = do_work, .arg = j, .result = &j->result, .result_bytes = sizeof(j->result), .seconds = seconds};
	return apart__run(a, &j->w);
}

/* ends the recording: how many records are in it, and that it is whole */
static u32 count(struct job *j)
{
	const struct ev_hdr *h;
	struct recording r;
	u64 last = 0;
	u32 n = 0;

	assert_int_equal(recording__finish(&j->w, true), 0);
	lseek(j->fd, 0, SEEK_SET);
	assert_int_equal(recording__open_fd(&r, j->fd), 0);
	while (recording__next(&r, &h) > 0) {
		assert_true(h->ts > last);
		last = h->ts;
		n++;
	}
	assert_false(r.truncated);
	assert_int_equal(r.malformed + r.unknown + r.cut_bytes, 0);
	recording__close(&r);
	return n;
}

static void test_work_that_ends_well_leaves_its_records_and_its_result(void **state)
{
	struct apart a;
	struct job j;

	begin(&j);
	j.records = 100000; /* more than a buffer */
	assert_int_equal(run(&j, &a, 0), 0);
	assert_int_equal(j.result, 42);
	put(&j.w, 1000000);
	assert_int_equal(j.w.records, 100003);
	assert_int_equal(count(&j), 100003);
}

static void test_work_that_crashes_leaves_nothing_and_the_recording_goes_on(void **state)
{
	struct apart a;
	struct job j;

	begin(&j);
	j.records = 100000;
	j.signal = SIGSEGV;
	assert_int_equal(run(&j, &a, 0), -EPROTO);
	assert_string_equal(a.how, strsignal(SIGSEGV));
	assert_int_equal(a.at, 0x1234);
	assert_int_equal(j.result, 0);
	put(&j.w, 1000000);
	assert_int_equal(count(&j), 3);
}

static void test_work_that_failed_can_be_done_again(void **state)
{
	struct apart a;
	struct job j;

	begin(&j);
	j.records = 10;
	j.signal = SIGABRT;
	assert_int_equal(run(&j, &a, 0), -EPROTO);
	j.signal = 0;
	assert_int_equal(run(&j, &a, 0), 0);
	assert_int_equal(count(&j), 12);
}

static void test_work_that_does_not_end_is_ended(void **state)
{
	struct apart a;
	struct job j;

	begin(&j);
	j.hang = true;
	assert_int_equal(run(&j, &a, 1), -EPROTO);
	assert_string_equal(a.how, "it took longer than 1 s");
	assert_int_equal(count(&j), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_work_that_ends_well_leaves_its_records_and_its_result),
		cmocka_unit_test(test_work_that_crashes_leaves_nothing_and_the_recording_goes_on),
		cmocka_unit_test(test_work_that_failed_can_be_done_again),
		cmocka_unit_test(test_work_that_does_not_end_is_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
