// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stacks.h"

#define BUF_BYTES (1u << 20)

static int open_beside(int fd)
{
	char link[64], path[PATH_MAX];
	ssize_t n;
	char *slash;
	int made;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[max(n, (ssize_t)0)] = 0;
	slash = strrchr(path, '/');
	if (slash) {
		slash[slash == path] = 0;
		made = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		if (made >= 0)
			return made;
	}
	snprintf(path, sizeof(path), "/var/tmp/redframe.XXXXXX");
	made = mkostemp(path, O_CLOEXEC);
	if (made < 0)
		return -errno;
	unlink(path);
	return made;
}

int stacks__open(struct stacks *s, int beside)
{
	*s = (struct stacks){.fd = -1};
	s->buf = malloc(BUF_BYTES);
	if (!s->buf)
		return -ENOMEM;
	s->fd = open_beside(beside);
	return s->fd < 0 ? s->fd : 0;
}

static int flush(struct stacks *s)
{
	size_t done = 0;

	while (done < s->used && !s->error) {
		ssize_t n = write(s->fd, s->buf + done, s->used - done);

		if (n < 0 && errno != EINTR)
			s->error = -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	s->used = 0;
	return s->error;
}

static void put(struct stacks *s, const void *data, size_t n)
{
	memcpy(s->buf + s->used, data, n);
	s->used += n;
	s->bytes += n;
}

void stacks__add(struct stacks *s, u64 at, const struct stack_copy *c, size_t size)
{
	size_t n = sizeof(*c) + (size_t)c->bytes;

	if (s->sink && n <= size && c->bytes <= STACK_ROOM) {
		s->sink(s->sink_arg, c, size);
		return;
	}
	if (s->fd < 0 || s->error || n > size || c->bytes > STACK_ROOM || s->bytes + n > STACKS_MAX_BYTES) {
		s->dropped++;
		return;
	}
	if (s->used + sizeof(at) + n > BUF_BYTES && flush(s)) {
		s->dropped++;
		return;
	}
	put(s, &at, sizeof(at));
	put(s, c, n);
	s->n++;
}

/* ---- reading back: the same buffer ---- */

int stacks__rewind(struct stacks *s)
{
	int err = s->fd < 0 ? 0 : flush(s);

	s->used = 0;
	s->bytes = 0; /* read so far */
	if (s->fd >= 0 && lseek(s->fd, 0, SEEK_SET) < 0)
		return -errno;
	return err;
}

/* 1, 0 at the end of the file, -errno */
static int read_all(struct stacks *s, void *to, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = read(s->fd, (char *)to + done, n - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : 0;
		done += (size_t)got;
	}
	s->bytes += n;
	return 1;
}

int stacks__next(struct stacks *s, struct stack_entry *e)
{
	int got = s->fd < 0 ? 0 : read_all(s, e, sizeof(*e));

	if (got <= 0)
		return got;
	if (e->stack.bytes > STACK_ROOM)
		return -EBADMSG;
	return read_all(s, e->stack.data, e->stack.bytes);
}

void stacks__close(struct stacks *s)
{
	if (s->fd >= 0)
		close(s->fd);
	free(s->buf);
	*s = (struct stacks){.fd = -1};
}
