/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The time index of a recording that has none behind its records. It is not put there: nothing but the recorder writes
 * to a recording, which may be at work on this one. It stands in a file of its own in the user's cache, behind the
 * header of a recording without records.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cache_dir.h"
#include "events_desc.h"
#include "exporter.h"
#include "log.h"
#include "model.h"
#include "replay.h"
#include "time_index.h"

#define KEPT_BYTES      (1ULL << 30)
#define BEGINNING_BYTES (1u << 20)
#define SAID_BYTES      (1ULL << 30) /* of a recording that long the user is told why it takes its time */

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

/* ---- what has to be known before the first record ---- */

/* Of one that was cut off this stands at its beginning: the rest comes when recording ends. So it need not be read once
 * for that and once more for the records, unless something comes late after all. */
struct watch {
	struct exporter base;
	struct model *known; /* what the beginning foretells */
	u64 code;            /* so many records of code are among it */
};

static bool is_foretold(struct watch *w, const struct ev_hdr *rec)
{
	char text[EV_MAX_BYTES], *value;
	const char *known;

	if (model__is_of_code(rec->kind))
		return w->code && w->code--;
	if (rec->kind != EV_INFO)
		return true;
	ev__text(rec, text, sizeof(text));
	value = strchr(text, '=');
	if (!value || (strncmp(text, "game.tgid=", 10) && strncmp(text, "session.children=", 17) &&
			      strncmp(text, "child.", 6)))
		return true; /* no state rests on it */
	*value++ = '\0';
	known = model__info(w->known, text);
	return known && !strcmp(known, value);
}

static int foretell_beginning(struct recording *r, struct model *m, u64 *code)
{
	const struct ev_hdr *rec;
	int got = 0,
	    err = recording__seek(r, r->hdr.header_bytes, min(recording__records_end(r), (u64)BEGINNING_BYTES));

	*code = 0;
	while (!err && (got = recording__next(r, &rec)) == 1) {
		*code += model__is_of_code(rec->kind);
		err = model__foretell(m, rec);
	}
	return err ?: min(got, 0);
}

static int watch_event(struct exporter *e, const struct model *m, const struct ev_hdr *rec)
{
	return is_foretold((struct watch *)e, rec) ? 0 : -EAGAIN;
}

static int watch_frame(struct exporter *e, const struct model *m, const struct verdict *v)
{
	return 0;
}

static int watch_end(struct exporter *e, const struct model *m, const struct report *r)
{
	return 0;
}

static const struct exporter_ops watching = {
	.name = "watch", .event = watch_event, .frame = watch_frame, .end = watch_end};

/* ---- making it ---- */

/* A replay without an explanation: a third of the time that one takes. With watch it is -EAGAIN where more has to be
 * foretold than was. */
static int replay_into(int fd, u64 at, struct recording *r, struct model *m, struct watch *watch)
{
	struct exporter *e[2] = {time_index__writer(fd, at, r), watch ? &watch->base : NULL};
	struct replay bare = {.bare = true};
	int err = e[0] ? recording__seek(r, r->hdr.header_bytes, recording__records_end(r)) : -ENOMEM;

	if (!err)
		err = replay__run(r, m, NULL, e, watch ? 2 : 1, &bare);
	if (!err && !time_index__written(e[0]))
		err = -EIO; /* said already */
	if (e[0])
		e[0]->ops->close(e[0]);
	return err;
}

static int write_by_beginning(int fd, u64 at, struct recording *r)
{
	struct watch watch = {.base = {.ops = &watching, .fd = -1}, .known = model__new()};
	struct model *m = model__new();
	int err = m && watch.known
			  ? foretell_beginning(r, watch.known, &watch.code) ?: foretell_beginning(r, m, &watch.code)
			  : -ENOMEM;

	if (!err)
		err = replay_into(fd, at, r, m, &watch);
	model__free(watch.known);
	model__free(m);
	return err;
}

static int write_by_all(int fd, u64 at, struct recording *r)
{
	struct model *m = model__new();
	int err = m ? recording__rewind(r) ?: replay__prepare(r, m) : -ENOMEM;

	if (!err)
		err = replay_into(fd, at, r, m, NULL);
	model__free(m);
	return err;
}

static int write_index(int fd, struct recording *r)
{
	u64 at = 0;
	int err = write_header(fd, r->hdr.start, &at);

	if (!err)
		err = r->truncated ? write_by_beginning(fd, at, r) : -EAGAIN;
	if (err == -EAGAIN)
		err = write_by_all(fd, at, r);
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
