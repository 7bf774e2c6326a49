// SPDX-License-Identifier: GPL-2.0-only
/* launcher HOW PROGRAM: starts PROGRAM as launchers do. HOW: exec (a chain of three), stay (waits for it), leave (ends
 * at once), twice (leaves, as does the launcher that it starts), helper (starts a helper without frames before). */
#include <string.h>
#include <sys/wait.h>
#include "target.h"

static void run(const char *program)
{
	execl(program, program, (char *)NULL);
	_exit(126);
}

static void again(char **argv, const char *how)
{
	execl("/proc/self/exe", argv[0], how, argv[2], (char *)NULL);
	_exit(126);
}

static pid_t start(char **argv, const char *how)
{
	pid_t pid = fork();

	MUST(pid >= 0);
	if (!pid && how)
		again(argv, how);
	if (!pid)
		run(argv[2]);
	return pid;
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	MUST(argc == 3);
	if (!strcmp(argv[1], "exec"))
		again(argv, "exec2");
	if (!strcmp(argv[1], "exec2"))
		run(argv[2]);
	if (!strcmp(argv[1], "sleep")) {
		sleep(3);
		return 0;
	}
	if (!strcmp(argv[1], "helper"))
		start(argv, "sleep");
	pid = start(argv, !strcmp(argv[1], "twice") ? "leave" : NULL);
	if (strcmp(argv[1], "stay") && strcmp(argv[1], "helper"))
		return 0;
	MUST(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}
