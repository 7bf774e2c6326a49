// SPDX-License-Identifier: GPL-2.0-only
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include "build_fixture.h"
#include "maps.h"
#include "process.h"

static const char program[] = "#include <unistd.h>\nint main(void) { write(1, \"x\", 1); for (;;) pause(); }\n";

static char why[2048];

/* a name that no other run of this test has: they may run side by side */
static const char *own(const char *stem)
{
	static char names[4][64];
	static int turn;
	char *name = names[turn++ & 3];

	snprintf(name, sizeof(names[0]), "rf%d%s", (int)getpid(), stem);
	return name;
}

static int by_pid(struct target *t, u32 pid)
{
	why[0] = 0;
	return target__by_pid(t, pid, why, sizeof(why));
}

static int by_name(struct target *t, const char *name, bool newest)
{
	why[0] = 0;
	return target__by_name(t, name, newest, why, sizeof(why));
}

static void test_process_is_described_and_its_end_noticed(void **state)
{
	struct target t;
	pid_t pid = fixture__run(fixture__build("rf game", "", program), "rf game");

	assert_int_equal(by_pid(&t, (u32)pid), 0);
	assert_int_equal(t.tgid, pid);
	assert_string_equal(t.name, "rf game");
	assert_string_equal(t.exe, fixture__path("rf game"));
	assert_int_equal(t.threads, 1);
	assert_false(t.own_pid_ns);
	assert_true(target__alive(&t));
	fixture__kill(pid);
	assert_false(target__alive(&t));
	target__close(&t);
	assert_int_equal(by_pid(&t, (u32)pid), -ESRCH);
	assert_non_null(strstr(why, "there is no process"));
}

/* by which runs are told apart, and the next start of a game that crashed is known */
static void test_a_game_is_called_as_its_program_whatever_its_main_thread_is_called(void **state)
{
	static const char renamed[] =
		"#include <sys/prctl.h>\n#include <unistd.h>\nint main(void) { prctl(PR_SET_NAME, "
		"\"MainThread\"); write(1, \"x\", 1); for (;;) pause(); }\n";
	static const char script[] = "#!/bin/sh\necho x\nkill -STOP $$\n";
	struct target t;
	pid_t pid = fixture__run(fixture__build("a-game-of-a-long-name", "", renamed), "whatever");

	assert_int_equal(by_pid(&t, (u32)pid), 0);
	assert_string_equal(t.name, "a-game-of-a-long-name");
	target__close(&t);
	fixture__kill(pid);
	fixture__write("start.sh", script, sizeof(script) - 1);
	assert_int_equal(chmod(fixture__path("start.sh"), 0755), 0);
	pid = fixture__run(fixture__path("start.sh"), "whatever");
	assert_int_equal(by_pid(&t, (u32)pid), 0);
	assert_string_equal(t.name, "start.sh");
	target__close(&t);
	fixture__kill(pid);
	pid = fixture__run(fixture__build("wine64-preloader", "", renamed), "C:\\Games\\Foo\\Foo.exe");
	assert_int_equal(by_pid(&t, (u32)pid), 0);
	assert_string_equal(t.name, "Foo.exe");
	target__close(&t);
	fixture__kill(pid);
}

static void test_executable_deleted_meanwhile_keeps_its_name(void **state)
{
	struct target t;
	const char *name = own("gone");
	pid_t pid = fixture__run(fixture__build(name, "", program), "x");

	unlink(fixture__path(name));
	assert_int_equal(by_name(&t, name, false), 0);
	assert_int_equal(t.tgid, pid);
	assert_string_equal(t.exe, fixture__path(name));
	target__close(&t);
	fixture__kill(pid);
}

static void *sleeper(void *arg)
{
	*(u32 *)arg = (u32)syscall(SYS_gettid);
	for (;;)
		pause();
	return NULL;
}

static void test_number_of_a_thread_is_refused_with_its_process(void **state)
{
	struct target t;
	char want[64];
	int go[2], tids[2];
	pid_t pid;
	u32 tid = 0;

	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(tids), 0);
	pid = fork();
	if (pid == 0) {
		static volatile u32 self;
		pthread_t thread;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pthread_create(&thread, NULL, sleeper, (void *)&self);
		while (!self)
			usleep(1000);
		tid = self;
		_exit(write(tids[1], &tid, 4) == 4 ? pause() : 1);
	}
	assert_int_equal(read(tids[0], &tid, 4), 4);
	assert_int_equal(by_pid(&t, tid), -EINVAL);
	snprintf(want, sizeof(want), "use -p %d", pid);
	assert_non_null(strstr(why, want));
	fixture__kill(pid);
}

static void test_what_is_no_game_is_refused(void **state)
{
	char comm[32] = "";
	struct target t;
	siginfo_t si;
	pid_t zombie;
	char *text;

	assert_int_equal(by_pid(&t, (u32)getpid()), -EINVAL);
	assert_non_null(strstr(why, "redframe itself"));
	assert_int_equal(by_pid(&t, 0), -ESRCH);
	assert_int_equal(by_pid(&t, 0xffffffff), -ESRCH);
	zombie = fork();
	if (zombie == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)zombie, &si, WEXITED | WNOWAIT), 0);
	assert_int_equal(by_pid(&t, (u32)zombie), -ESRCH);
	assert_non_null(strstr(why, "has ended"));
	waitpid(zombie, NULL, 0);
	text = proc__read("/proc/2/comm", sizeof(comm), NULL);
	if (!text || strcmp(text, "kthreadd\n")) {
		print_message("no kernel thread is visible from here: not tested\n");
		free(text);
		return;
	}
	free(text);
	assert_int_equal(by_pid(&t, 2), -EINVAL);
	assert_non_null(strstr(why, "kernel thread"));
}

static void expect_found(const char *name, pid_t pid)
{
	struct target t;

	if (by_name(&t, name, false))
		fail_msg("%s: %s", name, why);
	assert_int_equal(t.tgid, pid);
	target__close(&t);
}

static void test_name_may_be_comm_executable_or_windows_path(void **state)
{
	struct target t;
	char exe[64], argv0[96], comm[16], elsewhere[96];
	pid_t pid;

	snprintf(exe, sizeof(exe), "%s-with-a-very-long-name", own(""));
	snprintf(argv0, sizeof(argv0), "C:\\Program Files\\Rf\\%s.exe", own("game"));
	snprintf(elsewhere, sizeof(elsewhere), "C:\\Other\\%s.exe", own("game"));
	snprintf(comm, sizeof(comm), "%.15s", exe); /* what the kernel keeps */
	pid = fixture__run(fixture__build(exe, "", program), argv0);
	expect_found(path__base(argv0), pid);
	expect_found(elsewhere, pid); /* the base name counts */
	expect_found(exe, pid);
	expect_found(comm, pid);
	assert_int_equal(by_name(&t, own(""), false), -ESRCH);
	assert_non_null(strstr(why, comm)); /* named as near */
	fixture__kill(pid);
}

static void test_several_of_a_name_are_listed_and_the_newest_is_the_last_started(void **state)
{
	struct target t;
	const char *name = own("twice"), *path = fixture__build(name, "", program);
	pid_t first = fixture__run(path, name), second;
	char one[32], two[32];

	usleep(30000); /* start times count in 10 ms */
	second = fixture__run(path, name);
	assert_int_equal(by_name(&t, name, false), -ENOTUNIQ);
	snprintf(one, sizeof(one), " %d (", first);
	snprintf(two, sizeof(two), " %d (", second);
	assert_non_null(strstr(why, one));
	assert_non_null(strstr(why, two));
	assert_null(strchr(why, '\n')); /* a message is one line: more would come out as \\x0a */
	assert_int_equal(by_name(&t, name, true), 0);
	assert_int_equal(t.tgid, second);
	target__close(&t);
	fixture__kill(first);
	fixture__kill(second);
}

static bool stop_now(void *arg)
{
	return true;
}

static void test_waiting_ends_with_the_process_the_time_or_the_user(void **state)
{
	struct target t;
	const char *name = own("late"), *path = fixture__build(name, "", program);
	pid_t starter;

	assert_int_equal(target__wait(&t, name, false, 120, NULL, NULL, why, sizeof(why)), -ETIMEDOUT);
	assert_int_equal(target__wait(&t, name, false, -1, stop_now, NULL, why, sizeof(why)), -EINTR);
	starter = fork();
	if (starter == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		usleep(200000);
		close(1);
		execl(path, name, (char *)NULL);
		_exit(1);
	}
	assert_int_equal(target__wait(&t, name, false, 10000, NULL, NULL, why, sizeof(why)), 0);
	assert_int_equal(t.tgid, starter);
	target__close(&t);
	fixture__kill(starter);
}

static void test_escape_codes_of_names_do_not_reach_the_message(void **state)
{
	struct target t;
	const char *name = own("escape"), *path = fixture__build(name, "", program);
	pid_t first = fixture__run(path, "rf\033[31m\n  1  init"), second = fixture__run(path, "rf\033[31m");

	assert_int_equal(by_name(&t, "no\033[31msuch", false), -ESRCH);
	assert_null(strchr(why, '\033'));
	assert_int_equal(by_name(&t, name, false), -ENOTUNIQ);
	assert_null(strchr(why, '\033'));
	assert_null(strstr(why, "\n  1  init"));
	fixture__kill(first);
	fixture__kill(second);
}

/* ---- /proc/PID/maps ---- */

static void parse(struct maps *m, const char *text)
{
	char *copy = strdup(text);

	assert_non_null(copy);
	assert_int_equal(maps__parse(m, copy, strlen(copy)), 0);
}

static void test_maps_are_read_with_blanks_newlines_and_deleted_files(void **state)
{
	struct maps m;

	parse(&m, "1000-2000 r-xp 00001000 08:01 42                         /games/my game (deleted)\n"
		  "2000-3000 rw-p 00000000 103:00002 43 /a\\012b\n"
		  "3000-4000 rw-p 00000000 00:00 0 [heap]\n"
		  "4000-5000 rw-p 00000000 00:00 0\n"
		  "nonsense\n"
		  "6000-5000 r-xp 00000000 08:01 44 /backwards\n"
		  "7000-8000 r-xp 00000000 08:01 45 /cut off");
	assert_int_equal(m.n, 4);
	assert_string_equal(m.v[0].path, "/games/my game");
	assert_true(m.v[0].deleted);
	assert_int_equal(m.v[0].prot, PROT_READ | PROT_EXEC);
	assert_int_equal(m.v[0].offset, 0x1000);
	assert_int_equal(m.v[0].ino, 42);
	assert_int_equal(m.v[0].dev, 8 << 20 | 1);
	assert_string_equal(m.v[1].path, "/a\nb");
	assert_int_equal(m.v[1].dev, 0x103 << 20 | 2);
	assert_string_equal(m.v[2].path, "[heap]");
	assert_string_equal(m.v[3].path, "");
	assert_ptr_equal(maps__find(&m, 0x1fff), &m.v[0]);
	assert_ptr_equal(maps__find(&m, 0x4000), &m.v[3]);
	assert_null(maps__find(&m, 0x5000));
	assert_null(maps__find(&m, 0));
	maps__free(&m);
}

static void test_file_whose_name_means_another_file_now_is_not_opened_by_name(void **state)
{
	struct map m = {.start = 1, .end = 2, .ino = 1, .dev = 0xfff, .path = fixture__path("replaced")};

	fixture__write("replaced", "x", 1);
	assert_int_equal(maps__open(&m, (u32)getpid()), -ESTALE);
	m.deleted = true;
	assert_int_equal(maps__open(&m, (u32)getpid()), -ESTALE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_process_is_described_and_its_end_noticed),
		cmocka_unit_test(test_a_game_is_called_as_its_program_whatever_its_main_thread_is_called),
		cmocka_unit_test(test_executable_deleted_meanwhile_keeps_its_name),
		cmocka_unit_test(test_number_of_a_thread_is_refused_with_its_process),
		cmocka_unit_test(test_what_is_no_game_is_refused),
		cmocka_unit_test(test_name_may_be_comm_executable_or_windows_path),
		cmocka_unit_test(test_several_of_a_name_are_listed_and_the_newest_is_the_last_started),
		cmocka_unit_test(test_waiting_ends_with_the_process_the_time_or_the_user),
		cmocka_unit_test(test_escape_codes_of_names_do_not_reach_the_message),
		cmocka_unit_test(test_maps_are_read_with_blanks_newlines_and_deleted_files),
		cmocka_unit_test(test_file_whose_name_means_another_file_now_is_not_opened_by_name),
	};

	return cmocka_run_group_tests(tests, fixture__setup, fixture__teardown);
}
