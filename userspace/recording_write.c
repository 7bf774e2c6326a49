/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Writing a recording: one buffer, made at the start; after the first error nothing more is written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "events_desc.h"
#include "recording.h"
#include "recording_kinds.h"

#define WRITE_BYTES (1u << 20)

static int write_all(int fd, const char *data, size_t n)
{
	ssize_t done;

	while (n) {
		done = write(fd, data, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		data += done;
		n -= (size_t)done;
	}
	return 0;
}

static int write_header(struct recording_writer *w, u64 start)
{
	struct recording_hdr hdr = {.magic = RECORDING_MAGIC,
		.bom = RECORDING_BOM,
		.major = RECORDING_MAJOR,
		.minor = RECORDING_MINOR,
		.flags = RECORDING_INCOMPLETE,
		.start = start};
	struct str list = {0};
	int err;

	if (getrandom(hdr.uuid, sizeof(hdr.uuid), GRND_NONBLOCK) != sizeof(hdr.uuid))
		hdr.uuid[0] = start, hdr.uuid[1] = (u64)getpid();
	hdr.kinds = kinds__encode(&list);
	hdr.header_bytes = (u32)(sizeof(hdr) + list.len);
	err = list.oom ? -ENOMEM : write_all(w->fd, (const char *)&hdr, sizeof(hdr));
	if (!err)
		err = write_all(w->fd, list.s, list.len);
	w->bytes = hdr.header_bytes;
	str__free(&list);
	return err;
}

int recording__create(struct recording_writer *w, int fd, u64 start)
{
	*w = (struct recording_writer){.fd = fd, .size = WRITE_BYTES};
	w->buf = malloc(w->size);
	w->error = w->buf ? write_header(w, start) : -ENOMEM;
	return w->error;
}

void recording__to(struct recording_writer *w, int (*sink)(void *arg, const struct ev_hdr *rec), void *arg)
{
	*w = (struct recording_writer){.fd = -1, .sink = sink, .sink_arg = arg};
}

int recording__flush(struct recording_writer *w)
{
	if (!w->error && w->used)
		w->error = write_all(w->fd, w->buf, w->used);
	w->used = 0;
	return w->error;
}

int recording__rest(struct recording_writer *w)
{
	recording__flush(w);
	free(w->buf);
	w->buf = NULL;
	return w->error;
}

int recording__resume(struct recording_writer *w)
{
	w->buf = malloc(w->size);
	if (!w->buf && !w->error)
		w->error = -ENOMEM;
	return w->error;
}

int recording__append(struct recording_writer *w, const void *rec, size_t bytes)
{
	if (w->error)
		return w->error;
	if (w->sink) {
		w->bytes += bytes;
		w->records++;
		return w->error = w->sink(w->sink_arg, rec);
	}
	if (w->limit && w->bytes + bytes > w->limit) {
		recording__flush(w);
		if (!w->error)
			w->error = -EFBIG;
		return w->error;
	}
	if (w->used + bytes > w->size && recording__flush(w))
		return w->error;
	memcpy(w->buf + w->used, rec, bytes);
	w->used += bytes;
	w->bytes += bytes;
	w->records++;
	return 0;
}

int recording__append_text(
	struct recording_writer *w, const void *fixed, size_t fixed_bytes, const char *text, size_t len)
{
	u64 rec[EV_MAX_BYTES / 8] = {0};
	struct ev_hdr *h = (struct ev_hdr *)rec;

	/* at least one NUL after the text, so that no reader can run off it */
	len = min(len, sizeof(rec) - fixed_bytes - 1);
	memcpy(rec, fixed, fixed_bytes);
	memcpy((char *)rec + fixed_bytes, text, len);
	h->words = (u8)((fixed_bytes + len + 8) / 8);
	return recording__append(w, rec, ev__bytes(h));
}

/* the size first: the flag makes it valid */
static int mark_complete(const struct recording_writer *w)
{
	u32 no_flags = 0;

	errno = EIO; /* for a short write */
	if (pwrite(w->fd, &w->bytes, sizeof(w->bytes), offsetof(struct recording_hdr, bytes)) != sizeof(w->bytes) ||
		pwrite(w->fd, &no_flags, sizeof(no_flags), offsetof(struct recording_hdr, flags)) != sizeof(no_flags))
		return -errno;
	return 0;
}

int recording__finish(struct recording_writer *w, bool complete)
{
	int err = recording__flush(w);

	if (w->sink)
		return err;
	if (complete && !err)
		err = mark_complete(w);
	if (close(w->fd) && !err)
		err = -errno;
	free(w->buf);
	w->buf = NULL;
	w->fd = -1;
	w->error = err;
	return err;
}
