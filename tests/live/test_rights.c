// SPDX-License-Identifier: GPL-2.0-only
/* With which capabilities it records, which it gives up once attached, and whose its files are. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"

#define NOBODY "65534"

/* redframe and the game where everyone may run them, and a folder that is nobody's */
struct place {
	struct live l;
	char program[128], game[128], own[128], recording[160];
};

static void copy(struct live *l, const char *from, const char *to)
{
	char *argv[] = {"cp", (char *)from, (char *)to, NULL};

	assert_int_equal(live__wait(live__spawn(l, "copied", argv)), 0);
	assert_int_equal(chmod(to, 0755), 0);
}

static void prepare(struct place *p)
{
	live__init(&p->l);
	snprintf(p->program, sizeof(p->program), "%s/redframe", p->l.dir);
	snprintf(p->game, sizeof(p->game), "%s/ticker", p->l.dir);
	snprintf(p->own, sizeof(p->own), "%s/own", p->l.dir);
	snprintf(p->recording, sizeof(p->recording), "%s/r.redframe", p->own);
	copy(&p->l, live__program(), p->program);
	copy(&p->l, live__target_path("ticker"), p->game);
	assert_int_equal(mkdir(p->own, 0755), 0);
	assert_int_equal(chown(p->own, 65534, 65534), 0);
}

#define AS_NOBODY "--reuid=" NOBODY, "--regid=" NOBODY, "--clear-groups"

static void start_game(struct place *p, bool nobodys)
{
	char *argv[] = {"setpriv", AS_NOBODY, "--inh-caps=-all", p->game, NULL};
	char *roots[] = {p->game, NULL};

	live__start_program(&p->l, nobodys ? argv : roots);
	assert_true(live__await(&p->l, "truth", "ready\n", p->l.target));
}

/* Debian and Ubuntu have values above 2, at which CAP_PERFMON does not open perf events and CAP_SYS_ADMIN does. */
static bool perf_needs_admin(void)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level = 0;

	if (f && fscanf(f, "%d", &level) != 1)
		level = 0;
	if (f)
		fclose(f);
	return level > 2;
}

/* `redframe record` as nobody, with the capabilities of a list as setpriv takes it; its exit status */
static int record_with(struct place *p, const char *caps)
{
	char inheritable[256], ambient[256], pid[16];
	char *argv[] = {"setpriv", AS_NOBODY, inheritable, ambient, p->program, "record", "-p", pid, "-o", p->recording,
		"--no-trace", "-f", "-d", "0.5", NULL};

	snprintf(inheritable, sizeof(inheritable), "--inh-caps=-all%s", caps);
	snprintf(ambient, sizeof(ambient), "--ambient-caps=-all%s", caps);
	snprintf(pid, sizeof(pid), "%d", p->l.target);
	p->l.redframe = live__spawn(&p->l, "said", argv);
	live__end_redframe(&p->l);
	return WIFEXITED(p->l.status) ? WEXITSTATUS(p->l.status) : -1;
}

static void records_frames_with(struct place *p, const char *caps)
{
	int status = record_with(p, caps);

	if (status)
		fail_msg("with%s: exit %d; it said: %s", caps, status, p->l.said);
	live__load_from(&p->l, p->recording);
	live__no_loss(&p->l);
	assert_true(live__count(&p->l, EV_FRAME) > 10);
	assert_true(live__count(&p->l, EV_SWITCH) > 10);
}

static void test_your_own_game_takes_bpf_and_perfmon_and_nothing_else(void **state)
{
	struct place p;

	prepare(&p);
	start_game(&p, true);
	records_frames_with(&p, perf_needs_admin() ? ",+bpf,+perfmon,+sys_admin" : ",+bpf,+perfmon");
	live__free(&p.l);
}

static void test_without_either_of_them_it_ends_in_2_and_points_to_doctor(void **state)
{
	static const char *const caps[] = {"", ",+bpf", ",+perfmon", ",+bpf,+sys_ptrace", ",+perfmon,+sys_ptrace"};
	struct place p;

	prepare(&p);
	start_game(&p, true);
	for (size_t i = 0; i < ARRAY_SIZE(caps); i++) {
		int status = record_with(&p, caps[i]);

		if (status != 2 || !strstr(p.l.said, "redframe doctor"))
			fail_msg("with%s: exit %d; it said: %s", caps[i], status, p.l.said);
		assert_int_equal(access(p.recording, F_OK), -1);
	}
	live__free(&p.l);
}

static void test_the_game_of_another_user_takes_ptrace_besides(void **state)
{
	struct place p;

	prepare(&p);
	start_game(&p, false);
	assert_int_equal(record_with(&p, ",+bpf,+perfmon"), 5); /* everything but the frames */
	assert_non_null(strstr(p.l.said, "no frame source found"));
	records_frames_with(
		&p, perf_needs_admin() ? ",+bpf,+perfmon,+sys_admin,+sys_ptrace" : ",+bpf,+perfmon,+sys_ptrace");
	live__free(&p.l);
}

/* ---- as root ---- */

static unsigned long long status_of(pid_t pid, const char *key, int base)
{
	char path[64], text[4096] = "", *line;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	line = strstr(text, key);
	assert_non_null(line);
	return strtoull(line + strlen(key), NULL, base);
}

static void test_once_attached_it_holds_few_capabilities_and_can_gain_none(void **state)
{
	const unsigned long long admin = perf_needs_admin() ? 1ULL << 21 : 0;
	const unsigned long long few = 1ULL << 0 | 1ULL << 1 | 1ULL << 2 | 1ULL << 19 | 7ULL << 38 | admin;
	struct live l;

	live__init(&l);
	live__start(&l, "ticker", NULL);
	live__record(&l, "-d", "1", NULL);
	assert_int_equal(status_of(l.redframe, "\nCapEff:", 16) & ~few, 0);
	assert_int_equal(status_of(l.redframe, "\nCapPrm:", 16) & ~few, 0);
	assert_int_equal(status_of(l.redframe, "\nCapInh:", 16), 0);
	assert_int_equal(status_of(l.redframe, "\nCapBnd:", 16) & ~few, 0);
	assert_int_equal(status_of(l.redframe, "\nNoNewPrivs:", 10), 1);
	live__end_redframe(&l);
	assert_int_equal(l.status, 0);
	live__free(&l);
}

static void test_a_launched_program_keeps_what_its_user_may_do(void **state)
{
	struct live l;
	char *argv[] = {(char *)live__program(), "record", "-o", l.recording, "--no-trace", "--frame", "none", "--",
		"grep", "-E", "CapBnd|NoNewPrivs", "/proc/self/status", NULL};
	char bounds[64];

	snprintf(bounds, sizeof(bounds), "CapBnd:\t%016llx", status_of(getpid(), "\nCapBnd:", 16));
	live__init(&l);
	l.redframe = live__spawn(&l, "said", argv);
	live__end_redframe(&l);
	if (!strstr(l.said, bounds) || !strstr(l.said, "NoNewPrivs:\t0"))
		fail_msg("not '%s' and NoNewPrivs 0: %s", bounds, l.said);
	live__free(&l);
}

static void owned_by_nobody(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_uid, 65534);
	assert_int_equal(st.st_gid, 65534);
	assert_true(st.st_size > 0);
}

static void test_under_sudo_the_recording_and_the_trace_are_the_invoking_users(void **state)
{
	char pid[16], trace[160];
	struct place p;
	char *argv[] = {p.program, "record", "-p", pid, "-o", p.recording, "-d", "0.5", NULL};

	prepare(&p);
	assert_int_equal(chmod(p.own, 0700), 0); /* others may not even look into it */
	start_game(&p, true);
	snprintf(pid, sizeof(pid), "%d", p.l.target);
	snprintf(trace, sizeof(trace), "%s/r.pftrace", p.own);
	setenv("SUDO_UID", NOBODY, 1);
	setenv("SUDO_GID", NOBODY, 1);
	p.l.redframe = live__spawn(&p.l, "said", argv);
	live__end_redframe(&p.l);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	if (p.l.status)
		fail_msg("status %#x; it said: %s", p.l.status, p.l.said);
	owned_by_nobody(p.recording);
	owned_by_nobody(trace);
	live__free(&p.l);
}

/* what stands there already is never followed, and only with -f overwritten */
static void test_a_trace_goes_through_no_link_that_waits_in_its_place(void **state)
{
	char pid[16], trace[160], victim[160], text[8] = "";
	struct place p;
	char *argv[] = {p.program, "record", "-p", pid, "-o", p.recording, "-f", "-d", "0.3", NULL};
	int fd;

	prepare(&p);
	start_game(&p, true);
	snprintf(pid, sizeof(pid), "%d", p.l.target);
	snprintf(trace, sizeof(trace), "%s/r.pftrace", p.own);
	snprintf(victim, sizeof(victim), "%s/victim", p.l.dir);
	fd = open(victim, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "mine", 4), 4);
	assert_int_equal(symlink(victim, trace), 0);
	p.l.redframe = live__spawn(&p.l, "said", argv);
	live__end_redframe(&p.l);
	assert_non_null(strstr(p.l.said, "symbolic link"));
	assert_int_equal(pread(fd, text, sizeof(text), 0), 4);
	assert_string_equal(text, "mine");
	close(fd);
	live__free(&p.l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_your_own_game_takes_bpf_and_perfmon_and_nothing_else),
	cmocka_unit_test(test_without_either_of_them_it_ends_in_2_and_points_to_doctor),
	cmocka_unit_test(test_the_game_of_another_user_takes_ptrace_besides),
	cmocka_unit_test(test_once_attached_it_holds_few_capabilities_and_can_gain_none),
	cmocka_unit_test(test_a_launched_program_keeps_what_its_user_may_do),
	cmocka_unit_test(test_under_sudo_the_recording_and_the_trace_are_the_invoking_users),
	cmocka_unit_test(test_a_trace_goes_through_no_link_that_waits_in_its_place),
};
LIVE_MAIN(tests)
