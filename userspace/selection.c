/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "events_desc.h"
#include "explain.h"
#include "log.h"
#include "model.h"
#include "recording.h"
#include "replay.h"
#include "selection.h"
#include "time_index.h"

#define AROUND_NS (NSEC_PER_SEC / 2)

struct search {
	struct selection *found;
	const struct selection_options *o;
	u64 first_frame, last_frame;
	u64 least, greatest, seen; /* frame numbers that there are */
	int err;
};

/* "A..B", "A.." and "A" */
static int parse_frames(const char *text, u64 *first, u64 *last)
{
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	*first = *last = strtoull(text, &end, 10);
	if (!*end)
		return 0;
	if (strncmp(end, "..", 2))
		return -EINVAL;
	*last = UINT64_MAX;
	if (!end[2])
		return 0;
	if (end[2] < '0' || end[2] > '9')
		return -EINVAL;
	*last = strtoull(end + 2, &end, 10);
	return *end || *last < *first ? -EINVAL : 0;
}

static int check(const struct selection_options *o, struct search *s)
{
	bool by_time = o->from_s > 0 || o->to_s > 0;

	if (by_time + !!o->frames + o->around_slow > 1)
		log_err("--from/--to, --frames and --around-slow exclude each other");
	else if (by_time && o->to_s > 0 && o->to_s <= o->from_s)
		log_err("--to: %g s is not after --from %g s", o->to_s, o->from_s);
	else if (o->frames && parse_frames(o->frames, &s->first_frame, &s->last_frame))
		log_err("--frames: '%s' is no range of frame numbers like 100..200", o->frames);
	else
		return 0;
	return -EINVAL;
}

/* Frames come in order of their ends, so a slice may begin before the one that was added last. */
static int add(struct selection *s, u64 from, u64 to)
{
	while (s->n && s->v[s->n - 1].to >= from) {
		s->n--;
		from = min(from, s->v[s->n].from);
		to = max(to, s->v[s->n].to);
	}
	if (s->n == s->cap) {
		u32 cap = max(64u, s->cap * 2);
		struct slice *bigger = realloc(s->v, cap * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		s->v = bigger;
		s->cap = cap;
	}
	s->v[s->n++] = (struct slice){from, to};
	return 0;
}

static void look_at(const struct verdict *v, const struct model *m, void *arg)
{
	struct search *s = arg;
	const struct frame *f = &v->frame;

	if (s->err)
		return;
	s->least = s->seen++ ? min(s->least, f->number) : f->number;
	s->greatest = max(s->greatest, f->number);
	if (s->o->around_slow && v->slow)
		s->err = add(s->found, f->start - min(f->start, (u64)AROUND_NS), f->end + AROUND_NS);
	if (s->o->frames && f->number >= s->first_frame && f->number <= s->last_frame)
		s->err = add(s->found, f->start, f->end);
}

static int find_in_index(struct search *s, const struct time_index *ix)
{
	int err = 0;

	for (u64 i = 0; i < ix->list.n_frames && !err; i++) {
		const struct index_frame *f = &ix->frames[i];

		if (f->number >= s->first_frame && f->number <= s->last_frame)
			err = add(s->found, f->start, f->end);
	}
	return err;
}

static int find_frames(struct search *s, struct recording *r)
{
	struct explain_options options;
	struct model *m = model__new();
	struct explain *x = NULL;
	struct replay replay = {.verdict = look_at, .arg = s};
	int err = m ? replay__prepare(r, m) : -ENOMEM;

	if (err)
		goto cleanup;
	replay__explain_options(m, &options);
	x = explain__new(&options);
	err = x ? replay__run(r, m, x, NULL, 0, &replay) : -ENOMEM;
	if (!err)
		err = s->err ? s->err : recording__rewind(r);
	if (!err && !s->found->n) {
		if (s->o->around_slow)
			log_err("no frame of this recording was slow");
		else if (s->seen)
			log_err("--frames: there is no frame %s: this recording holds frames %llu to %llu",
				s->o->frames, (unsigned long long)s->least, (unsigned long long)s->greatest);
		else
			log_err("--frames: there are no frames in this recording");
		err = -ENOENT;
	}
cleanup:
	explain__free(x);
	model__free(m);
	return err;
}

/* Records of different CPUs may stand some milliseconds out of order at the beginning: no matter here. */
int selection__zero(struct recording *r, u64 *zero)
{
	const struct ev_hdr *rec;
	int got = 0;

	*zero = 0;
	while (!*zero && (got = recording__next(r, &rec)) == 1)
		if (ev__desc(rec->kind) && ev__desc(rec->kind)->shape != SHAPE_META)
			*zero = rec->ts;
	return got < 0 ? got : recording__rewind(r);
}

static int find_times(struct search *s, struct recording *r)
{
	const struct selection_options *o = s->o;
	u64 zero;
	int err = selection__zero(r, &zero);

	if (!err && !zero) {
		log_err("--from, --to: this recording holds no events");
		return -ENOENT;
	}
	return err
		       ?: add(s->found, zero + (u64)(o->from_s * 1e9),
				  o->to_s > 0 ? zero + (u64)(o->to_s * 1e9) : UINT64_MAX);
}

int selection__find(
	struct selection *found, struct recording *r, const struct time_index *ix, const struct selection_options *o)
{
	struct search s = {.found = found, .o = o};
	int err = check(o, &s);

	*found = (struct selection){0};
	if (err)
		return err;
	if (o->frames && ix)
		err = find_in_index(&s, ix);
	if (err || found->n)
		return err;
	if (o->frames || o->around_slow)
		return find_frames(&s, r);
	return o->from_s > 0 || o->to_s > 0 ? find_times(&s, r) : 0;
}

void selection__free(struct selection *s)
{
	free(s->v);
	*s = (struct selection){0};
}
