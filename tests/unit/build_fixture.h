/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Programs and libraries that a test builds for itself, in a temporary folder of its own.
 */
#ifndef REDFRAME_BUILD_FIXTURE_H
#define REDFRAME_BUILD_FIXTURE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char fixture_dir[64];

static inline int fixture__setup(void **state)
{
	(void)state;
	snprintf(fixture_dir, sizeof(fixture_dir), "/tmp/redframe-test-XXXXXX");
	return mkdtemp(fixture_dir) ? 0 : -1;
}

static inline int fixture__teardown(void **state)
{
	DIR *d = opendir(fixture_dir);
	struct dirent *e;
	char path[512];

	(void)state;
	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s", fixture_dir, e->d_name);
		unlink(path);
	}
	if (d)
		closedir(d);
	return rmdir(fixture_dir);
}

/* path of a file in the folder; static, so use it before the next call */
static inline const char *fixture__path(const char *name)
{
	static char path[4][512];
	static int turn;
	char *p = path[turn++ & 3];

	snprintf(p, sizeof(path[0]), "%s/%s", fixture_dir, name);
	return p;
}

static inline void fixture__write(const char *name, const char *text, size_t len)
{
	int fd = open(fixture__path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	close(fd);
}

/* cc FLAGS -o NAME source, the source being C, or assembler where flags say "-x assembler" */
static inline const char *fixture__build(const char *name, const char *flags, const char *source)
{
	char cmd[2048], src[80];

	snprintf(src, sizeof(src), "%s.src", name);
	fixture__write(src, source, strlen(source));
	snprintf(cmd, sizeof(cmd), "cc -x %s -w %s -o '%s/%s' '%s/%s'",
		strstr(flags, "-DASM") ? "assembler-with-cpp" : "c", flags, fixture_dir, name, fixture_dir, src);
	assert_int_equal(system(cmd), 0);
	return fixture__path(name);
}

/* Starts a program that prints a line once it is ready, and waits for that line. Ends with the test. */
static inline pid_t fixture__run(const char *path, const char *argv0)
{
	char line[64];
	int out[2];
	pid_t pid;

	assert_int_equal(pipe(out), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], 1);
		close(out[0]);
		close(out[1]);
		execl(path, argv0, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	assert_true(read(out[0], line, sizeof(line)) > 0);
	close(out[0]);
	return pid;
}

static inline void fixture__kill(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* For a game's source: however busy the machine is, it goes on once somebody has put a probe into that code. */
#define AWAIT_PROBE                                                                                                    \
	"#include <string.h>\n#include <unistd.h>\n"                                                                   \
	"static void await_probe(const void *code)\n{\n\tunsigned char before[12];\n\tmemcpy(before, code, 12);\n"     \
	"\tfor (int i = 0; i < 10000 && !memchr(before, 0xcc, 12) && !memcmp(before, code, 12); i++)\n"                \
	"\t\tusleep(1000);\n}\n"

#endif
