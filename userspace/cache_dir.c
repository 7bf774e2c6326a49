// SPDX-License-Identifier: GPL-2.0-only
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cache_dir.h"
#include "log.h"

bool cache_dir__is_safe(int fd, mode_t type)
{
	struct stat st;

	return !fstat(fd, &st) && (st.st_mode & S_IFMT) == type && st.st_uid == geteuid() && !(st.st_mode & 022);
}

/* the folder `name` in dir, made where it is missing; -1: it is another user's, or no folder */
static int enter(int dir, const char *name)
{
	int fd;

	mkdirat(dir, name, 0700);
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || cache_dir__is_safe(fd, S_IFDIR))
		return fd;
	log_debug("%s is not this user's alone: nothing is kept in it", name);
	close(fd);
	return -1;
}

static int open_own(void)
{
	const char *own = getenv("REDFRAME_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int base, cache = -1, dir = -1;

	if (own)
		return *own ? enter(AT_FDCWD, own) : -1;
	if (xdg && *xdg == '/')
		cache = enter(AT_FDCWD, xdg);
	else if (home && *home == '/' && (base = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0) {
		cache = cache_dir__is_safe(base, S_IFDIR) ? enter(base, ".cache") : -1;
		close(base);
	}
	if (cache >= 0) {
		dir = enter(cache, "redframe");
		close(cache);
	}
	return dir;
}

int cache_dir__open(const char *sub)
{
	int dir = open_own(), in;

	if (dir < 0 || !sub)
		return dir;
	in = enter(dir, sub);
	close(dir);
	return in;
}

/* ---- not too much of it ---- */

/* The one that was not used for longest, and how much they are in all; "": there is none. */
static u64 look_for_oldest(int dir, char *oldest, size_t size)
{
	DIR *d = fdopendir(dup(dir));
	struct timespec least = {};
	struct dirent *e;
	struct stat st;
	u64 all = 0;

	oldest[0] = 0;
	while (d && (e = readdir(d))) {
		if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		all += (u64)st.st_size;
		if (!oldest[0] || st.st_mtim.tv_sec < least.tv_sec) {
			snprintf(oldest, size, "%s", e->d_name);
			least = st.st_mtim;
		}
	}
	if (d) {
		rewinddir(d);
		closedir(d);
	}
	return all;
}

void cache_dir__make_room(int dir, u64 bytes)
{
	char oldest[NAME_MAX + 1];

	while (look_for_oldest(dir, oldest, sizeof(oldest)) > bytes && oldest[0])
		if (unlinkat(dir, oldest, 0))
			return;
}
