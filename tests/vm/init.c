// SPDX-License-Identifier: GPL-2.0-only
/* The first process in the emulated machine: makes a file system, runs the programs that /tests lists, each line
 * "NAME SECONDS COMMAND…", says on the console when each begins and how it ended, and switches off. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_WORDS 16

/* Nothing goes on without it: what is said is all that is known of this run. */
static void must(int err, const char *what)
{
	if (!err)
		return;
	printf("@@ broken %s: %s\n", what, strerror(errno));
	fflush(stdout);
	reboot(RB_POWER_OFF);
}

/* No tmpfs on /tmp: what is in the image may lie below it. */
static void make_dir_and_mount(const char *type, const char *at)
{
	mkdir(at, 0755);
	must(mount(type, at, type, 0, NULL), at);
}

static void load_modules(void)
{
	glob_t g = {};

	if (glob("/modules/*.ko", 0, NULL, &g))
		return;
	for (size_t i = 0; i < g.gl_pathc; i++) {
		int fd = open(g.gl_pathv[i], O_RDONLY | O_CLOEXEC);

		must(fd < 0 || syscall(SYS_finit_module, fd, "", 0), g.gl_pathv[i]);
		close(fd);
	}
	globfree(&g);
}

/* for what must be on a disk; the device comes a moment after its driver */
static void mount_disk(void)
{
	int err = -1;

	mkdir("/var", 0755);
	mkdir("/var/tmp", 0755);
	for (int i = 0; i < 100 && err; i++) {
		err = mount("/dev/vda", "/var/tmp", "ext4", 0, NULL);
		if (err)
			usleep(50000);
	}
	must(err, "mount the disk");
	chmod("/var/tmp", 01777);
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void child(char **argv)
{
	int in = open("/dev/null", O_RDONLY);

	setsid();
	dup2(in, 0);
	execv(argv[0], argv);
	printf("%s: %s\n", argv[0], strerror(errno));
	fflush(stdout);
	_exit(127);
}

/* Orphans come to us too; the one that counts is `pid`. */
static int wait_for(pid_t pid, long until_ms)
{
	int status = -1;

	while (now_ms() < until_ms) {
		pid_t ended = waitpid(-1, &status, WNOHANG);

		if (ended == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		if (!ended)
			usleep(10000);
	}
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return 124; /* what timeout(1) says */
}

static void run(char *line)
{
	char *argv[MAX_WORDS + 1] = {}, *save, *name = strtok_r(line, " ", &save);
	char *seconds = name ? strtok_r(NULL, " ", &save) : NULL;
	long begin = now_ms();
	int n = 0, status;
	pid_t pid;

	if (!seconds)
		return;
	while (n < MAX_WORDS && (argv[n] = strtok_r(NULL, " ", &save)))
		n++;
	printf("@@ begin %s\n", name);
	fflush(stdout);
	pid = fork();
	must(pid < 0, "fork");
	if (!pid)
		child(argv);
	status = wait_for(pid, begin + atol(seconds) * 1000);
	printf("\n@@ end %s %d %ld\n", name, status, now_ms() - begin);
	fflush(stdout);
}

static void run_all(void)
{
	FILE *f = fopen("/tests", "re");
	char line[1024];

	must(!f, "/tests");
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		run(line);
	}
	fclose(f);
}

int main(void)
{
	struct utsname u;

	make_dir_and_mount("proc", "/proc");
	make_dir_and_mount("sysfs", "/sys"); /* and no tracefs: redframe finds its way without */
	make_dir_and_mount("devtmpfs", "/dev");
	load_modules();
	mount_disk();
	setenv("PATH", "/usr/bin:/bin:/usr/sbin:/sbin", 1);
	setenv("HOME", "/tmp", 1);
	setenv("LIVE_MERGE_MS", "10000", 1);
	setenv("LIVE_PATIENCE", "300", 1);
	uname(&u);
	printf("\n@@ kernel %s\n", u.release);
	run_all();
	printf("@@ all\n");
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
