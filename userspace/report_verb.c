/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "output.h"
#include "report_verb.h"
#include "run_last.h"
#include "run_query.h"
#include "run_report.h"

struct report_verb {
	struct run_options runs;
	const char *html, *junit, *openmetrics;
	bool force;
};

#define ROW(name, letter, type, field, value, help)                                                                    \
	{                                                                                                              \
		name, letter, type, offsetof(struct report_verb, field), value, help                                   \
	}
static const struct option_row rows[] = {
	ROW("html", 0, OPT_TEXT, html, "FILE", "one page with plot, scenes, causes and worst hitches"),
	ROW("junit", 0, OPT_TEXT, junit, "FILE", "JUnit XML: a test case for each limit in each scene"),
	ROW("openmetrics", 0, OPT_TEXT, openmetrics, "FILE", "OpenMetrics text, for Prometheus"),
	ROW("force", 'f', OPT_FLAG, force, NULL, "overwrite the files"),
	{},
};

static const struct verb report = {
	.name = "report",
	.synopsis = "RUN [--html FILE] [--junit FILE] [--openmetrics FILE] [--json]",
	.about = "Writes what a run measured. A run is an id (its beginning will do), a recording, @last, @prev or\n"
		 "KEY=VALUE[,KEY=VALUE] of its metadata.",
	.rows = rows,
	.more = run_option_rows,
	.examples = "  redframe report @last\n"
		    "  redframe report build=4711 --html report.html --junit report.xml\n"
		    "  redframe report run.redframe --html report.html\n",
};

typedef int (*writer)(struct store *s, const char *run, FILE *to);

/* 0 or -errno after a message */
static int write_file(const struct report_verb *o, struct store *s, const char *run, const char *path, writer write)
{
	int fd, err;
	FILE *f;

	if (!path)
		return 0;
	fd = output__open(path, o->force);
	if (fd < 0)
		return fd;
	f = fdopen(fd, "w");
	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	err = write(s, run, f);
	if (fclose(f) && !err)
		err = -errno;
	if (err)
		log_err("%s: %s", path, errstr(err));
	return err;
}

/* enum exit_status: a run that was not measured is not reported as fine */
static int write_all(const struct report_verb *o, struct store *s, const char *run)
{
	struct run_facts f;
	int err = write_file(o, s, run, o->html, run_report__html);

	if (!err)
		err = write_file(o, s, run, o->junit, run_report__junit);
	if (!err)
		err = write_file(o, s, run, o->openmetrics, run_report__openmetrics);
	if (err)
		return EXIT_USAGE;
	if (o->runs.json)
		err = run_report__json(s, run, stdout);
	else if (!o->html && !o->junit && !o->openmetrics)
		err = run_report__text(s, run, stdout) ?: run_last__text(s, run, stdout);
	if (!err)
		err = run_facts__load(s, run, &f);
	if (err) {
		log_err("report: %s", errstr(err));
		return EXIT_NOT_MEASURED;
	}
	err = strcmp(run_facts__result(&f), "not measured") ? EXIT_OK : EXIT_NOT_MEASURED;
	run_facts__free(&f);
	return err;
}

static int run(const struct report_verb *o, const char *selector)
{
	struct run_set set;
	struct store *s = NULL;
	int status, err = run_set__open(o->runs.store, &selector, 1, &s);

	if (err)
		return EXIT_USAGE;
	status = run_set__find(s, selector, NULL, &set);
	if (!status && set.n > 1) {
		log_err("%s: %d runs match, and a report is of one", selector, set.n);
		status = EXIT_USAGE;
	}
	if (!status)
		status = write_all(o, s, set.ids[0]);
	store__close(s);
	return status;
}

int verb__report(int argc, char **argv)
{
	struct report_verb o = {0};
	int n, command, err = options__parse(&report, argc, argv, &o, &n, &command);

	if (err)
		return err > 0 ? EXIT_OK : EXIT_USAGE;
	if (n != 1) {
		log_err("report: name one run; 'redframe report --help' shows how");
		return EXIT_USAGE;
	}
	return run(&o, argv[0]);
}
