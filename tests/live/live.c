// SPDX-License-Identifier: GPL-2.0-only
/* Running targets and redframe. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "live.h"

#define MAX_ARGS 48
#define PATIENCE 60 /* seconds, after which something hangs; nothing is measured by it */

const char *live__program(void)
{
	return LIVE_BUILD "/redframe";
}

const char *live__target_path(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/live/targets/%s", LIVE_BUILD, name);
	return path;
}

static bool in_ci(void)
{
	const char *ci = getenv("CI");

	return ci && !strcmp(ci, "true");
}

int live__main(const char *name, const char *cannot, int (*run)(void))
{
	signal(SIGPIPE, SIG_IGN);
	setenv("REDFRAME_CACHE", "", 1); /* what one test looked up, another must not know */
	if (!cannot)
		return run();
	fprintf(stderr, "\n*** NOT TESTED: %s: %s%s\n\n", name, cannot, in_ci() ? "; CI=true: this fails" : "");
	return in_ci();
}

void live__skip(const char *why)
{
	fprintf(stderr, "*** NOT TESTED: %s%s\n", why, in_ci() ? "; CI=true: this fails" : "");
	if (in_ci())
		fail_msg("%s", why);
	skip();
}

void live__skip_kernel(const char *why)
{
	fprintf(stderr, "*** NOT TESTED: %s; make test-kernels tests it on one that has\n", why);
	skip();
}

unsigned short live__semaphore(const struct live *l, size_t i)
{
	unsigned short count;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", l->target);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &count, 2, (off_t)live__num(l, "semaphore", i, 0)), 2);
	close(fd);
	return count;
}

void live__init(struct live *l)
{
	*l = (struct live){.go = -1};
	snprintf(l->dir, sizeof(l->dir), "/var/tmp/redframe-live.XXXXXX");
	assert_non_null(mkdtemp(l->dir));
	chmod(l->dir, 0755);
	snprintf(l->recording, sizeof(l->recording), "%s/r.redframe", l->dir);
}

void live__to_the_front(void)
{
	struct sched_param p = {.sched_priority = 1};

	if (sched_setscheduler(0, SCHED_RR, &p))
		print_message("not allowed to use SCHED_RR: the machine may disturb\n");
}

void live__to_the_back(void)
{
	struct sched_param p = {.sched_priority = 0};

	sched_setscheduler(0, SCHED_OTHER, &p);
}

char *live__read(struct live *l, const char *name)
{
	size_t cap = 1 << 16, n = 0;
	char path[PATH_MAX], *text;
	ssize_t got = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", l->dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	text = malloc(cap);
	assert_non_null(text);
	while (fd >= 0 && (got = read(fd, text + n, cap - n - 1)) > 0) {
		n += (size_t)got;
		if (cap - n < 4096) {
			text = realloc(text, cap *= 2);
			assert_non_null(text);
		}
	}
	text[n] = 0;
	if (fd >= 0)
		close(fd);
	return text;
}

static void give_up(struct live *l, const char *what)
{
	char *said = live__read(l, "said"), *truth = live__read(l, "truth");

	fprintf(stderr, "redframe said:\n%s\nthe target said:\n%.2000s\n", said, truth);
	free(said);
	free(truth);
	if (l->redframe)
		kill(l->redframe, SIGTERM);
	if (l->target)
		kill(l->target, SIGKILL);
	fail_msg("%s", what);
}

/* in: fd for its stdin, or -1 */
static pid_t spawn(struct live *l, const char *name, int in, char *const argv[])
{
	char path[PATH_MAX];
	pid_t pid;
	int out;

	snprintf(path, sizeof(path), "%s/%s", l->dir, name);
	out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(out >= 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid) {
		close(out);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing is left behind when a test fails */
	if (in < 0)
		in = open("/dev/null", O_RDONLY);
	dup2(in, 0);
	dup2(out, 1);
	dup2(out, 2);
	signal(SIGPIPE, SIG_DFL);
	execvp(argv[0], argv);
	_exit(127);
}

pid_t live__spawn(struct live *l, const char *name, char *const argv[])
{
	return spawn(l, name, -1, argv);
}

static bool ended(pid_t pid)
{
	siginfo_t si = {};

	return !waitid(P_PID, pid, &si, WEXITED | WNOHANG | WNOWAIT) && si.si_pid == pid;
}

/* An emulator's kernel verifies our programs for up to a minute: tests/vm asks for more patience. */
static time_t patience_ends(void)
{
	const char *seconds = getenv("LIVE_PATIENCE");

	return time(NULL) + (seconds ? atoi(seconds) : PATIENCE);
}

static void nap(void)
{
	usleep(5000);
}

bool live__await(struct live *l, const char *name, const char *text, pid_t pid)
{
	time_t until = patience_ends();

	for (;;) {
		bool over = ended(pid); /* first: what it said last counts */
		char *said = live__read(l, name);
		bool found = strstr(said, text);

		free(said);
		if (found || over)
			return found;
		if (time(NULL) > until)
			give_up(l, "nothing happens");
		nap();
	}
}

int live__wait(pid_t pid)
{
	time_t until = patience_ends();
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (time(NULL) > until) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			fail_msg("process %d did not end", pid);
		}
		nap();
	}
	return status;
}

static void start(struct live *l, char *const argv[])
{
	int in[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	l->target = spawn(l, "truth", in[0], argv);
	l->go = in[1];
	close(in[0]);
}

/* The server tells its number: the line that is a number. Others, of numbers that are taken, may come before it. -1:
 * not yet */
static int display_said(struct live *l)
{
	char *text = live__read(l, "display"), *rest = NULL;
	int number = -1;

	if (text[0] && text[strlen(text) - 1] == '\n')
		for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
			if (line[strspn(line, "0123456789")] == '\0')
				number = atoi(line);
	free(text);
	return number;
}

pid_t live__start_display(struct live *l)
{
	char *argv[] = {"Xvfb", "-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp", NULL};
	pid_t pid = live__spawn(l, "display", argv);
	time_t until = patience_ends();
	char name[16];
	int number;

	while ((number = display_said(l)) < 0) {
		if (time(NULL) > until || ended(pid))
			give_up(l, "no display");
		nap();
	}
	snprintf(name, sizeof(name), ":%d", number);
	setenv("DISPLAY", name, 1);
	return pid;
}

void live__start_program(struct live *l, char *const argv[])
{
	start(l, argv);
}

static void take_args(char **argv, int n, va_list ap)
{
	while ((argv[n] = va_arg(ap, char *))) {
		n++;
		assert_true(n < MAX_ARGS);
	}
}

void live__start(struct live *l, const char *name, ...)
{
	char *argv[MAX_ARGS] = {strdup(live__target_path(name))};
	va_list ap;

	va_start(ap, name);
	take_args(argv, 1, ap);
	va_end(ap);
	start(l, argv);
	free(argv[0]);
	if (!live__await(l, "truth", "ready\n", l->target))
		give_up(l, "the target did not start");
}

void live__record(struct live *l, ...)
{
	char pid[16], *argv[MAX_ARGS] = {(char *)live__program(), "record", "-p", pid, "-o", l->recording, "--no-trace",
			      "--max-overhead", "0"};
	va_list ap;

	snprintf(pid, sizeof(pid), "%d", l->target);
	va_start(ap, l);
	take_args(argv, 9, ap);
	va_end(ap);
	l->redframe = live__spawn(l, "said", argv);
	if (!live__await(l, "said", "redframe: recording ", l->redframe))
		give_up(l, "redframe does not record");
}

void live__go(struct live *l)
{
	assert_int_equal(write(l->go, "g", 1), 1);
	if (!live__await(l, "truth", "\ndone\n", l->target))
		give_up(l, "the target ended early");
	free(l->truth);
	l->truth = live__read(l, "truth");
}

void live__end_target(struct live *l)
{
	close(l->go);
	l->go = -1;
	l->target_status = live__wait(l->target);
	l->target = 0;
}

void live__end_redframe(struct live *l)
{
	l->status = live__wait(l->redframe);
	l->redframe = 0;
	free(l->said);
	l->said = live__read(l, "said");
}

bool live__passed_over(const struct live *l)
{
	return strstr(l->said, "redframe: warning: the kernel passed over ");
}

static void skip_if_passed_over(struct live *l)
{
	if (!live__passed_over(l))
		return;
	live__free(l);
	live__skip_kernel("the kernel passed over events, and redframe says so: counts cannot be exact");
}

void live__run(struct live *l)
{
	live__go(l);
	live__end_target(l);
	live__end_redframe(l);
	if (l->status || l->target_status)
		give_up(l, "exit statuses are not 0");
	skip_if_passed_over(l);
	live__load(l);
	live__no_loss(l);
	assert_false(l->incomplete);
}

char *live__output(struct live *l, int *status, char *const argv[])
{
	pid_t pid = live__spawn(l, "output", argv);
	int st = live__wait(pid);

	if (status)
		*status = st;
	return live__read(l, "output");
}

const char *live__cannot_trace(void)
{
	char *argv[] = {(char *)live__program(), "record", "-p", NULL, "-o", NULL, "--no-trace", "--frame", "none",
		"-d", "0.05", NULL};
	static char why[512];
	char pid[16];
	struct live l;
	int st;

	if (geteuid())
		return "tracing needs root";
	live__init(&l);
	snprintf(pid, sizeof(pid), "%d", getpid());
	argv[3] = pid;
	argv[5] = l.recording;
	st = live__wait(live__spawn(&l, "said", argv));
	l.said = live__read(&l, "said");
	snprintf(why, sizeof(why), "redframe cannot trace here: %.400s", l.said);
	live__free(&l);
	/* whatever else fails is for the tests to find */
	return WIFEXITED(st) && WEXITSTATUS(st) == 2 ? why : NULL;
}

/* bpftool would list them, and is not needed for it */
int live__programs_loaded(void)
{
	u32 id = 0;
	int n = 0;

	while (!bpf_prog_get_next_id(id, &id)) {
		struct bpf_prog_info info = {};
		u32 len = sizeof(info);
		int fd = bpf_prog_get_fd_by_id(id);

		if (fd < 0)
			continue;
		if (!bpf_obj_get_info_by_fd(fd, &info, &len) &&
			(strstr(info.name, "__") || !strncmp(info.name, "redframe", 8)))
			n++;
		close(fd);
	}
	return n;
}

static void end(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

void live__free(struct live *l)
{
	char *rm[] = {"rm", "-rf", l->dir, NULL};

	if (l->go >= 0)
		close(l->go);
	end(l->target);
	end(l->redframe);
	if (!getenv("LIVE_KEEP"))
		live__wait(live__spawn(l, "said", rm));
	for (size_t i = 0; i < l->n; i++) {
		free((void *)l->ev[i].hdr);
		free((void *)l->ev[i].path);
		free((void *)l->ev[i].arg);
	}
	free(l->ev);
	free(l->truth);
	free(l->said);
	model__free(l->model);
	*l = (struct live){.go = -1};
}
