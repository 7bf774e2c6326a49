/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Reading a recording. Every byte of it is hostile until checked.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "events_desc.h"
#include "log.h"
#include "recording.h"
#include "recording_kinds.h"

_Static_assert(sizeof(struct recording_hdr) == 64, "on-disk format");

#define READ_BYTES (256u << 10)

/* Makes `need` bytes available at buf + pos; fewer only at the end of the file. 0 or -errno. */
static int fill(struct recording *r, size_t need)
{
	ssize_t n;

	if (r->used - r->pos >= need || r->eof)
		return 0;
	memmove(r->buf, r->buf + r->pos, r->used - r->pos);
	r->used -= r->pos;
	r->pos = 0;
	while (r->used < need && !r->eof) {
		n = pread(r->fd, r->buf + r->used, (size_t)min((u64)(r->cap - r->used), r->read_to - r->read_at),
			(off_t)r->read_at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		r->eof = n == 0;
		r->used += (size_t)n;
		r->read_at += (u64)n;
		r->bytes_read += (u64)n;
	}
	return 0;
}

static int check_header(const struct recording_hdr *h, size_t got)
{
	if (!got)
		return -ENODATA;
	if (got < sizeof(h->magic) || memcmp(h->magic, RECORDING_MAGIC, sizeof(h->magic)))
		return -EINVAL;
	if (got < sizeof(*h) || h->bom != RECORDING_BOM)
		return -EBADMSG;
	if (h->major != RECORDING_MAJOR)
		return -EPROTO;
	if (h->header_bytes < sizeof(*h) || h->header_bytes > RECORDING_HEADER_MAX || h->header_bytes % 8 ||
		h->kinds > 255)
		return -EBADMSG;
	return 0;
}

/* as far as the header tells: what is found at the end comes on top */
static bool is_cut(const struct recording *r)
{
	return (r->hdr.flags & RECORDING_INCOMPLETE) || r->size < r->hdr.bytes;
}

/* Behind the records of a complete file there may be an index of them. */
static u64 end_of_records(const struct recording *r)
{
	return is_cut(r) || r->hdr.bytes < r->hdr.header_bytes ? UINT64_MAX : r->hdr.bytes;
}

static int read_header(struct recording *r)
{
	int err;

	err = fill(r, sizeof(r->hdr));
	if (err)
		return err;
	memcpy(&r->hdr, r->buf, min(r->used, sizeof(r->hdr)));
	err = check_header(&r->hdr, r->used);
	if (err)
		return err;
	err = fill(r, r->hdr.header_bytes);
	if (err)
		return err;
	if (r->used < r->hdr.header_bytes)
		return -EBADMSG;
	err = kinds__decode(r->buf + sizeof(r->hdr), r->hdr.header_bytes - sizeof(r->hdr), r->hdr.kinds, r->kind_bytes);
	r->end = end_of_records(r);
	r->truncated = is_cut(r);
	return err ? err : recording__rewind(r);
}

int recording__open_fd(struct recording *r, int fd)
{
	struct stat st;
	int err;

	*r = (struct recording){.fd = fd, .end = UINT64_MAX, .read_to = UINT64_MAX};
	if (fstat(fd, &st)) {
		err = -errno;
		goto cleanup;
	}
	err = S_ISDIR(st.st_mode) ? -EISDIR : S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (err)
		goto cleanup;
	r->size = (u64)st.st_size;
	r->cap = READ_BYTES;
	r->buf = malloc(r->cap);
	err = r->buf ? read_header(r) : -ENOMEM;
cleanup:
	if (err)
		recording__close(r);
	return err;
}

int recording__open(struct recording *r, const char *path)
{
	/* O_NONBLOCK: a FIFO without a writer must not hang us; it is refused afterwards */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	*r = (struct recording){.fd = -1};
	return fd < 0 ? -errno : recording__open_fd(r, fd);
}

int recording__seek(struct recording *r, u64 from, u64 to)
{
	if (to < from || from > INT64_MAX)
		return -EBADMSG;
	r->used = r->pos = 0;
	r->eof = false;
	r->read_at = r->offset = from;
	r->read_to = to;
	r->newest = 0;
	r->cut_bytes = r->unknown = r->malformed = 0;
	r->truncated = is_cut(r);
	return 0;
}

u64 recording__records_end(const struct recording *r)
{
	return min(r->end, r->size);
}

int recording__rewind(struct recording *r)
{
	return recording__seek(r, r->hdr.header_bytes, r->end);
}

/* The record as this build knows its kind: fields that its writer did not have are 0, fields that we do not know are
 * left out, the text follows where we look for it (cut where the record would grow too long). */
static const struct ev_hdr *translate(struct recording *r, const struct ev_hdr *h, const struct ev_desc *d)
{
	size_t theirs = r->kind_bytes[h->kind], text = ev__bytes(h) - theirs;
	struct ev_hdr *out = (struct ev_hdr *)r->bounce;

	if (!d->has_text)
		text = 0;
	text = min(text, (size_t)EV_MAX_BYTES - d->size);
	memset(r->bounce, 0, d->size);
	memcpy(r->bounce, h, min(theirs, (size_t)d->size));
	memcpy((char *)r->bounce + d->size, (const char *)h + theirs, text);
	out->words = (u8)((d->size + text) / 8);
	return out;
}

/* The end of what can be read: `left` bytes are no record. */
static int end_at(struct recording *r, u64 left)
{
	if (left) {
		u64 end = min(r->size, r->read_to);

		r->cut_bytes = end > r->offset ? max(end - r->offset, left) : left;
		r->truncated = true;
	}
	r->pos = r->used;
	r->eof = true;
	return 0;
}

/* One record into *h, whatever it is: 1, 0 at the end, -errno. */
static int next_raw(struct recording *r, const struct ev_hdr **h)
{
	size_t bytes, have;
	int err;

	err = fill(r, EV_MAX_BYTES);
	if (err)
		return err;
	have = r->used - r->pos;
	if (have < sizeof(**h))
		return end_at(r, have);
	*h = (const struct ev_hdr *)(r->buf + r->pos);
	bytes = ev__bytes(*h);
	/* a record shorter than its header: damage, and no way to find the next one */
	if (bytes < sizeof(**h) || bytes > have)
		return end_at(r, have);
	r->pos += bytes;
	r->offset += bytes;
	r->newest = max(r->newest, (*h)->ts);
	return 1;
}

int recording__next(struct recording *r, const struct ev_hdr **rec)
{
	const struct ev_desc *d;
	const struct ev_hdr *h = NULL;
	int got;

	while ((got = next_raw(r, &h)) == 1) {
		u16 theirs = r->kind_bytes[h->kind];

		d = ev__desc(h->kind);
		if (!d || !theirs) {
			r->unknown++;
		} else if (ev__bytes(h) < theirs) {
			r->malformed++;
		} else {
			*rec = theirs == d->size && (d->has_text || ev__bytes(h) == d->size) ? h : translate(r, h, d);
			return 1;
		}
	}
	return got;
}

void recording__close(struct recording *r)
{
	if (r->fd >= 0)
		close(r->fd);
	free(r->buf);
	r->fd = -1;
	r->buf = NULL;
}

const char *recording__strerror(int err)
{
	switch (-err) {
	case EINVAL:
		return "not a redframe recording (a .redframe file begins with REDFRAME)";
	case EPROTO:
		return "made by a newer redframe, with a format that this one does not know: explain it with that "
		       "version";
	case ENODATA:
		return "empty: nothing was recorded into it";
	case EBADMSG:
		return "damaged in its header, or from a machine of the other byte order: record again";
	case EISDIR:
		return "a directory: name the .redframe file in it";
	}
	return errstr(err);
}
