/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "events_desc.h"
#include "explain.h"
#include "model.h"
#include "output.h"
#include "slices.h"

#define TAIL_NS   NSEC_PER_SEC /* how long after its end a file waits for what began in it and ends later */
#define CPUS_MAX  1024u
#define PATH_ROOM 4096

static const struct slice everything = {0, UINT64_MAX};

struct slices {
	struct exporter base;
	struct slices_options o;
	const struct slice *only;
	u32 n_only, at; /* the first that has not ended TAIL_NS ago */
	/* `next` takes over from `now` where that one is full; now still gets what touches it, for TAIL_NS */
	struct exporter *now, *next;
	u32 files;
	u64 frames;
	/* what a file that begins in the middle is told first */
	struct ev_clock clock;
	struct ev_switch *last[CPUS_MAX]; /* by CPU */
};

static struct slices *slices_of(const struct exporter *e)
{
	return (struct slices *)e;
}

/* "run.pftrace", "run-2.pftrace" */
static int name_of(const struct slices *s, u32 file, char *path)
{
	const char *suffix = strrchr(s->o.path, '.'), *dir = strrchr(s->o.path, '/');
	int n;

	if (!suffix || suffix < dir)
		suffix = s->o.path + strlen(s->o.path);
	n = file ? snprintf(path, PATH_ROOM, "%.*s-%u%s", (int)(suffix - s->o.path), s->o.path, file + 1, suffix)
		 : snprintf(path, PATH_ROOM, "%s", s->o.path);
	return n < PATH_ROOM ? 0 : -ENAMETOOLONG;
}

static bool is_stdout(const struct slices *s)
{
	return !strcmp(s->o.path, "-");
}

static int open_file(struct slices *s, struct exporter **e)
{
	char path[PATH_ROOM];
	int err = name_of(s, s->files, path), fd;

	if (err)
		return err;
	fd = is_stdout(s) ? STDOUT_FILENO : output__open(path, s->o.force);
	if (fd < 0)
		return fd;
	*e = s->o.format->open(fd);
	if (!*e) {
		if (!is_stdout(s)) {
			close(fd);
			unlink(path);
		}
		return -ENOMEM;
	}
	s->files++;
	(*e)->zero = s->o.zero;
	(*e)->from = s->only[0].from;
	(*e)->to = s->only[s->n_only - 1].to;
	return 0;
}

static int close_file(struct slices *s, struct exporter **e)
{
	int fd, err = 0;

	if (!*e)
		return 0;
	fd = (*e)->fd;
	(*e)->ops->close(*e);
	if (!is_stdout(s) && close(fd))
		err = -errno;
	*e = NULL;
	return err;
}

/* ---- what belongs where ---- */

static bool has_moment(const struct ev_hdr *rec, const struct ev_desc *d)
{
	return d->shape != SHAPE_META || rec->kind == EV_LOST || rec->kind == EV_SCENE;
}

static u64 begin_of(const struct ev_hdr *rec)
{
	u64 dur = ev__dur(rec);

	if (rec->kind == EV_LOST)
		return min(((const struct ev_lost *)rec)->since, rec->ts);
	return rec->ts - min(dur, rec->ts);
}

static bool touches(u64 from, u64 to, u64 begin, u64 end)
{
	return begin <= to && end >= from;
}

static bool is_selected(struct slices *s, u64 begin, u64 end)
{
	while (s->at + 1 < s->n_only && s->only[s->at].to + TAIL_NS < end)
		s->at++;
	for (u32 i = s->at; i < s->n_only && s->only[i].from <= end; i++)
		if (touches(s->only[i].from, s->only[i].to, begin, end))
			return true;
	return false;
}

static int give(struct exporter *e, const struct model *m, const struct ev_hdr *rec, u64 begin)
{
	return e && touches(e->from, e->to, begin, rec->ts) ? e->ops->event(e, m, rec) : 0;
}

/* ---- from file to file ---- */

static int remember(struct slices *s, const struct ev_hdr *rec)
{
	if (rec->kind == EV_CLOCK && rec->words * 8u >= sizeof(s->clock))
		memcpy(&s->clock, rec, sizeof(s->clock));
	if (rec->kind != EV_SWITCH || rec->cpu >= CPUS_MAX || rec->words * 8u < sizeof(struct ev_switch))
		return 0;
	if (!s->last[rec->cpu])
		s->last[rec->cpu] = malloc(sizeof(struct ev_switch));
	if (!s->last[rec->cpu])
		return -ENOMEM;
	memcpy(s->last[rec->cpu], rec, sizeof(struct ev_switch));
	return 0;
}

/* The clocks, and what runs on each CPU: it goes on running at the cut. */
static int begin_in_the_middle(struct slices *s, struct exporter *e, const struct model *m)
{
	int err = s->clock.hdr.ts ? e->ops->event(e, m, &s->clock.hdr) : 0;

	for (u32 i = 0; i < CPUS_MAX && !err; i++) {
		if (!s->last[i])
			continue;
		struct ev_switch again = *s->last[i];

		again.hdr.ts = e->from;
		err = e->ops->event(e, m, &again.hdr);
	}
	return err;
}

static bool is_full(const struct slices *s)
{
	off_t written;

	if (!s->o.split_bytes || s->next || is_stdout(s))
		return false;
	written = lseek(s->now->fd, 0, SEEK_CUR);
	return written >= 0 && (u64)written >= s->o.split_bytes;
}

static int cut(struct slices *s, const struct model *m, u64 ts)
{
	int err = open_file(s, &s->next);

	if (err)
		return err;
	s->next->from = ts;
	s->now->to = ts;
	return begin_in_the_middle(s, s->next, m);
}

static int finish_file(struct slices *s, const struct model *m)
{
	int err = s->now->ops->end(s->now, m, NULL), closed = close_file(s, &s->now);

	s->now = s->next;
	s->next = NULL;
	return err ? err : closed;
}

/* ---- as an exporter ---- */

static int slices_event(struct exporter *e, const struct model *m, const struct ev_hdr *rec)
{
	struct slices *s = slices_of(e);
	const struct ev_desc *d = ev__desc(rec->kind);
	u64 begin;
	int err;

	if (!d || ev__bytes(rec) < d->size)
		return 0;
	if (!has_moment(rec, d)) { /* definitions are for all of it */
		err = remember(s, rec);
		if (!err)
			err = s->now->ops->event(s->now, m, rec);
		return err || !s->next ? err : s->next->ops->event(s->next, m, rec);
	}
	if (s->next && rec->ts > s->now->to + TAIL_NS) {
		err = finish_file(s, m);
		if (err)
			return err;
	}
	begin = begin_of(rec);
	err = 0;
	if (is_selected(s, begin, rec->ts)) {
		err = model__ended_frame(m) && is_full(s) ? cut(s, m, rec->ts) : 0;
		if (!err)
			err = give(s->now, m, rec, begin);
		if (!err)
			err = give(s->next, m, rec, begin);
	}
	return err ? err : remember(s, rec);
}

static int slices_frame(struct exporter *e, const struct model *m, const struct verdict *v)
{
	struct slices *s = slices_of(e);
	struct exporter *to = s->next && v->frame.end > s->next->from ? s->next : s->now;

	/* its neighbours share its first and its last moment */
	if (!is_selected(s, v->frame.start + 1, v->frame.end - 1))
		return 0;
	s->frames++;
	return to->ops->frame(to, m, v);
}

static int slices_end(struct exporter *e, const struct model *m, const struct report *r)
{
	struct slices *s = slices_of(e);
	int err = s->next ? finish_file(s, m) : 0;

	return err ? err : s->now->ops->end(s->now, m, r);
}

static void slices_close(struct exporter *e)
{
	struct slices *s = slices_of(e);

	close_file(s, &s->next);
	close_file(s, &s->now);
	for (u32 i = 0; i < CPUS_MAX; i++)
		free(s->last[i]);
	free(s);
}

static const struct exporter_ops slicing = {
	.name = "slices",
	.event = slices_event,
	.frame = slices_frame,
	.end = slices_end,
	.close = slices_close,
};

int slices__open(struct exporter **e, const struct slices_options *o)
{
	struct slices *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->base = (struct exporter){.ops = &slicing, .fd = -1};
	s->o = *o;
	s->only = o->n_only ? o->only : &everything;
	s->n_only = o->n_only ? o->n_only : 1;
	err = open_file(s, &s->now);
	if (err) {
		free(s);
		return err;
	}
	*e = &s->base;
	return 0;
}

u32 slices__files(const struct exporter *e)
{
	return slices_of(e)->files;
}

u64 slices__frames(const struct exporter *e)
{
	return slices_of(e)->frames;
}

void slices__remove(const struct exporter *e)
{
	const struct slices *s = slices_of(e);
	char path[PATH_ROOM];

	for (u32 i = 0; i < s->files && !is_stdout(s); i++)
		if (!name_of(s, i, path))
			unlink(path);
}
