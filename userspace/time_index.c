/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Reading a time index. Every number in it is hostile until checked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "recording.h"
#include "time_index.h"

#define LIST_MAX (1ULL << 30)

_Static_assert(sizeof(struct index_point) == 40 && sizeof(struct index_frame) == 32 &&
		       sizeof(struct index_list) == 32 && sizeof(struct index_tail) == 48,
	"on-disk format");

static bool read_all(int fd, void *to, size_t n, u64 at)
{
	ssize_t got;

	for (size_t done = 0; done < n; done += (size_t)got) {
		got = pread(fd, (char *)to + done, n - done, (off_t)(at + done));
		if (got <= 0)
			return false;
	}
	return true;
}

/* `in`: the recording that the index stands behind */
static bool is_tail(const struct index_tail *t, const struct recording *in, const struct recording *r)
{
	u64 end = in->size - sizeof(*t);

	return !memcmp(t->magic, INDEX_MAGIC, sizeof(t->magic)) && t->uuid == r->hdr.uuid[0] &&
	       t->records_end == recording__records_end(r) && t->list_offset >= in->end && t->list_offset <= end &&
	       t->list_bytes == end - t->list_offset && t->list_bytes >= sizeof(struct index_list) &&
	       t->list_bytes <= LIST_MAX;
}

static bool is_range(u64 from, u64 to, u64 least, u64 most)
{
	return from >= least && from <= to && to <= most && from % 8 == 0;
}

static bool check_list(const struct time_index *ix, const struct recording *r, const struct index_tail *t)
{
	const struct index_list *l = &ix->list;
	u64 left = t->list_bytes - sizeof(*l), last = 0, behind = ix->told->end;

	if (l->n_points > left / sizeof(*ix->points) || l->n_frames > left / sizeof(*ix->frames) ||
		l->n_points * sizeof(*ix->points) + l->n_frames * sizeof(*ix->frames) != left ||
		!is_range(l->names_from, l->names_to, behind, t->list_offset))
		return false;
	for (u64 i = 0; i < l->n_points; i++) {
		const struct index_point *p = &ix->points[i];

		if (p->ts < last || !is_range(p->offset, p->offset, r->hdr.header_bytes, t->records_end) ||
			!is_range(p->state_from, p->state_to, behind, t->list_offset))
			return false;
		last = p->ts;
	}
	for (u64 i = 0; i < l->n_frames; i++)
		if (ix->frames[i].stream >= INDEX_STREAMS || ix->frames[i].start >= ix->frames[i].end)
			return false;
	return true;
}

static bool read_index(struct time_index *ix, const struct recording *r)
{
	const struct recording *in = ix->told;
	struct index_tail t;
	bool good;

	if (in->end == UINT64_MAX || in->size - in->end < sizeof(t) ||
		!read_all(in->fd, &t, sizeof(t), in->size - sizeof(t)) || !is_tail(&t, in, r))
		return false;
	ix->buf = malloc(t.list_bytes);
	good = ix->buf && read_all(in->fd, ix->buf, t.list_bytes, t.list_offset) &&
	       crc32(0, (const Bytef *)ix->buf, (uInt)t.list_bytes) == t.list_crc;
	if (good) {
		memcpy(&ix->list, ix->buf, sizeof(ix->list));
		ix->points = (const struct index_point *)(ix->buf + sizeof(ix->list));
		ix->frames = (const struct index_frame *)(ix->points + min(ix->list.n_points, t.list_bytes / 40));
		good = check_list(ix, r, &t);
	}
	return good;
}

bool time_index__open(struct time_index *ix, struct recording *r)
{
	*ix = (struct time_index){.told = r};
	if (read_index(ix, r))
		return true;
	time_index__free(ix);
	return false;
}

bool time_index__open_apart(struct time_index *ix, const struct recording *r, int fd)
{
	*ix = (struct time_index){};
	if (recording__open_fd(&ix->own, fd))
		return false;
	ix->told = &ix->own;
	if (read_index(ix, r))
		return true;
	time_index__free(ix);
	return false;
}

void time_index__free(struct time_index *ix)
{
	if (ix->told == &ix->own)
		recording__close(&ix->own);
	free(ix->buf);
	*ix = (struct time_index){};
}

/* ---- where to begin ---- */

struct wanted {
	u32 before; /* frames that end before what is asked for */
	bool any;   /* some are asked for */
};

static void look_for(const struct time_index *ix, u64 from, u64 to, u32 stream, struct wanted *w, u64 *until)
{
	for (u64 i = 0; i < ix->list.n_frames; i++) {
		const struct index_frame *f = &ix->frames[i];

		if (stream != ~0U && f->stream != stream)
			continue;
		w[f->stream].before += f->end < from;
		if (f->end < from || f->start > to)
			continue;
		w[f->stream].any = true;
		*until = max(*until, f->end);
	}
}

/* INDEX_FRAMES before the first frame of each stream that is asked for */
static u64 lead_in(const struct time_index *ix, u64 from, const struct wanted *w)
{
	u32 seen[INDEX_STREAMS] = {};
	u64 begin = from;

	for (u64 i = 0; i < ix->list.n_frames; i++) {
		const struct index_frame *f = &ix->frames[i];
		const struct wanted *k = &w[f->stream];

		if (k->any && seen[f->stream]++ + INDEX_FRAMES >= k->before)
			begin = min(begin, f->start);
	}
	return begin - min(begin, INDEX_SETTLE_NS);
}

void time_index__find(const struct time_index *ix, u64 from, u64 to, u32 stream, struct index_begin *b)
{
	struct wanted w[INDEX_STREAMS] = {};
	u64 begin;

	*b = (struct index_begin){.until = to};
	look_for(ix, from, to, stream, w, &b->until);
	b->until = time_index__tail(b->until);
	begin = lead_in(ix, from, w);
	for (u64 i = 0; i < ix->list.n_points && ix->points[i].ts <= begin; i++)
		b->point = &ix->points[i];
}

void time_index__count(const struct time_index *ix, const u64 until[INDEX_STREAMS], u32 counts[INDEX_STREAMS])
{
	memset(counts, 0, INDEX_STREAMS * sizeof(*counts));
	for (u64 i = 0; i < ix->list.n_frames; i++)
		counts[ix->frames[i].stream] += ix->frames[i].end <= until[ix->frames[i].stream];
}
