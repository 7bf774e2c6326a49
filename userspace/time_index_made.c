/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The time index of a recording that has none behind its records. It is not put there: nothing but the recorder writes
 * to a recording, which may be at work on this one. It stands in a file of its own in the user's cache, behind the
 * header of a recording without records.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cache_dir.h"
#include "exporter.h"
#include "log.h"
#include "model.h"
#include "replay.h"
#include "time_index.h"

#define KEPT_BYTES (1ULL << 30)
#define SAID_BYTES (1ULL << 30) /* of a recording that long the user is told why it takes its time */

struct kept {
	int dir; /* -1: nothing is kept */
	char name[80];
};

static void find_kept(struct kept *k, const struct recording *r)
{
	const u64 *id = r->hdr.uuid;

	k->dir = cache_dir__open("indexes");
	/* another build may learn other things from the same records */
	snprintf(k->name, sizeof(k->name), "%016llx%016llx-%.32s", (unsigned long long)id[0], (unsigned long long)id[1],
		REDFRAME_VERSION);
}

static bool open_kept(const struct kept *k, struct time_index *ix, const struct recording *r)
{
	int fd = k->dir < 0 ? -1 : openat(k->dir, k->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (!cache_dir__is_safe(fd, S_IFREG)) {
		close(fd);
		return false;
	}
	futimens(fd, NULL); /* it is in use */
	return time_index__open_apart(ix, r, fd);
}

/* A file without a name, until it is whole: what is interrupted leaves nothing behind. -1: there is no place for it. */
static int new_file(const struct kept *k)
{
	int fd = k->dir < 0 ? -1 : openat(k->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	FILE *f = fd < 0 ? tmpfile() : NULL;

	if (f) {
		fd = fcntl(fileno(f), F_DUPFD_CLOEXEC, 0);
		fclose(f);
	}
	return fd;
}

/* Whoever reads meanwhile has the old one, and of two that write the last one stays. */
static void keep(const struct kept *k, int fd)
{
	char path[64], new[sizeof(k->name) + 32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	snprintf(new, sizeof(new), "%s.%d", k->name, getpid());
	if (k->dir < 0 || linkat(AT_FDCWD, path, k->dir, new, AT_SYMLINK_FOLLOW))
		return;
	if (renameat(k->dir, new, k->dir, k->name))
		unlinkat(k->dir, new, 0);
	cache_dir__make_room(k->dir, KEPT_BYTES);
}

static int write_header(int fd, u64 start, u64 *bytes)
{
	struct recording_writer w;
	int to = fcntl(fd, F_DUPFD_CLOEXEC, 0), err = to < 0 ? -errno : recording__create(&w, to, start);

	if (to < 0)
		return err;
	*bytes = w.bytes;
	return recording__finish(&w, !err) ?: err;
}

/* All of the recording, without an explanation: a third of the time that one takes. */
static int write_index(int fd, struct recording *r)
{
	struct replay bare = {.bare = true};
	struct model *m = model__new();
	struct exporter *writer = NULL;
	u64 at = 0;
	int err = !m ? -ENOMEM : write_header(fd, r->hdr.start, &at);

	if (!err)
		err = replay__prepare(r, m) ?: recording__seek(r, r->hdr.header_bytes, recording__records_end(r));
	if (!err) {
		writer = time_index__writer(fd, at, r);
		err = writer ? replay__run(r, m, NULL, &writer, 1, &bare) : -ENOMEM;
	}
	if (!err && !time_index__written(writer))
		err = -EIO; /* said already */
	if (writer)
		writer->ops->close(writer);
	model__free(m);
	return err ?: recording__rewind(r);
}

static bool make(const struct kept *k, struct time_index *ix, struct recording *r)
{
	int fd = new_file(k);

	if (fd < 0)
		return false;
	if (r->size >= SAID_BYTES)
		log_info("this recording ended without a time index: all of it is read once to make one%s",
			k->dir < 0 ? "" : ", which is kept for the next time");
	if (write_index(fd, r)) {
		close(fd);
		recording__rewind(r);
		return false;
	}
	keep(k, fd);
	return time_index__open_apart(ix, r, fd);
}

bool time_index__get(struct time_index *ix, struct recording *r, bool may_make)
{
	struct kept k;
	bool found;

	if (time_index__open(ix, r))
		return true;
	if (r->size < INDEX_MADE_BYTES)
		return false;
	find_kept(&k, r);
	found = open_kept(&k, ix, r) || (may_make && make(&k, ix, r));
	if (k.dir >= 0)
		close(k.dir);
	return found;
}
