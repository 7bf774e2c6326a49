// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tracefs.h"

#define TRACEFS_MAGIC 0x74726163 /* linux/magic.h */

static const char *path, *how;

static bool is_tracefs(const char *p)
{
	struct statfs fs;

	return !statfs(p, &fs) && fs.f_type == TRACEFS_MAGIC;
}

/* The system's mounts stay as they are: the mount is ours alone, and ends with us. */
static int mount_privately(const char *at)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -errno;
	return mount("tracefs", at, "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) ? -errno : 0;
}

const char *tracefs__path(void)
{
	int err;

	if (path)
		return path;
	if (is_tracefs("/sys/kernel/tracing")) {
		how = "mounted";
		return path = "/sys/kernel/tracing";
	}
	if (is_tracefs("/sys/kernel/debug/tracing")) {
		how = "in debugfs";
		return path = "/sys/kernel/debug/tracing";
	}
	err = mount_privately("/sys/kernel/tracing");
	if (err) {
		errno = -err;
		return NULL;
	}
	how = "mounted privately";
	return path = "/sys/kernel/tracing";
}

const char *tracefs__how(void)
{
	return how ?: "not looked for";
}

int tracefs__has(const char *group, const char *event)
{
	const char *base = tracefs__path();
	char id[256];

	if (!base)
		return -errno;
	snprintf(id, sizeof(id), "%s/events/%s/%s/id", base, group, event);
	return !access(id, F_OK);
}
