/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "explain_verb.h"
#include "explain_view.h"
#include "log.h"
#include "options.h"
#include "recording.h"
#include "replay.h"
#include "selection.h"
#include "time_index.h"

#define NOT_GIVEN (~0ULL)

struct explain_verb {
	u64 frame, worst;
	bool json, formulas, verbose;
	const char *budget;
	struct selection_options only; /* times */
};

#define ROW(name, type, field, value, help)                                                                            \
	{                                                                                                              \
		name, 0, type, offsetof(struct explain_verb, field), value, help                                       \
	}
static const struct option_row rows[] = {
	ROW("frame", OPT_UINT, frame, "N", "only the frame of this number, with its timeline"),
	ROW("worst", OPT_UINT, worst, "N", "the N longest slow frames; default 10, with --json all in order of time"),
	ROW("from", OPT_SECONDS, only.from_s, "SECONDS",
		"only frames that end so long after the first event, or later"),
	ROW("to", OPT_SECONDS, only.to_s, "SECONDS", "only frames that end before"),
	ROW("budget", OPT_TEXT, budget, "MS|NNfps|auto",
		"what a frame may take; default what was recorded with, else auto"),
	ROW("json", OPT_FLAG, json, NULL, "for programs: schema 1"),
	ROW("formulas", OPT_FLAG, formulas, NULL, "print how every figure is computed"),
	ROW("verbose", OPT_FLAG, verbose, NULL, "say how much of the recording was read"),
	{},
};

static const struct verb explain = {
	.name = "explain",
	.synopsis = "RECORDING [--frame N | --worst N | --from S --to S] [--json]",
	.about = "Says why frames were slow: one sentence each, and where their time went.",
	.rows = rows,
	.examples = "  redframe explain run.redframe\n"
		    "  redframe explain run.redframe --frame 142\n"
		    "  redframe explain night.redframe --from 3600 --to 3610\n"
		    "  redframe explain run.redframe --budget 60fps --json | jq '.slow_frames[0].verdict'\n",
};

int budget__parse(const char *text, struct explain_options *o)
{
	char *end;
	double v;

	if (!strcmp(text, "auto")) {
		o->from = BUDGET_AUTO;
		return 0;
	}
	v = strtod(text, &end);
	if (end == text || !(v > 0) || v > 1e9)
		return -EINVAL;
	if (!strcmp(end, "fps"))
		v = 1000 / v;
	else if (*end && strcmp(end, "ms"))
		return -EINVAL;
	o->from = BUDGET_OPTION;
	o->budget_ns = (u64)(v * 1e6 + 0.5);
	return o->budget_ns ? 0 : -EINVAL;
}

static int usage_error(const struct explain_verb *o, int n)
{
	struct explain_options unused;

	if (n != 1)
		log_err("explain: name one recording; 'redframe explain --help' shows how");
	else if (o->frame != NOT_GIVEN && o->worst != NOT_GIVEN)
		log_err("explain: --frame and --worst exclude each other");
	else if (o->frame != NOT_GIVEN && (o->only.from_s > 0 || o->only.to_s > 0))
		log_err("explain: --frame and --from/--to exclude each other");
	else if (o->budget && budget__parse(o->budget, &unused))
		log_err("--budget: '%s' is not a number of ms, NNfps or auto", o->budget);
	else
		return 0;
	return -EINVAL;
}

static struct view *make_view(const struct explain_verb *o)
{
	struct view_options v = {
		.json = o->json,
		.all = o->json && o->worst == NOT_GIVEN,
		.worst = o->worst == NOT_GIVEN ? 10 : o->worst,
		.has_frame = o->frame != NOT_GIVEN,
		.frame = o->frame,
		.colour = !o->json && isatty(STDOUT_FILENO) && !getenv("NO_COLOR"),
	};

	return view__new(&v);
}

/* One reading of the recording, whole or from where its index says. */
struct reading {
	const struct explain_verb *o;
	struct recording *r;
	const struct time_index *index; /* NULL: whole */
	const struct index_begin *begin;
	u64 since, until; /* frames that end in (since, until]; until 0: all */
	u64 last;         /* no later record is wanted; 0: all are */
	struct view *view;
	bool print;
};

/* 0, -errno, or an exit status where there is nothing to print. */
static int conclude(struct view *view, const struct explain_verb *o, struct explain *x, const struct model *m,
	const struct recording *r)
{
	const struct report *report = explain__report(x, m);
	int err = view__print(view, stdout, m, report, r);
	u64 least, greatest;

	if (err)
		return EXIT_NOT_MEASURED;
	if (o->frame != NOT_GIVEN && !view__frames(view) && view__numbers(view, &least, &greatest)) {
		log_err("--frame: there is no frame %llu: this recording holds frames %llu to %llu",
			(unsigned long long)o->frame, (unsigned long long)least, (unsigned long long)greatest);
		return EXIT_USAGE;
	}
	if (!report->frames) {
		log_err(model__stats(m)->frames ? "no frame ends between --from and --to"
						: "no frames in this recording: 'redframe info' says what is in it and "
						  "what could not be hooked");
		return EXIT_NOT_MEASURED;
	}
	return 0;
}

static int read_it(struct reading *g)
{
	const struct explain_verb *o = g->o;
	struct model *m = model__new();
	struct replay replay = {
		.index = g->index, .begin = g->begin, .until = g->last, .verdict = view__verdict, .arg = g->view};
	struct explain_options options;
	struct explain *x = NULL;
	int err = !m ? -ENOMEM : g->index ? replay__prepare_from(g->r, m, g->index) : replay__prepare(g->r, m);

	if (err)
		goto cleanup;
	replay__explain_options(m, &options);
	if (o->budget)
		budget__parse(o->budget, &options);
	options.has_frame = o->frame != NOT_GIVEN;
	options.frame = o->frame;
	options.since = g->since;
	options.until = g->until;
	if (g->until)
		model__count_only(m, g->since, g->until);
	x = explain__new(&options);
	err = x ? replay__run(g->r, m, x, NULL, 0, &replay) : -ENOMEM;
	if (!err && g->print)
		err = conclude(g->view, o, x, m, g->r);
cleanup:
	explain__free(x);
	model__free(m);
	return err;
}

/* ---- without reading all of it ---- */

#define SAME_NUMBER_MAX 16 /* more frames of one number are looked for in the whole recording */

static u32 frames_of(const struct time_index *ix, u64 number, const struct index_frame *found[SAME_NUMBER_MAX])
{
	u32 n = 0;

	for (u64 i = 0; i < ix->list.n_frames && n <= SAME_NUMBER_MAX; i++) {
		if (ix->frames[i].number != number)
			continue;
		if (n < SAME_NUMBER_MAX)
			found[n] = &ix->frames[i];
		n++;
	}
	return n > SAME_NUMBER_MAX ? 0 : n;
}

/* Each frame of that number by itself. False: the index does not say all of it. */
static bool read_frame(struct reading *g, int *err)
{
	const struct index_frame *found[SAME_NUMBER_MAX];
	u32 n = frames_of(g->index, g->o->frame, found);
	struct index_begin b;
	u32 at;

	*err = 0;
	for (at = 0; at < n && !*err && view__frames(g->view) == at; at++) {
		time_index__find(g->index, found[at]->end, found[at]->end, found[at]->stream, &b);
		g->begin = &b;
		g->since = found[at]->end - 1;
		g->until = found[at]->end;
		g->last = b.until;
		*err = read_it(g);
	}
	g->begin = NULL;
	return *err || (at && at == n && view__frames(g->view) == n);
}

static int whole_frame(struct reading *g)
{
	g->index = NULL;
	g->since = g->until = g->last = 0;
	g->print = true;
	view__free(g->view);
	g->view = make_view(g->o);
	return g->view ? recording__rewind(g->r) ?: read_it(g) : -ENOMEM;
}

/* JSON has the figures of the whole recording. */
static int explain_frame(struct reading *g)
{
	int err;

	if (!g->index || g->o->json || !read_frame(g, &err))
		return whole_frame(g);
	if (!err && view__print(g->view, stdout, NULL, NULL, g->r))
		return EXIT_NOT_MEASURED;
	return err;
}

static int explain_times(struct reading *g)
{
	struct selection s;
	struct index_begin b;
	int err = selection__find(&s, g->r, NULL, &g->o->only);

	if (err)
		return err == -ENOMEM ? err : EXIT_USAGE;
	g->since = s.n ? s.v[0].from - 1 : 0;
	g->until = s.n ? s.v[0].to : 0;
	g->last = s.n ? time_index__tail(g->until) : 0;
	g->index = s.n ? g->index : NULL;
	if (g->index) {
		time_index__find(g->index, g->since, g->until, ~0U, &b);
		g->begin = &b;
		g->last = b.until;
	}
	g->print = true;
	err = read_it(g);
	g->begin = NULL;
	selection__free(&s);
	return err;
}

static int run(const struct explain_verb *o, struct recording *r)
{
	struct time_index ix;
	struct reading g = {.o = o, .r = r, .view = make_view(o)};
	int err;

	if (!g.view)
		return -ENOMEM;
	/* what begins at the beginning is read soonest without one, and JSON of a frame takes all of it anyway */
	g.index = time_index__get(&ix, r, o->only.from_s > 0 || (o->frame != NOT_GIVEN && !o->json)) ? &ix : NULL;
	err = o->frame != NOT_GIVEN ? explain_frame(&g) : explain_times(&g);
	log_debug("%llu of %llu bytes were read%s", (unsigned long long)r->bytes_read, (unsigned long long)r->size,
		g.index ? ", by the time index" : "");
	view__free(g.view);
	time_index__free(&ix);
	return err;
}

int verb__explain(int argc, char **argv)
{
	struct explain_verb o = {.frame = NOT_GIVEN, .worst = NOT_GIVEN};
	struct recording r;
	int n, command, err = options__parse(&explain, argc, argv, &o, &n, &command);

	if (err)
		return err > 0 ? EXIT_OK : EXIT_USAGE;
	if (o.verbose)
		log_level = LOG_VERBOSE;
	if (o.formulas) {
		fputs(explain_formulas, stdout);
		return EXIT_OK;
	}
	if (usage_error(&o, n))
		return EXIT_USAGE;
	err = recording__open(&r, argv[0]);
	if (err) {
		log_err("%s: %s", argv[0], recording__strerror(err));
		return EXIT_USAGE;
	}
	err = run(&o, &r);
	recording__close(&r);
	if (err < 0)
		log_err("%s: %s", argv[0], recording__strerror(err));
	return err < 0 ? EXIT_NOT_MEASURED : err;
}
