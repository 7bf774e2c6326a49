/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"
#include "export.h"
#include "exporter.h"
#include "log.h"
#include "model.h"
#include "options.h"
#include "output.h"
#include "recording.h"
#include "replay.h"
#include "selection.h"
#include "slices.h"
#include "time_index.h"

#define NOT_GIVEN (~0ULL)

struct export_options {
	const char *output, *format;
	bool force, quiet;
	u64 split;
	struct selection_options only;
};

#define ROW(name, letter, type, field, value, help)                                                                    \
	{                                                                                                              \
		name, letter, type, offsetof(struct export_options, field), value, help                                \
	}
static const struct option_row rows[] = {
	ROW("output", 'o', OPT_TEXT, output, "OUT", "what to write; - is standard output"),
	ROW("format", 0, OPT_TEXT, format, "F",
		"perfetto, json, txt, csv or html; default by OUT's suffix .pftrace, .json, .txt, .csv, .html"),
	ROW("from", 0, OPT_SECONDS, only.from_s, "SECONDS", "only what came so long after the first event, or later"),
	ROW("to", 0, OPT_SECONDS, only.to_s, "SECONDS", "only what came before"),
	ROW("frames", 0, OPT_TEXT, only.frames, "A..B", "only from frame A to frame B"),
	ROW("around-slow", 0, OPT_FLAG, only.around_slow, NULL, "only half a second before and after slow frames"),
	ROW("split", 0, OPT_BYTES, split, "SIZE",
		"another file, OUT-2, at the first frame after SIZE; default for Perfetto 64M, which its UI can hold; "
		"0: never"),
	ROW("force", 'f', OPT_FLAG, force, NULL, "overwrite OUT"),
	ROW("quiet", 'q', OPT_FLAG, quiet, NULL, "only errors"),
	{},
};

static const struct verb export = {.name = "export",
	.synopsis = "RECORDING -o OUT [--format F] [options]",
	.about = "Writes a recording in another format: a Perfetto trace, one JSON object a line, text, a table, or a "
		 "page.",
	.rows = rows,
	.examples = "  redframe export run.redframe -o run.pftrace\n"
		    "  redframe export run.redframe -o run.html\n"
		    "  redframe export run.redframe -o - --format json | head\n"
		    "  redframe export night.redframe -o slow.pftrace --around-slow\n"};

/* All of it; with an index from where what is asked for begins. *last: ts of the last event that was read. */
static int run(struct recording *r, struct exporter *e, const struct time_index *ix, const struct index_begin *begin,
	u64 *last)
{
	struct explain_options options;
	struct model *m = model__new();
	struct explain *x = NULL;
	struct replay replay = {.index = ix, .begin = begin, .until = begin ? begin->until : 0};
	int err = !m ? -ENOMEM : begin ? replay__prepare_from(r, m, ix) : replay__prepare(r, m);

	if (err)
		goto cleanup;
	replay__explain_options(m, &options);
	x = explain__new(&options);
	err = x ? replay__run(r, m, x, &e, 1, &replay) : -ENOMEM;
	*last = model__stats(m)->last;
	if (replay.late)
		log_warn("%llu records came too late to be put in order", (unsigned long long)replay.late);
cleanup:
	explain__free(x);
	model__free(m);
	return err;
}

/* EXIT_OK: there is something in it. */
static int find_nothing(
	const struct slices_options *s, const struct exporter *e, const struct export_options *o, u64 last)
{
	if (o->only.from_s > 0 && s->only[0].from > last) {
		log_err("--from: nothing came %g s after the first event, or later: this recording spans 0 to %.3f s",
			o->only.from_s, last > s->zero ? (double)(last - s->zero) / 1e9 : 0);
		return EXIT_USAGE;
	}
	if (s->format->frames_only && !slices__frames(e)) {
		log_err("%s: no frames to write: not measured", o->output);
		return EXIT_NOT_MEASURED;
	}
	return EXIT_OK;
}

static int conclude(
	const struct slices_options *s, const struct exporter *e, const struct export_options *o, u64 last, int err)
{
	int status = EXIT_NOT_MEASURED;

	if (err == -EPIPE && !strcmp(o->output, "-"))
		return EXIT_OK; /* `… | head` has seen enough */
	if (err)
		log_err("export to %s: %s", o->output, errstr(err));
	else
		status = find_nothing(s, e, o, last);
	if (status)
		slices__remove(e);
	else if (slices__files(e) > 1)
		log_info("%u files: %s and so on", slices__files(e), o->output);
	return status;
}

static int write_out(struct recording *r, const struct time_index *ix, const struct exporter_ops *ops,
	const struct export_options *o)
{
	struct index_begin begin;
	struct selection only;
	struct exporter *e;
	int err = selection__find(&only, r, ix, &o->only), status = EXIT_USAGE;
	struct slices_options slices = {.format = ops,
		.path = o->output,
		.force = o->force,
		.split_bytes = o->split,
		.only = only.v,
		.n_only = only.n};
	u64 last = 0;

	if (o->split == NOT_GIVEN)
		slices.split_bytes = ops == &exporter_perfetto ? PERFETTO_SPLIT_BYTES : 0;
	if (!err)
		err = selection__zero(r, &slices.zero);
	if (!err)
		err = slices__open(&e, &slices);
	if (!err && ix && only.n)
		time_index__find(ix, only.v[0].from, only.v[only.n - 1].to, ~0U, &begin);
	if (!err) {
		err = run(r, e, ix, ix && only.n ? &begin : NULL, &last);
		status = conclude(&slices, e, o, last, err);
		e->ops->close(e);
	} else if (err == -ENOMEM) {
		log_err("export: %s", errstr(err));
	}
	selection__free(&only);
	return status;
}

int verb__export(int argc, char **argv)
{
	struct export_options o = {.split = NOT_GIVEN};
	const struct exporter_ops *ops;
	struct recording r;
	struct time_index ix;
	int n, command, err;

	err = options__parse(&export, argc, argv, &o, &n, &command);
	if (err)
		return err > 0 ? EXIT_OK : EXIT_USAGE;
	if (o.quiet)
		log_level = LOG_QUIET;
	if (n != 1 || !o.output) {
		log_err(n != 1 ? "export: name one recording: redframe export RECORDING -o OUT"
			       : "export: say where to with -o OUT (.pftrace, .json, .txt, .csv or .html)");
		return EXIT_USAGE;
	}
	ops = exporter__find(o.format, o.output);
	if (!ops && o.format)
		log_err("--format: no format '%s': there are perfetto, json, txt, csv and html", o.format);
	else if (!ops)
		log_err("-o %s: the suffix names no format: use .pftrace, .json, .txt, .csv or .html, or --format",
			o.output);
	if (!ops)
		return EXIT_USAGE;
	err = recording__open(&r, argv[0]);
	if (err) {
		log_err("%s: %s", argv[0], recording__strerror(err));
		return EXIT_USAGE;
	}
	if (output__apart(o.output, r.fd)) {
		recording__close(&r);
		return EXIT_USAGE;
	}
	err = write_out(&r, time_index__get(&ix, &r, o.only.from_s > 0 || o.only.frames) ? &ix : NULL, ops, &o);
	if (r.truncated)
		log_warn("%s was cut short: exported up to the cut", argv[0]);
	recording__close(&r);
	time_index__free(&ix);
	return err;
}
