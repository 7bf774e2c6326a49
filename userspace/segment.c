/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "intern.h"
#include "model.h"
#include "output.h"
#include "segment.h"
#include "stack_cache.h"

int segment__open(struct segment *s, const char *dir, u32 number, u64 from)
{
	int fd, err;

	memset(s, 0, sizeof(*s));
	s->w.fd = s->stacks.fd = -1;
	if (snprintf(s->path, sizeof(s->path), "%s/segment-%06u.redframe", dir, number) >= (int)sizeof(s->path))
		return -ENAMETOOLONG;
	fd = output__open(s->path, false);
	if (fd < 0)
		return fd;
	err = recording__create(&s->w, fd, from);
	if (!err)
		err = stacks__open(&s->stacks, fd);
	if (err) {
		segment__abandon(s);
		unlink(s->path);
		return err;
	}
	s->number = number;
	s->from = s->to = from;
	return 0;
}

static int put_text(void *arg, const void *fixed, size_t bytes, const char *text, size_t len)
{
	struct segment *s = arg;

	return recording__append_text(&s->w, fixed, bytes, text, len);
}

int segment__define(struct segment *s, const struct model *m)
{
	return model__tell(m, s->from, put_text, s);
}

/* which file a record is about; false: none */
static bool file_of(const struct ev_hdr *rec, u32 *dev, u64 *ino)
{
	switch (rec->kind) {
#define X(KIND, kind)                                                                                                  \
	case EV_##KIND:                                                                                                \
		*dev = ((const struct ev_##kind *)rec)->dev;                                                           \
		*ino = ((const struct ev_##kind *)rec)->ino;                                                           \
		return *ino != 0;
		X(MAP, map)
		X(FILE_READ, file_read)
		X(FILE_WRITE, file_write)
		X(FILE_META, file_meta)
		X(FILE_SYNC, file_sync)
		X(URING_SUBMIT, uring_submit)
		X(URING_DONE, uring_done)
#undef X
	}
	return false;
}

static int tell_path(struct segment *s, const struct ev_hdr *rec, const struct model *m)
{
	u64 ino, hash, *slot;
	u32 dev;

	if (!file_of(rec, &dev, &ino))
		return 0;
	hash = hash64(ino ^ hash64(dev)) | 1;
	slot = &s->told[hash / 2 & (SEGMENT_PATHS - 1)];
	if (*slot == hash)
		return 0;
	*slot = hash;
	return model__tell_path(m, rec->ts, dev, ino, put_text, s);
}

static void put_stack(struct segment *s, const struct ev_stack *rec, const struct stack_cache *c)
{
	size_t size = 0;
	const struct stack_copy *copy = rec->chain ? NULL : stack_cache__get(c, rec, &size);

	if (copy)
		stacks__add(&s->stacks, s->w.bytes, copy, size);
	else if (!rec->chain)
		s->no_stack++;
}

int segment__write(struct segment *s, const struct ev_hdr *rec, const struct model *m, const struct stack_cache *c)
{
	int err = tell_path(s, rec, m);

	if (err)
		return err;
	if (rec->kind == EV_STACK)
		put_stack(s, (const struct ev_stack *)rec, c);
	s->to = max(s->to, rec->ts);
	return recording__append(&s->w, rec, rec->words * 8u);
}

void segment__abandon(struct segment *s)
{
	if (s->w.fd >= 0)
		recording__finish(&s->w, false);
	stacks__close(&s->stacks);
	s->number = 0;
}
