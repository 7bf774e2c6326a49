/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "compare_verb.h"
#include "log.h"

struct compare_verb {
	struct run_options runs;
	const char *scene, *threshold, *confirm;
	bool markdown;
};

#define ROW(name, type, field, value, help)                                                                            \
	{                                                                                                              \
		name, 0, type, offsetof(struct compare_verb, field), value, help                                       \
	}
static const struct option_row rows[] = {
	ROW("scene", OPT_TEXT, scene, "NAME", "only this scene"),
	ROW("threshold", OPT_TEXT, threshold, "PCT", "a smaller change is never worse; default 3"),
	ROW("confirm", OPT_TEXT, confirm, "RUN", "another run of the new build: worse is only what is so in it too"),
	ROW("markdown", OPT_FLAG, markdown, NULL, "for a merge request"),
	{},
};

static const struct verb compare = {
	.name = "compare",
	.synopsis = "BASE NEW [--scene NAME] [--json]",
	.about =
		"Says whether a build got worse, where, and through which cause. A run is the id of one (its beginning "
		"will\n"
		"do), a recording, @last, @prev (the last comparable run before NEW), or KEY=VALUE[,KEY=VALUE] of its\n"
		"metadata: all runs that match are taken together. Ends in 4 when it got worse, in 5 when runs cannot "
		"be "
		"compared.",
	.rows = rows,
	.more = run_option_rows,
	.examples = "  redframe compare @prev @last\n"
		    "  redframe compare build=4710 build=4711 --markdown\n"
		    "  redframe compare before.redframe after.redframe\n",
};

static int usage_error(const struct compare_verb *o, int n, double *threshold)
{
	char *end = NULL;

	*threshold = o->threshold ? strtod(o->threshold, &end) / 100 : COMPARE_THRESHOLD;
	if (n != 2)
		log_err("compare: name two runs, BASE and NEW; 'redframe compare --help' shows how");
	else if (o->runs.json && o->markdown)
		log_err("compare: --json and --markdown exclude each other");
	else if (o->threshold && (end == o->threshold || *end || !(*threshold >= 0) || *threshold > 10))
		log_err("--threshold: '%s' is not a number of percent", o->threshold);
	else
		return 0;
	return -EINVAL;
}

static int take_end(const char *const *cells, int n, void *arg)
{
	log_err("run %.8s was not measured: %s", cells[0], cells[1] ?: "no reason is known");
	(*(int *)arg)++;
	return 0;
}

static int refuse_unmeasured(struct store *s, const struct run_set *set)
{
	struct value args[RUN_SET_MAX];
	struct str sql = {0};
	int n = 0, found = 0, err;

	str__add(&sql, "SELECT run_id, reason FROM run_ends WHERE status = 5 AND run_id IN ");
	run_set__in(set, &sql, args, &n);
	err = sql.oom ? -ENOMEM : store__query(s, sql.s, args, n, take_end, &found);
	str__free(&sql);
	return err || found ? EXIT_NOT_MEASURED : EXIT_OK;
}

/* enum exit_status */
static int refuse_different(struct store *s, const struct run_set *a, const struct run_set *b)
{
	struct str why = {0};
	int err = run_set__difference(s, a, b, &why);

	if (!err && why.len)
		log_err("these runs cannot be compared: %s", why.s);
	str__free(&why);
	return err || why.len ? EXIT_NOT_MEASURED : EXIT_OK;
}

/* the second one: enum exit_status */
static int find(struct store *s, const char *base, const char *new, struct comparison *c)
{
	bool base_follows = !strcmp(base, "@prev");
	int status = base_follows ? EXIT_OK : run_set__find(s, base, NULL, &c->base);

	if (!status)
		status = run_set__find(s, new, NULL, &c->new);
	if (!status && base_follows)
		status = run_set__find(s, base, &c->new, &c->base);
	if (!status)
		status = refuse_unmeasured(s, &c->base) ?: refuse_unmeasured(s, &c->new);
	return status ?: refuse_different(s, &c->base, &c->new);
}

static int confirm(
	struct store *s, const struct compare_verb *o, const struct compare_options *options, struct comparison *c)
{
	struct comparison again = {.base = c->base};
	int status, err = 0;

	status = run_set__find(s, o->confirm, NULL, &again.new) ?: refuse_unmeasured(s, &again.new)
			 ?: refuse_different(s, &again.base, &again.new);
	if (!status)
		err = compare__run(s, options, &again);
	if (!status && !err)
		compare__confirm(c, &again);
	compare__free(&again);
	return status ?: err ? EXIT_NOT_MEASURED : EXIT_OK;
}

static int print(const struct compare_verb *o, const struct comparison *c)
{
	struct str s = {0};
	int measured = 0, err;

	(o->runs.json ? compare__json : o->markdown ? compare__markdown : compare__text)(&s, c);
	err = s.oom ? -ENOMEM : 0;
	if (!err && (fwrite(s.s, 1, s.len, stdout) != s.len || fflush(stdout)))
		err = errno == EPIPE ? 0 : -errno;
	str__free(&s);
	if (err)
		log_err("compare: %s", errstr(err));
	for (int i = 0; i < c->n_scenes; i++)
		measured += !c->scenes[i].why_not;
	return err || !measured || c->disturbed ? EXIT_NOT_MEASURED : c->worse ? EXIT_WORSE : EXIT_OK;
}

static int run(const struct compare_verb *o, char **argv, const struct compare_options *options)
{
	struct comparison c = {0};
	struct store *s = NULL;
	const char *const names[] = {argv[0], argv[1], o->confirm};
	int status, err = run_set__open(o->runs.store, names, o->confirm ? 3 : 2, &s);

	if (err)
		return EXIT_USAGE;
	status = find(s, argv[0], argv[1], &c);
	if (!status && (err = compare__run(s, options, &c))) {
		log_err("compare: %s", errstr(err));
		status = EXIT_NOT_MEASURED;
	}
	if (!status && o->confirm && c.worse)
		status = confirm(s, o, options, &c);
	if (!status)
		status = print(o, &c);
	compare__free(&c);
	store__close(s);
	return status;
}

int verb__compare(int argc, char **argv)
{
	struct compare_verb o = {0};
	struct compare_options options;
	int n, command, err = options__parse(&compare, argc, argv, &o, &n, &command);

	if (err)
		return err > 0 ? EXIT_OK : EXIT_USAGE;
	if (usage_error(&o, n, &options.threshold))
		return EXIT_USAGE;
	options.scene = o.scene;
	return run(&o, argv, &options);
}
