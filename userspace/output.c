/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "output.h"

/* what stands in the way, in words; NULL for a plain file */
static const char *obstacle(const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		return "is a directory: name a file in it";
	if (S_ISLNK(st->st_mode))
		return "is a symbolic link: name the file itself";
	if (S_ISFIFO(st->st_mode))
		return "is a FIFO: an output must be a file";
	return S_ISREG(st->st_mode) ? NULL : "is no regular file";
}

/* A number from the environment that sudo sets; -1 where there is none */
static long id_of(const char *name)
{
	const char *text = getenv(name);
	char *end;
	long id;

	if (!text || !*text)
		return -1;
	id = strtol(text, &end, 10);
	return *end || id < 0 || id > INT32_MAX ? -1 : id;
}

static void give_to_caller(int fd)
{
	long uid = id_of("SUDO_UID"), gid = id_of("SUDO_GID");

	if (geteuid() || uid < 0 || gid < 0)
		return;
	if (fchown(fd, (uid_t)uid, (gid_t)gid))
		log_warn("the output stays root's: %s", errstr(errno));
}

static int refuse(const char *path, int err, const char *why)
{
	log_err("%s: %s", path, why);
	return -err;
}

int output__open(const char *path, bool force)
{
	/* without O_TRUNC: what we opened is looked at before it is emptied; O_NONBLOCK: a FIFO must not hang us */
	int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (force ? 0 : O_EXCL);
	struct stat st;
	int fd, err;

	if (!lstat(path, &st) && obstacle(&st))
		return refuse(path, EINVAL, obstacle(&st));
	fd = open(path, flags, 0644);
	if (fd < 0) {
		err = errno;
		if (err == EEXIST)
			return refuse(path, err, "exists already; -f overwrites it");
		return refuse(path, err, err == ELOOP ? "is a symbolic link: name the file itself" : errstr(err));
	}
	if (fstat(fd, &st) || obstacle(&st) || ftruncate(fd, 0)) {
		err = obstacle(&st) ? EINVAL : errno;
		refuse(path, err, obstacle(&st) ? obstacle(&st) : errstr(err));
		close(fd);
		return -err;
	}
	give_to_caller(fd);
	return fd;
}

int output__apart(const char *path, int fd)
{
	struct stat out, in;

	if (stat(path, &out) || fstat(fd, &in) || out.st_dev != in.st_dev || out.st_ino != in.st_ino)
		return 0;
	return refuse(path, EINVAL, "is the recording itself: name another file");
}

int output__make_dir(const char *path, bool *made)
{
	int fd, err = mkdir(path, 0755) ? errno : 0;

	*made = !err;
	err = err == EEXIST ? 0 : err;

	fd = err ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return refuse(path, err ?: errno, errstr(err ?: errno));
	if (*made)
		give_to_caller(fd);
	close(fd);
	return 0;
}

int output__flush(struct output *o)
{
	size_t at = 0;
	ssize_t n;

	while (!o->error && at < o->used) {
		n = write(o->fd, o->buf + at, o->used - at);
		if (n >= 0)
			at += (size_t)n;
		else if (errno != EINTR)
			o->error = -errno;
	}
	o->used = 0;
	return o->error;
}

int output__write(struct output *o, const char *bytes, size_t n)
{
	size_t part;

	while (n && !o->error) {
		part = min(n, sizeof(o->buf) - o->used);
		memcpy(o->buf + o->used, bytes, part);
		o->used += part;
		bytes += part;
		n -= part;
		if (o->used == sizeof(o->buf))
			output__flush(o);
	}
	return o->error;
}
