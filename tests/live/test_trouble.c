// SPDX-License-Identifier: GPL-2.0-only
/* Wrong targets, outputs that cannot be written, disks and buffers that are too small: said, counted, never hidden. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"

/* `redframe record` with these arguments ends with this status and says this */
static void refused(struct live *l, int status, const char *says, char *const args[])
{
	char *argv[24] = {(char *)live__program(), "record", "--no-trace"};
	int st, n = 3;
	char *said;

	for (; *args; args++)
		argv[n++] = *args;
	said = live__output(l, &st, argv);
	if (!WIFEXITED(st) || WEXITSTATUS(st) != status || !strstr(said, says))
		fail_msg("status %#x, not exit %d with '%s'; it said: %s", st, status, says, said);
	free(said);
}
#define REFUSED(l, status, says, ...) refused(l, status, says, (char *[]){__VA_ARGS__, NULL})

static void test_a_target_that_is_not_there_ends_in_3_and_is_named(void **state)
{
	struct live l;

	live__init(&l);
	REFUSED(&l, 3, "2147483000", "-p", "2147483000", "-o", l.recording);
	REFUSED(&l, 3, "no-such-game", "-n", "no-such-game", "-o", l.recording);
	assert_int_equal(access(l.recording, F_OK), -1);
	live__free(&l);
}

static void test_wrong_usage_ends_in_1_and_names_the_option(void **state)
{
	struct live l;

	live__init(&l);
	REFUSED(&l, 1, "-p", "-o", l.recording);
	REFUSED(&l, 1, "pid", "-p", "abc", "-o", l.recording);
	REFUSED(&l, 1, "--events", "-p", "1", "--events", "nonsense", "-o", l.recording);
	REFUSED(&l, 1, "--alloc", "-p", "1", "--alloc", "some", "-o", l.recording);
	REFUSED(&l, 1, "--budget", "-p", "1", "--budget", "fast", "-o", l.recording);
	REFUSED(&l, 1, "--frame", "-p", "1", "--frame", "always", "-o", l.recording);
	REFUSED(&l, 1, "--frame", "-p", "1", "--frame", "usdt:game", "-o", l.recording);
	REFUSED(&l, 1, "no-such", "-p", "1", "--no-such", "-o", l.recording);
	live__free(&l);
}

static void test_a_thread_is_taken_for_its_process_or_refused_by_name(void **state)
{
	struct live l;
	char tid[16];
	char *argv[] = {
		(char *)live__program(), "record", "-p", tid, "-o", l.recording, "--no-trace", "-d", "0.2", NULL};
	char *said;
	int st;

	live__init(&l);
	live__start(&l, "ticker", NULL);
	l.truth = live__read(&l, "truth");
	snprintf(tid, sizeof(tid), "%lld", live__num(&l, "thread", 0, 0));
	said = live__output(&l, &st, argv);
	assert_true(WIFEXITED(st));
	if (WEXITSTATUS(st) == 0) {
		live__load(&l);
		assert_int_equal(model__game(l.model), l.target);
	} else if ((WEXITSTATUS(st) != 1 && WEXITSTATUS(st) != 3) || !strstr(said, "thread")) {
		fail_msg("exit %d; it said: %s", WEXITSTATUS(st), said);
	}
	free(said);
	live__free(&l);
}

static pid_t kernel_thread(void)
{
	char path[64], text[256] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/2/comm");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	return strcmp(text, "kthreadd\n") ? 0 : 2;
}

static void test_a_kernel_thread_is_refused(void **state)
{
	struct live l;

	if (!kernel_thread())
		live__skip("no kernel threads are to be seen here");
	live__init(&l);
	REFUSED(&l, 1, "kernel thread", "-p", "2", "-o", l.recording, "-d", "0.2");
	live__free(&l);
}

/* what is said when the game goes away before it recorded, before its first frame, and later */
static const char *ending_of(int status)
{
	switch (status) {
	case 0:
		return "ended";
	case 3:
		return "redframe:";
	case 5:
		return "no frames were seen: not measured";
	}
	return "a status that it has no reason for";
}

static void test_a_game_that_ends_during_attach_is_told_by_what_was_recorded(void **state)
{
	char pid[16];
	char *argv[] = {(char *)live__program(), "record", "-p", pid, "-o", NULL, "--no-trace", "-f", NULL};
	struct live l;

	live__init(&l);
	argv[5] = l.recording;
	/* at several moments of the attach, in which nothing may hang or crash */
	for (int delay_ms = 0; delay_ms <= 400; delay_ms += 50) {
		int st;

		live__start(&l, "ticker", NULL);
		snprintf(pid, sizeof(pid), "%d", l.target);
		l.redframe = live__spawn(&l, "said", argv);
		usleep((useconds_t)delay_ms * 1000);
		kill(l.target, SIGKILL);
		live__end_target(&l);
		live__end_redframe(&l);
		st = l.status;
		if (!WIFEXITED(st) || !strstr(l.said, ending_of(WEXITSTATUS(st))))
			fail_msg("after %d ms: status %#x; it said: %s", delay_ms, st, l.said);
	}
	live__free(&l);
}

static bool holds_pidfd(pid_t pid)
{
	char path[300], what[64];
	bool found = false;
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, d->d_name);
		n = readlink(path, what, sizeof(what) - 1);
		what[n > 0 ? n : 0] = 0;
		found |= strstr(what, "pidfd") != NULL;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Its stdin never says anything, and nobody hears its stdout. */
static void run_quietly(const char *program)
{
	int silence[2], out = open("/dev/null", O_WRONLY);

	if (pipe(silence))
		return;
	dup2(silence[0], 0);
	dup2(out, 1);
	execl(program, program, (char *)NULL);
}

/* Starts a program under a number that was another's: 0 where that cannot be had. */
static pid_t start_as(pid_t number, const char *program)
{
	for (int i = 0; i < 300; i++) {
		int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
		pid_t pid;

		if (fd < 0 || dprintf(fd, "%d", number - 1) < 0)
			return 0;
		pid = fork();
		if (!pid && getpid() == number)
			run_quietly(program);
		if (!pid)
			_exit(127);
		close(fd);
		if (pid == number)
			return pid;
		waitpid(pid, NULL, 0); /* somebody else was faster */
	}
	return 0;
}

/* redframe has chosen the game, and stands still; meanwhile its number goes to another one of the same file. */
static bool reuse_after(useconds_t delay_us)
{
	char pid[16];
	char *argv[] = {(char *)live__program(), "record", "-p", pid, "-o", NULL, "--no-trace", NULL};
	pid_t game, other;
	struct live l;
	bool before;
	char *said;

	live__init(&l);
	argv[5] = l.recording;
	live__start(&l, "ticker", NULL);
	game = l.target;
	snprintf(pid, sizeof(pid), "%d", game);
	l.redframe = live__spawn(&l, "said", argv);
	while (!holds_pidfd(l.redframe) && !kill(l.redframe, 0))
		;
	usleep(delay_us);
	kill(l.redframe, SIGSTOP);
	said = live__read(&l, "said");
	before = !strstr(said, "redframe: recording ");
	free(said);
	kill(game, SIGKILL);
	live__end_target(&l);
	other = start_as(game, live__target_path("ticker"));
	kill(l.redframe, SIGCONT);
	live__end_redframe(&l);
	if (other) {
		kill(other, SIGKILL);
		waitpid(other, NULL, 0);
	}
	if (other && before && (!WIFEXITED(l.status) || WEXITSTATUS(l.status) != 3 || !strstr(l.said, "ended")))
		fail_msg("after %u us: status %#x; it said: %s", delay_us, l.status, l.said);
	if (before)
		assert_int_equal(access(l.recording, F_OK), -1);
	live__free(&l);
	if (!other)
		live__skip("no number can be given to a process anew here");
	return before;
}

static void test_another_process_under_the_number_of_the_game_is_never_recorded(void **state)
{
	useconds_t delay = 0;
	int n = 0;

	/* at moments later and later in the attach; earlier ones again where it was too late, as this process did not
	 * get a CPU in time */
	for (int tries = 0; n < 8 && tries < 16; tries++) {
		bool before = reuse_after(delay);

		n += before;
		if (!before && n > 2)
			break;
		delay = before ? 2 * delay + 1000 : delay / 4;
	}
	assert_true(n > 2);
}

static void test_an_output_that_is_no_new_file_is_refused_before_anything_is_touched(void **state)
{
	char pid[16], dir[128], link[128], fifo[128], there[128], deep[128];
	struct stat st;
	struct live l;
	int fd;

	live__init(&l);
	live__start(&l, "ticker", NULL);
	snprintf(pid, sizeof(pid), "%d", l.target);
	snprintf(dir, sizeof(dir), "%s/dir", l.dir);
	snprintf(link, sizeof(link), "%s/link", l.dir);
	snprintf(fifo, sizeof(fifo), "%s/fifo", l.dir);
	snprintf(there, sizeof(there), "%s/there", l.dir);
	snprintf(deep, sizeof(deep), "%s/no/such/dir", l.dir);
	assert_int_equal(mkdir(dir, 0755) | symlink(there, link) | mkfifo(fifo, 0644), 0);
	fd = open(there, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(write(fd, "mine", 4), 4);
	close(fd);
	REFUSED(&l, 1, "is a directory", "-p", pid, "-o", dir);
	REFUSED(&l, 1, "symbolic link", "-p", pid, "-o", link);
	REFUSED(&l, 1, "symbolic link", "-p", pid, "-f", "-o", link);
	REFUSED(&l, 1, "FIFO", "-p", pid, "-o", fifo);
	REFUSED(&l, 1, "exists", "-p", pid, "-o", there);
	REFUSED(&l, 1, "No such file", "-p", pid, "-o", deep);
	snprintf(deep, sizeof(deep), "%s/ro", l.dir);
	assert_int_equal(mkdir(deep, 0755), 0);
	if (!mount("none", deep, "tmpfs", MS_RDONLY, "size=64k")) {
		snprintf(deep, sizeof(deep), "%s/ro/x.redframe", l.dir);
		REFUSED(&l, 1, "Read-only", "-p", pid, "-o", deep);
		snprintf(deep, sizeof(deep), "%s/ro", l.dir);
		umount2(deep, MNT_DETACH);
	}
	assert_int_equal(stat(there, &st), 0);
	assert_int_equal(st.st_size, 4);
	live__free(&l);
}

static void test_a_full_disk_keeps_what_is_written_says_so_and_ends_in_5(void **state)
{
	char disk[128], path[160];
	char pid[16], *argv[] = {(char *)live__program(), "record", "-p", pid, "-o", path, "--no-trace", "--frame",
			      "none", "--alloc", "all", NULL};
	struct live l;

	live__init(&l);
	snprintf(disk, sizeof(disk), "%s/disk", l.dir);
	snprintf(path, sizeof(path), "%s/r.redframe", disk);
	assert_int_equal(mkdir(disk, 0755), 0);
	if (mount("none", disk, "tmpfs", 0, "size=2m")) {
		live__free(&l);
		live__skip("no tmpfs can be mounted");
	}
	live__start(&l, "hammer", "100000", NULL);
	snprintf(pid, sizeof(pid), "%d", l.target);
	l.redframe = live__spawn(&l, "said", argv);
	assert_true(live__await(&l, "said", "redframe: recording ", l.redframe));
	live__go(&l);
	live__end_redframe(&l);
	live__load_from(&l, path);
	umount2(disk, MNT_DETACH);
	assert_true(WIFEXITED(l.status));
	assert_int_equal(WEXITSTATUS(l.status), 5);
	assert_non_null(strstr(l.said, "No space left"));
	assert_true(l.incomplete);
	assert_true(live__count(&l, EV_ALLOC) > 1000);
	live__free(&l);
}

static u64 lost_records(const struct live *l)
{
	const struct live_event *e;
	u64 n = 0;

	live__each(l, at, e, EV_LOST) n += ((const struct ev_lost *)e->hdr)->count;
	return n;
}

static void says_so_in_the_trace(struct live *l)
{
	char trace[160], *argv[] = {(char *)live__program(), "export", l->recording, "-o", trace, NULL};
	int status;

	snprintf(trace, sizeof(trace), "%s/lost.pftrace", l->dir);
	free(live__output(l, &status, argv));
	assert_int_equal(status, 0);
	assert_int_equal(
		live__query(l, trace, "select count(*) n from stats where severity = 'error' and value > 0"), 0);
	assert_true(live__query(l, trace, "select count(*) n from slice where name like '%lost%'") +
			    live__query(l, trace, "select count(*) n from counter_track where name like '%lost%'") >
		    0);
}

/* What is recorded and what is counted as lost make the whole. */
static void test_what_a_full_ring_loses_is_counted_to_the_last_record(void **state)
{
	char *argv[] = {(char *)live__program(), "info", NULL, "--json", NULL}, *json;
	const struct live_event *e;
	struct live l;
	u64 lost = 0;
	int status;

	live__init(&l);
	live__start(&l, "hammer", "300000", NULL);
	live__record(&l, "--frame", "none", "--alloc", "all", "--events", "alloc", "--buffer", "64K", NULL);
	live__go(&l);
	live__end_target(&l);
	live__end_redframe(&l);
	assert_int_equal(l.status, 0);
	live__load(&l);
	live__each(&l, at, e, EV_LOST)
	{
		const struct ev_lost *x = (const void *)e->hdr;

		assert_true(x->since <= x->hdr.ts);
		if (x->class == CLASS_ALLOC)
			lost += x->count;
	}
	assert_true(lost > 0);
	assert_int_equal(lost, model__stats(l.model)->lost[CLASS_ALLOC]);
	/* the target's own allocations besides its 300000 + 300000 are a handful */
	assert_in_range(live__count(&l, EV_ALLOC) + live__count(&l, EV_FREE) + live__count(&l, EV_MEM_CALL) + lost,
		600000, 600200);
	assert_non_null(strstr(l.said, "lost: "));
	argv[2] = l.recording;
	json = live__output(&l, &status, argv);
	assert_int_equal(status, 0);
	assert_non_null(strstr(json, "\"lost\""));
	assert_int_equal(strtoull(strstr(strstr(json, "\"lost\""), "\"alloc\": ") + 9, NULL, 10), lost);
	free(json);
	says_so_in_the_trace(&l);
	live__free(&l);
}

/* It is more than the rings hold: a machine that gives redframe no CPU for a while may lose some. */
static void test_with_the_default_buffer_the_same_work_loses_nothing(void **state)
{
	struct live l;
	u64 lost = 1;

	for (int i = 0; i < 3 && lost; i++) {
		live__init(&l);
		live__start(&l, "hammer", "300000", NULL);
		live__record(&l, "--frame", "none", "--alloc", "all", NULL);
		live__go(&l);
		live__end_target(&l);
		live__end_redframe(&l);
		assert_int_equal(l.status, 0);
		live__load(&l);
		lost = lost_records(&l);
		assert_true(lost || (live__count(&l, EV_ALLOC) >= 300000 && live__count(&l, EV_ALLOC) <= 300100));
		assert_true(lost || (live__count(&l, EV_FREE) >= 300000 && live__count(&l, EV_FREE) <= 300100));
		live__free(&l);
	}
	assert_int_equal(lost, 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_a_target_that_is_not_there_ends_in_3_and_is_named),
	cmocka_unit_test(test_wrong_usage_ends_in_1_and_names_the_option),
	cmocka_unit_test(test_a_thread_is_taken_for_its_process_or_refused_by_name),
	cmocka_unit_test(test_a_kernel_thread_is_refused),
	cmocka_unit_test(test_a_game_that_ends_during_attach_is_told_by_what_was_recorded),
	cmocka_unit_test(test_another_process_under_the_number_of_the_game_is_never_recorded),
	cmocka_unit_test(test_an_output_that_is_no_new_file_is_refused_before_anything_is_touched),
	cmocka_unit_test(test_a_full_disk_keeps_what_is_written_says_so_and_ends_in_5),
	cmocka_unit_test(test_what_a_full_ring_loses_is_counted_to_the_last_record),
	cmocka_unit_test(test_with_the_default_buffer_the_same_work_loses_nothing),
};
LIVE_MAIN(tests)
