/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "explain.h"
#include "export.h"
#include "exporter.h"
#include "log.h"
#include "model.h"
#include "options.h"
#include "output.h"
#include "recording.h"
#include "replay.h"

struct export_options {
	const char *output, *format;
	bool force, quiet;
};

#define ROW(name, letter, type, field, value, help)                                                                    \
	{                                                                                                              \
		name, letter, type, offsetof(struct export_options, field), value, help                                \
	}
static const struct option_row rows[] = {
	ROW("output", 'o', OPT_TEXT, output, "OUT", "what to write; - is standard output"),
	ROW("format", 0, OPT_TEXT, format, "F", "perfetto, json or txt; default by OUT's suffix .pftrace, .json, .txt"),
	ROW("force", 'f', OPT_FLAG, force, NULL, "overwrite OUT"),
	ROW("quiet", 'q', OPT_FLAG, quiet, NULL, "only errors"),
	{},
};

static const struct verb export = {.name = "export",
	.synopsis = "RECORDING -o OUT [--format F]",
	.about = "Writes a recording in another format: a Perfetto trace, one JSON object a line, or text.",
	.rows = rows,
	.examples = "  redframe export run.redframe -o run.pftrace\n"
		    "  redframe export run.redframe -o - --format json | head\n"};

static int run(struct recording *r, struct exporter *e)
{
	struct explain_options options;
	struct model *m = model__new();
	struct explain *x = NULL;
	struct replay replay = {0};
	int err = m ? replay__prepare(r, m) : -ENOMEM;

	if (err)
		goto cleanup;
	replay__explain_options(m, &options);
	x = explain__new(&options);
	err = x ? replay__run(r, m, x, &e, 1, &replay) : -ENOMEM;
	if (replay.late)
		log_warn("%llu records came too late to be put in order", (unsigned long long)replay.late);
cleanup:
	explain__free(x);
	model__free(m);
	return err;
}

/* output__open made the file, so on failure it goes: half a trace misleads */
static int write_out(struct recording *r, const struct exporter_ops *ops, const struct export_options *o)
{
	bool to_stdout = !strcmp(o->output, "-");
	int fd = to_stdout ? STDOUT_FILENO : output__open(o->output, o->force), err;
	struct exporter *e;

	if (fd < 0)
		return EXIT_USAGE;
	e = ops->open(fd);
	err = e ? run(r, e) : -ENOMEM;
	if (e)
		ops->close(e);
	if (!to_stdout && close(fd) && !err)
		err = -errno;
	if (err == -EPIPE && to_stdout)
		return EXIT_OK; /* `… | head` has seen enough */
	if (!err)
		return EXIT_OK;
	log_err("export to %s: %s", o->output, errstr(err));
	if (!to_stdout)
		unlink(o->output);
	return EXIT_NOT_MEASURED;
}

int verb__export(int argc, char **argv)
{
	struct export_options o = {0};
	const struct exporter_ops *ops;
	struct recording r;
	int n, command, err;

	err = options__parse(&export, argc, argv, &o, &n, &command);
	if (err)
		return err > 0 ? EXIT_OK : EXIT_USAGE;
	if (o.quiet)
		log_level = LOG_QUIET;
	if (n != 1 || !o.output) {
		log_err(n != 1 ? "export: name one recording: redframe export RECORDING -o OUT"
			       : "export: say where to with -o OUT (.pftrace, .json or .txt)");
		return EXIT_USAGE;
	}
	ops = exporter__find(o.format, o.output);
	if (!ops && o.format)
		log_err("--format: no format '%s': there are perfetto, json and txt", o.format);
	else if (!ops)
		log_err("-o %s: the suffix names no format: use .pftrace, .json or .txt, or --format", o.output);
	if (!ops)
		return EXIT_USAGE;
	err = recording__open(&r, argv[0]);
	if (err) {
		log_err("%s: %s", argv[0], recording__strerror(err));
		return EXIT_USAGE;
	}
	err = write_out(&r, ops, &o);
	if (r.truncated)
		log_warn("%s was cut short: exported up to the cut", argv[0]);
	recording__close(&r);
	return err;
}
