// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch.h"
#include "preload.h"

/* The game must not run as root because its observer does. */
static int become_invoking_user(void)
{
	const char *uid_text = getenv("SUDO_UID"), *gid_text = getenv("SUDO_GID");
	struct passwd *pw;
	uid_t uid;
	gid_t gid;

	if (geteuid() || !uid_text || !gid_text)
		return 0;
	uid = strtoul(uid_text, NULL, 10);
	gid = strtoul(gid_text, NULL, 10);
	pw = getpwuid(uid);
	if (pw ? initgroups(pw->pw_name, gid) : setgroups(1, &gid))
		return -errno;
	if (setgid(gid) || setuid(uid))
		return -errno;
	if (pw)
		setenv("HOME", pw->pw_dir, 1);
	return 0;
}

static void child(int go, int error, char **argv, const struct preload *preload)
{
	sigset_t none;
	int err;
	char byte;

	if (read(go, &byte, 1) != 1)
		_exit(127); /* the recorder gave up */
	close(go);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	err = become_invoking_user();
	if (!err) {
		if (preload)
			preload__enter(preload);
		execvp(argv[0], argv);
		err = -errno;
	}
	if (write(error, &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(127);
}

int launch__prepare(struct launch *l, char **argv, const struct preload *preload)
{
	int go[2] = {-1, -1}, error[2] = {-1, -1}, err;
	pid_t pid;

	*l = (struct launch){.go = -1, .error = -1};
	/* what a launcher leaves behind becomes ours, and so is found */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (pipe2(go, O_CLOEXEC) || pipe2(error, O_CLOEXEC))
		goto fail;
	pid = fork();
	if (pid < 0)
		goto fail;
	if (!pid) {
		close(go[1]);
		child(go[0], error[1], argv, preload);
	}
	close(go[0]);
	close(error[1]);
	*l = (struct launch){.tgid = pid, .go = go[1], .error = error[0]};
	return 0;
fail:
	err = -errno;
	for (int i = 0; i < 2; i++) {
		if (go[i] >= 0)
			close(go[i]);
		if (error[i] >= 0)
			close(error[i]);
	}
	return err;
}

int launch__go(struct launch *l)
{
	int err = 0;

	if (write(l->go, "", 1) != 1)
		return -errno;
	close(l->go);
	l->go = -1;
	if (read(l->error, &err, sizeof(err)) != sizeof(err))
		err = 0; /* closed by the exec */
	return err;
}

bool launch__ended(struct launch *l)
{
	if (!l->ended && l->tgid && waitpid(l->tgid, &l->status, WNOHANG) == (pid_t)l->tgid)
		l->ended = true;
	return l->ended;
}

void launch__reap(struct launch *l)
{
	siginfo_t si;

	for (;;) {
		si.si_pid = 0;
		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) || !si.si_pid)
			return;
		if ((u32)si.si_pid != l->tgid)
			waitpid(si.si_pid, NULL, 0);
		else if (!launch__ended(l))
			return;
	}
}

const char *launch__outcome(const struct launch *l, char *buf, size_t size)
{
	if (!l->ended)
		snprintf(buf, size, "still runs");
	else if (WIFEXITED(l->status))
		snprintf(buf, size, "exited with %d", WEXITSTATUS(l->status));
	else
		snprintf(
			buf, size, "was killed by signal %d (%s)", WTERMSIG(l->status), strsignal(WTERMSIG(l->status)));
	return buf;
}

void launch__close(struct launch *l)
{
	if (l->go >= 0) {
		close(l->go);
		if (l->tgid)
			waitpid(l->tgid, &l->status, 0);
	}
	if (l->error >= 0)
		close(l->error);
	l->go = l->error = -1;
}
