/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "explain_view.h"
#include "log.h"

#define KEPT_MAX 10000u

struct kept {
	u64 duration, seq;
	char *text;
};

struct view {
	struct view_options o;
	struct kept *kept; /* a heap: the least bad first */
	u32 n, cap;
	u64 seq, frames;
	u64 least, greatest; /* frame numbers handed over */
	FILE *spool;         /* JSON of all */
	struct str line;
	int err;
};

struct view *view__new(const struct view_options *o)
{
	struct view *view = calloc(1, sizeof(*view));

	if (!view)
		return NULL;
	view->o = *o;
	view->cap = min(o->worst, (u64)KEPT_MAX);
	if (o->all || o->has_frame)
		view->spool = tmpfile();
	else
		view->kept = calloc(view->cap + 1, sizeof(*view->kept));
	if (!view->spool && !view->kept) {
		free(view);
		return NULL;
	}
	return view;
}

void view__free(struct view *view)
{
	if (!view)
		return;
	for (u32 i = 0; i < view->n; i++)
		free(view->kept[i].text);
	free(view->kept);
	str__free(&view->line);
	if (view->spool)
		fclose(view->spool);
	free(view);
}

/* ---- the worst ---- */

/* Shorter is better; of two equals the later one, so that the first seen is kept. */
static bool better(const struct kept *a, const struct kept *b)
{
	return a->duration != b->duration ? a->duration < b->duration : a->seq > b->seq;
}

static void swap(struct kept *a, struct kept *b)
{
	struct kept tmp = *a;

	*a = *b;
	*b = tmp;
}

static void sift_up(struct view *view, u32 i)
{
	for (; i && better(&view->kept[i], &view->kept[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&view->kept[i], &view->kept[(i - 1) / 2]);
}

static void sift_down(struct view *view)
{
	for (u32 i = 0, c; (c = 2 * i + 1) < view->n; i = c) {
		if (c + 1 < view->n && better(&view->kept[c + 1], &view->kept[c]))
			c++;
		if (!better(&view->kept[c], &view->kept[i]))
			break;
		swap(&view->kept[c], &view->kept[i]);
	}
}

static bool worth_keeping(const struct view *view, const struct kept *k)
{
	return view->cap && (view->n < view->cap || better(&view->kept[0], k));
}

static void keep(struct view *view, struct kept *k)
{
	k->text = strdup(view->line.s);
	if (!k->text) {
		view->err = -ENOMEM;
		return;
	}
	if (view->n < view->cap) {
		view->kept[view->n] = *k;
		sift_up(view, view->n++);
	} else {
		free(view->kept[0].text);
		view->kept[0] = *k;
		sift_down(view);
	}
}

static int worst_first(const void *a, const void *b)
{
	return better(a, b) ? 1 : -1;
}

/* ---- handing over ---- */

static void write_line(struct view *view, const struct verdict *v, const struct model *m)
{
	str__clear(&view->line);
	if (view->o.write) {
		view->o.write(&view->line, v, m);
		return;
	}
	if (view->o.json) {
		json__frame(&view->line, v, m);
		return;
	}
	text__frame(&view->line, v, m, view->o.colour);
	if (view->o.has_frame)
		text__timeline(&view->line, v, m, view->o.colour);
}

static void spool(struct view *view)
{
	const char *between = view->o.json ? (view->frames ? ",\n  " : "\n  ") : (view->frames ? "\n" : "");

	if (fputs(between, view->spool) < 0 || fputs(view->line.s, view->spool) < 0)
		view->err = -EIO;
}

void view__verdict(const struct verdict *v, const struct model *m, void *arg)
{
	struct view *view = arg;
	struct kept k = {.duration = v->frame.end - v->frame.start, .seq = view->seq++};

	view->least = view->seq > 1 ? min(view->least, v->frame.number) : v->frame.number;
	view->greatest = max(view->greatest, v->frame.number);
	if (view->err || (view->o.has_frame ? v->frame.number != view->o.frame : !v->slow))
		return;
	if (!view->spool && !worth_keeping(view, &k)) {
		view->frames++;
		return;
	}
	write_line(view, v, m);
	if (view->line.oom)
		view->err = -ENOMEM;
	else if (view->spool)
		spool(view);
	else
		keep(view, &k);
	view->frames++;
}

u64 view__frames(const struct view *view)
{
	return view->frames;
}

bool view__numbers(const struct view *view, u64 *least, u64 *greatest)
{
	*least = view->least;
	*greatest = view->greatest;
	return view->seq > 0;
}

/* ---- printing ---- */

static int copy_spool(struct view *view, FILE *to)
{
	char buf[16384];
	size_t n;

	if (fflush(view->spool) || fseek(view->spool, 0, SEEK_SET))
		return -EIO;
	while ((n = fread(buf, 1, sizeof(buf), view->spool)))
		if (fwrite(buf, 1, n, to) != n)
			return -errno;
	return ferror(view->spool) ? -EIO : 0;
}

static int print_frames(struct view *view, FILE *to)
{
	if (view->spool)
		return copy_spool(view, to);
	qsort(view->kept, view->n, sizeof(*view->kept), worst_first);
	for (u32 i = 0; i < view->n; i++)
		if (fputs(view->o.json ? (i ? ",\n  " : "\n  ") : "\n", to) < 0 || fputs(view->kept[i].text, to) < 0)
			return -errno;
	return 0;
}

int view__worst(struct view *view, struct str *s)
{
	qsort(view->kept, view->n, sizeof(*view->kept), worst_first);
	for (u32 i = 0; i < view->n; i++)
		str__add(s, view->kept[i].text);
	return view->err;
}

static int put(struct view *view, FILE *to)
{
	int err = view->line.oom ? -ENOMEM : view->line.s && fputs(view->line.s, to) < 0 ? -errno : 0;

	str__clear(&view->line);
	return err;
}

static void text_tail(struct str *s, const struct report *r)
{
	text__patterns(s, r);
	text__alloc_sites(s, r);
}

int view__print(struct view *view, FILE *to, const struct model *m, const struct report *r, const struct recording *rec)
{
	int err = view->err;

	str__clear(&view->line);
	if (view->o.json)
		json__head(&view->line, r, m, rec);
	else if (!view->o.has_frame)
		text__summary(&view->line, r, m, rec, view->o.colour);
	if (!err)
		err = put(view, to);
	if (!err)
		err = print_frames(view, to);
	if (view->o.json)
		json__tail(&view->line, r);
	else if (!view->o.has_frame)
		text_tail(&view->line, r);
	if (!err)
		err = put(view, to);
	if (!err && fflush(to))
		err = -errno;
	if (!err || err == -EPIPE) /* whoever read it has enough */
		return 0;
	log_err("cannot print the explanation: %s", errstr(err));
	return err;
}
