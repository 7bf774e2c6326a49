// SPDX-License-Identifier: GPL-2.0-only
/* Markers by the thousand, and with arguments in places where nobody looks for them. */
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drain.h"
#include "live.h"
#include "uprobe_multi.h"

#define PLACES 5000
#define SOME   300
#define ROUNDS 300

static void expect_semaphores(const struct live *l, unsigned short want)
{
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(live__semaphore(l, i), want);
}

/* descriptors of what is attached that redframe has open */
static int links_of(pid_t pid)
{
	char path[300], what[64];
	struct dirent *d;
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((d = readdir(dir))) {
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, d->d_name);
		len = readlink(path, what, sizeof(what) - 1);
		what[max(len, 0)] = 0;
		n += strstr(what, "bpf_link") || strstr(what, "bpf-link") || strstr(what, "perf_event");
	}
	closedir(dir);
	return n;
}

static double info_ms(const struct live *l, const char *key)
{
	const char *text = model__info(l->model, key);

	assert_non_null(text);
	return strtod(text, NULL);
}

/* Numbers from 0, each once and in order. */
static void expect_every_place(const struct live *l, int places)
{
	const struct live_event *e;
	u64 n = 0;

	live__each(l, at, e, EV_FRAME) assert_int_equal(((const struct ev_frame *)e->hdr)->number, n++);
	assert_int_equal(n, places);
}

static void tell_times(const struct live *l, int links)
{
	printf("%zu places: %d links, attached in %.0f ms, detached in %.0f ms\n", live__count(l, EV_FRAME), links,
		info_ms(l, "session.attach_ms"), info_ms(l, "session.detach_ms"));
}

/* Returns the longer of attaching and detaching. */
static double record_all_places(void)
{
	struct live l;
	double ms;
	int links;

	live__init(&l);
	live__start(&l, "marks", "many", NULL);
	l.truth = live__read(&l, "truth");
	expect_semaphores(&l, 0);
	live__record(&l, "--frame", "usdt:engine:swap", NULL);
	expect_semaphores(&l, PLACES / 2);
	links = links_of(l.redframe);
	live__go(&l);
	kill(l.redframe, SIGTERM);
	live__end_redframe(&l);
	expect_semaphores(&l, 0);
	live__end_target(&l);
	assert_int_equal(l.target_status, 0);
	assert_int_equal(l.status, 0);
	live__load(&l);
	live__no_loss(&l);
	expect_every_place(&l, PLACES);
	tell_times(&l, links);
	assert_in_range(links, 1, 100);
	ms = info_ms(&l, "session.attach_ms");
	ms = ms > info_ms(&l, "session.detach_ms") ? ms : info_ms(&l, "session.detach_ms");
	live__free(&l);
	return ms;
}

static void test_five_thousand_places_attach_and_detach_in_a_second_and_few_descriptors(void **state)
{
	double ms;
	int tries = 3; /* what others do on this machine does not count */

	if (!uprobe_multi__supported())
		live__skip("this kernel attaches probes one by one, each of which takes it milliseconds to remove");
	do
		ms = record_all_places();
	while (ms >= 1000 && --tries);
	assert_true(ms < 1000);
}

/* Two processes on one CPU that switch to each other as fast as they can; fds: of the pipes between them. They give way
 * now and then: Linux 6.18 let two such run for minutes without a turn for that CPU's own worker thread, and a probe
 * that goes waits for what that does. */
static pid_t switch_player(int from, int to)
{
	cpu_set_t one;
	pid_t pid = fork();
	char byte = 0;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	for (u32 i = 1; write(to, &byte, 1) == 1 && read(from, &byte, 1) == 1; i++)
		if (!(i % 256))
			usleep(100);
	_exit(0);
}

static u64 sched_lost_after(const struct live *l, u64 ts)
{
	const struct live_event *e;
	u64 lost = 0;

	live__each(l, at, e, EV_LOST)
	{
		if (e->hdr->ts > ts)
			lost += ((const struct ev_lost *)e->hdr)->count;
	}
	return lost;
}

/* The ring holds some 20 ms of these switches, and 5,000 places take the kernel 130 ms. */
static void test_the_ring_is_emptied_while_places_are_detached(void **state)
{
	const struct live_event *e;
	u64 stop, kept = 0, lost;
	int a[2], b[2];
	pid_t players[2];
	struct live l;

	if (!uprobe_multi__supported())
		live__skip("this kernel attaches probes one by one");
	assert_int_equal(pipe(a) | pipe(b), 0);
	live__init(&l);
	live__start(&l, "marks", "many", NULL);
	live__record(&l, "--frame", "usdt:engine:swap", "--events", "sched", "--buffer", "256K", NULL);
	live__go(&l);
	players[0] = switch_player(a[0], b[1]);
	players[1] = switch_player(b[0], a[1]);
	usleep(50000);
	stop = clock_boot_ns();
	kill(l.redframe, SIGTERM);
	live__end_redframe(&l);
	for (int i = 0; i < 2; i++) {
		kill(players[i], SIGKILL);
		waitpid(players[i], NULL, 0);
	}
	live__end_target(&l);
	live__load(&l);
	live__each(&l, at, e, EV_SWITCH) kept += e->hdr->ts > stop;
	lost = sched_lost_after(&l, stop);
	printf("detached in %.0f ms: %llu switches kept, %llu events lost meanwhile\n",
		info_ms(&l, "session.detach_ms"), (unsigned long long)kept, (unsigned long long)lost);
	assert_true(kept > 1000);
	assert_true(lost < kept);
	live__free(&l);
}

/* Where each place needs a descriptor of its own, what there is no room for is left out and counted. */
static void record_within(const char *limit, bool enough)
{
	int links;
	char command[64], pid[16];
	struct live l;
	char *argv[] = {"sh", "-c", command, "sh", (char *)live__program(), "record", "-p", pid, "--no-trace", "-o",
		l.recording, "--frame", "usdt:engine:some", NULL};

	snprintf(command, sizeof(command), "ulimit %s; exec \"$@\"", limit);
	live__init(&l);
	live__start(&l, "marks", "some", NULL);
	snprintf(pid, sizeof(pid), "%d", l.target);
	l.redframe = live__spawn(&l, "said", argv);
	assert_true(live__await(&l, "said", "redframe: recording ", l.redframe));
	links = links_of(l.redframe);
	live__run(&l);
	tell_times(&l, links);
	if (uprobe_multi__supported() || enough)
		expect_every_place(&l, SOME);
	else if (!strstr(l.said, " more like it: not attached: Too many open files"))
		fail_msg("%zu marks, and it said: %s", live__count(&l, EV_FRAME), l.said);
	live__free(&l);
}

static void test_a_low_limit_of_descriptors_is_raised_enough_or_said(void **state)
{
	record_within("-Sn 64", true);
	record_within("-n 128", false);
}

static void expect_numbers(const char *name, u64 (*number)(u64 i), const char *note)
{
	const struct live_event *e;
	char spec[64];
	struct live l;
	u64 n = 0;

	snprintf(spec, sizeof(spec), "usdt:odd:%s", name);
	live__init(&l);
	live__start(&l, "marks", "odd", "300", NULL);
	live__record(&l, "--frame", spec, NULL);
	live__run(&l);
	live__each(&l, at, e, EV_FRAME)
	{
		const struct ev_frame *f = (const void *)e->hdr;

		if (f->number != number(n))
			fail_msg(
				"%s: mark %llu has the number %lld", spec, (unsigned long long)n, (long long)f->number);
		n++;
	}
	assert_int_equal(n, ROUNDS);
	if (note && !strstr(l.said, note))
		fail_msg("'%s' was not said, but: %s", note, l.said);
	live__free(&l);
}

static u64 low_byte(u64 i)
{
	return i & 0xff;
}
static u64 minus(u64 i)
{
	return -i;
}
static u64 plus_1000(u64 i)
{
	return 1000 + i;
}
static u64 plus_2000(u64 i)
{
	return 2000 + i;
}
static u64 always_42(u64 i)
{
	return 42;
}
static u64 always_minus_7(u64 i)
{
	return (u64)-7;
}
static u64 no_number(u64 i)
{
	return FRAME_NO_NUMBER;
}

static void test_numbers_in_a_part_of_a_register_are_read(void **state)
{
	expect_numbers("byte", low_byte, NULL);
	expect_numbers("high", low_byte, NULL);
	expect_numbers("word", minus, NULL);
}

static void test_numbers_in_memory_are_read(void **state)
{
	expect_numbers("memory", plus_1000, NULL);
	expect_numbers("indexed", plus_2000, NULL);
	expect_numbers("below", minus, NULL);
}

static void test_constant_numbers_are_taken(void **state)
{
	expect_numbers("constant", always_42, NULL);
	expect_numbers("negative", always_minus_7, NULL);
}

static void test_a_number_where_no_probe_can_read_it_is_said_and_the_frames_recorded(void **state)
{
	expect_numbers("vector", no_number, "usdt:odd:vector: argument 1 (8@%xmm0) is where a probe cannot read it");
	expect_numbers("relative", no_number, "usdt:odd:relative: argument 1 (8@semaphore_a(%rip)) is where");
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_five_thousand_places_attach_and_detach_in_a_second_and_few_descriptors),
	cmocka_unit_test(test_the_ring_is_emptied_while_places_are_detached),
	cmocka_unit_test(test_a_low_limit_of_descriptors_is_raised_enough_or_said),
	cmocka_unit_test(test_numbers_in_a_part_of_a_register_are_read),
	cmocka_unit_test(test_numbers_in_memory_are_read),
	cmocka_unit_test(test_constant_numbers_are_taken),
	cmocka_unit_test(test_a_number_where_no_probe_can_read_it_is_said_and_the_frames_recorded),
};
LIVE_MAIN(tests)
