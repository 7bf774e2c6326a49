// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "maps.h"

#define MAPS_MAX_BYTES (64u << 20) /* vm.max_map_count lines of ordinary length are 6 MiB */

char *proc__read(const char *path, size_t limit, size_t *len)
{
	size_t cap = 4096, used = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	char *buf = fd < 0 ? NULL : malloc(cap + 1);

	if (!buf)
		err = fd < 0 ? errno : ENOMEM;
	while (!err) {
		ssize_t got = read(fd, buf + used, cap - used);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			err = errno;
		if (got <= 0)
			break;
		used += (size_t)got;
		if (used == cap && cap < limit) {
			char *more = realloc(buf, 2 * cap + 1);

			err = more ? 0 : ENOMEM;
			buf = more ? more : buf;
			cap = more ? 2 * cap : cap;
		}
		if (used == cap)
			break;
	}
	if (fd >= 0)
		close(fd);
	if (err) {
		free(buf);
		errno = err;
		return NULL;
	}
	buf[used] = 0;
	if (len)
		*len = used;
	return buf;
}

const char *path__base(const char *path)
{
	const char *base = path;

	for (const char *p = path; *p; p++)
		if (*p == '/' || *p == '\\')
			base = p + 1;
	return base;
}

/* The kernel writes a newline in a path as \012 and nothing else specially, not even a backslash. */
static void unescape(char *s)
{
	char *w = s;

	for (; *s; s++) {
		if (!strncmp(s, "\\012", 4)) {
			*w++ = '\n';
			s += 3;
		} else {
			*w++ = *s;
		}
	}
	*w = 0;
}

static bool parse_line(char *line, struct map *m)
{
	char prot[5] = "";
	unsigned int major, minor;
	int at = 0;
	size_t len;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 "%n", &m->start, &m->end, prot,
		    &m->offset, &major, &minor, &m->ino, &at) != 7 ||
		!at || m->start >= m->end)
		return false;
	m->dev = major << 20 | (minor & 0xfffff);
	m->prot =
		(prot[0] == 'r' ? PROT_READ : 0) | (prot[1] == 'w' ? PROT_WRITE : 0) | (prot[2] == 'x' ? PROT_EXEC : 0);
	m->shared = prot[3] == 's';
	line += at;
	line += strspn(line, " ");
	len = strlen(line);
	if (m->ino && len > 10 && !strcmp(line + len - 10, " (deleted)")) {
		line[len - 10] = 0;
		m->deleted = true;
	}
	unescape(line);
	m->path = line;
	return true;
}

int maps__parse(struct maps *m, char *text, size_t len)
{
	char *end = text + len;

	*m = (struct maps){.text = text};
	while (text < end) {
		char *eol = memchr(text, '\n', (size_t)(end - text));
		struct map map = {0};

		if (!eol)
			break; /* the list was cut */
		*eol = 0;
		if (parse_line(text, &map)) {
			if (m->n == m->cap) {
				int cap = m->cap ? 2 * m->cap : 256;
				struct map *v = reallocarray(m->v, (size_t)cap, sizeof(*v));

				if (!v) {
					maps__free(m);
					return -ENOMEM;
				}
				m->v = v;
				m->cap = cap;
			}
			m->v[m->n++] = map;
		}
		text = eol + 1;
	}
	return 0;
}

int maps__read(struct maps *m, u32 tgid)
{
	char path[64], *text;
	size_t len;

	*m = (struct maps){0};
	snprintf(path, sizeof(path), "/proc/%u/maps", tgid);
	text = proc__read(path, MAPS_MAX_BYTES, &len);
	if (!text)
		return errno == ENOENT ? -ESRCH : -errno;
	return maps__parse(m, text, len);
}

void maps__free(struct maps *m)
{
	free(m->v);
	free(m->text);
	*m = (struct maps){0};
}

const struct map *maps__find(const struct maps *m, u64 addr)
{
	int lo = 0, hi = m->n;

	while (lo < hi) {
		int mid = lo + (hi - lo) / 2;

		if (m->v[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < m->n && m->v[lo].start <= addr ? &m->v[lo] : NULL;
}

/* Through the name, for where map_files is not allowed; only if it still means the mapped inode. */
static int open_by_path(const struct map *map, u32 tgid)
{
	char path[4352];
	struct stat st;
	int fd;

	if (map->deleted || map->path[0] != '/' ||
		(size_t)snprintf(path, sizeof(path), "/proc/%u/root%s", tgid, map->path) >= sizeof(path))
		return -ESTALE;
	/* O_NONBLOCK: the name may lead to a FIFO by now, which must not hold us up */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_ino != map->ino ||
		(u32)(major(st.st_dev) << 20 | minor(st.st_dev)) != map->dev) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

int maps__open(const struct map *map, u32 tgid)
{
	char path[96];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, tgid, map->start, map->end);
	/* only a regular file is opened at all: opening a device that the game maps could have effects */
	if (stat(path, &st))
		return open_by_path(map, tgid);
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd >= 0 ? fd : open_by_path(map, tgid);
}
