/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Which path an inode has, and with which path a call was made.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "model_internal.h"

/* "leaf\0dir\0" becomes "/dir/leaf" at the end of buf; returns its begin. buf has room for n + 4 bytes more. */
static char *join(const char *parts, size_t n, bool cut, char *buf, size_t size)
{
	char *at = buf + size - 1;
	size_t pos = 0, len;

	*at = '\0';
	for (; pos < n; pos += len + 1) {
		len = strnlen(parts + pos, n - pos);
		if (!len)
			continue;
		at -= len;
		memcpy(at, parts + pos, len);
		*--at = '/';
	}
	if (!*at)
		*--at = '/';
	if (cut) {
		at -= strlen("…");
		memcpy(at, "…", strlen("…"));
	}
	return at;
}

int files__path(struct model *m, const struct ev_path *rec)
{
	char parts[EV_MAX_BYTES], buf[EV_MAX_BYTES + 32];
	size_t n = ev__text(&rec->hdr, parts, sizeof(parts));
	const char *path = buf;

	if (!n && S_ISFIFO(rec->mode))
		snprintf(buf, sizeof(buf), "pipe:[%llu]", (unsigned long long)rec->ino);
	else if (S_ISSOCK(rec->mode))
		snprintf(buf, sizeof(buf), "socket:[%llu]", (unsigned long long)rec->ino);
	else if (parts[0] == '[' && strlen(parts) == n && !rec->cut)
		snprintf(buf, sizeof(buf), "%s", parts); /* an anonymous inode: "[eventfd]" */
	else
		path = join(parts, n, rec->cut, buf, sizeof(buf));
	path = pool__intern(&m->pool, path, strlen(path));
	return path ? table__put(&m->files, file__key(rec->dev, rec->ino), (void *)path) : -ENOMEM;
}

const char *model__path(const struct model *m, u32 dev, u64 ino)
{
	return ino ? table__get(&m->files, file__key(dev, ino)) : NULL;
}

int files__path_arg(struct model *m, const struct ev_hdr *rec)
{
	struct mthread *t = model__mthread(m, rec->tid);

	if (t == &m->unknown)
		return 0;
	if (rec->kind == EV_FILE_META) {
		if (t->path_arg && t->path_arg[0])
			m->path_arg_tid = rec->tid;
		return 0;
	}
	if (!t->path_arg)
		t->path_arg = malloc(EV_MAX_BYTES);
	if (!t->path_arg)
		return -ENOMEM;
	ev__text(rec, t->path_arg, EV_MAX_BYTES);
	return 0;
}

void files__path_arg_used(struct model *m)
{
	if (m->path_arg_tid)
		model__mthread(m, m->path_arg_tid)->path_arg[0] = '\0';
	m->path_arg_tid = 0;
}

const char *model__path_arg(const struct model *m, const struct ev_hdr *rec)
{
	const struct mthread *t;

	if (rec->kind != EV_FILE_META || !m->path_arg_tid || m->path_arg_tid != rec->tid)
		return NULL;
	t = table__get(&m->threads, key__int(rec->tid));
	return t ? t->path_arg : NULL;
}
