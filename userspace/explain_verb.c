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

#define NOT_GIVEN (~0ULL)

struct explain_verb {
	u64 frame, worst;
	bool json, formulas;
	const char *budget;
};

#define ROW(name, type, field, value, help)                                                                            \
	{                                                                                                              \
		name, 0, type, offsetof(struct explain_verb, field), value, help                                       \
	}
static const struct option_row rows[] = {
	ROW("frame", OPT_UINT, frame, "N", "only the frame of this number, with its timeline"),
	ROW("worst", OPT_UINT, worst, "N", "the N longest slow frames; default 10, with --json all in order of time"),
	ROW("budget", OPT_TEXT, budget, "MS|NNfps|auto",
		"what a frame may take; default what was recorded with, else auto"),
	ROW("json", OPT_FLAG, json, NULL, "for programs: schema 1"),
	ROW("formulas", OPT_FLAG, formulas, NULL, "print how every figure is computed"),
	{},
};

static const struct verb explain = {
	.name = "explain",
	.synopsis = "RECORDING [--frame N | --worst N] [--json]",
	.about = "Says why frames were slow: one sentence each, and where their time went.",
	.rows = rows,
	.examples = "  redframe explain run.redframe\n"
		    "  redframe explain run.redframe --frame 142\n"
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

/* 0, -errno, or an exit status where there is nothing to print. */
static int conclude(struct view *view, const struct explain_verb *o, struct explain *x, const struct model *m,
	const struct recording *r)
{
	const struct report *report = explain__report(x, m);
	int err = view__print(view, stdout, m, report, r);

	if (err)
		return err;
	if (!report->frames) {
		log_err("no frames in this recording: 'redframe info' says what is in it and what could not be hooked");
		return EXIT_NOT_MEASURED;
	}
	if (o->frame != NOT_GIVEN && !view__frames(view)) {
		log_err("there is no frame %llu", (unsigned long long)o->frame);
		return EXIT_USAGE;
	}
	return 0;
}

static int run(const struct explain_verb *o, struct recording *r)
{
	struct model *m = model__new();
	struct view *view = make_view(o);
	struct replay replay = {.verdict = view__verdict, .arg = view};
	struct explain_options options;
	struct explain *x = NULL;
	int err = m && view ? replay__prepare(r, m) : -ENOMEM;

	if (err)
		goto cleanup;
	replay__explain_options(m, &options);
	if (o->budget)
		budget__parse(o->budget, &options);
	options.has_frame = o->frame != NOT_GIVEN;
	options.frame = o->frame;
	x = explain__new(&options);
	err = x ? replay__run(r, m, x, NULL, 0, &replay) : -ENOMEM;
	if (!err)
		err = conclude(view, o, x, m, r);
cleanup:
	explain__free(x);
	view__free(view);
	model__free(m);
	return err;
}

int verb__explain(int argc, char **argv)
{
	struct explain_verb o = {.frame = NOT_GIVEN, .worst = NOT_GIVEN};
	struct recording r;
	int n, command, err = options__parse(&explain, argc, argv, &o, &n, &command);

	if (err)
		return err > 0 ? EXIT_OK : EXIT_USAGE;
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
