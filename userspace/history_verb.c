/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A metric over the runs that can be compared with the last one; and by bisection the first that is worse than the
 * first of all.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "history_verb.h"
#include "log.h"

#define BAR       40
#define LIMIT     60 /* runs shown, unless told otherwise */
#define LIMIT_MAX 1000

struct history_verb {
	struct run_options runs;
	const char *scene, *metric;
	u64 limit;
	bool bisect;
};

#define ROW(name, type, field, value, help)                                                                            \
	{                                                                                                              \
		name, 0, type, offsetof(struct history_verb, field), value, help                                       \
	}
static const struct option_row rows[] = {
	ROW("scene", OPT_TEXT, scene, "NAME", "only this scene; without it all scenes together"),
	ROW("metric", OPT_TEXT, metric, "WORD", "p50_ms, p95_ms, p99_ms (default) or hitches_per_min"),
	ROW("limit", OPT_UINT, limit, "N", "the last N runs; default 60"),
	ROW("bisect", OPT_FLAG, bisect, NULL, "find the first run that is worse than the first of those shown"),
	{},
};

static const struct verb history = {
	.name = "history",
	.synopsis = "[--metric WORD] [--scene NAME] [--bisect]",
	.about =
		"Shows a metric over the runs of a store, the earliest first: those with game, device and options of "
		"the\n"
		"last one. With --bisect runs are compared as 'redframe compare' does, and the first bad one is named.",
	.rows = rows,
	.more = run_option_rows,
	.examples = "  redframe history\n"
		    "  redframe history --metric hitches_per_min --scene town --bisect\n",
};

enum history_metric { HISTORY_P50, HISTORY_P95, HISTORY_P99, HISTORY_HITCHES, HISTORY_COUNT };
static const char *const words[HISTORY_COUNT] = {"p50_ms", "p95_ms", "p99_ms", "hitches_per_min"};
static const int percents[HISTORY_COUNT] = {50, 95, 99};

struct point {
	char id[RUN_ID_SIZE], build[96];
	double value; /* below 0: not measured */
};
struct points {
	struct point *p;
	int n;
	enum history_metric metric;
	struct point read; /* what a query just gave */
};

static int metric_of(const char *word)
{
	for (int i = 0; i < HISTORY_COUNT; i++)
		if (!strcmp(word, words[i]))
			return i;
	return -1;
}

static int take_id(const char *const *cells, int n, void *arg)
{
	struct points *p = arg;
	struct point *more = realloc(p->p, (size_t)(p->n + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	p->p = more;
	more[p->n] = (struct point){.value = -1};
	snprintf(more[p->n++].id, RUN_ID_SIZE, "%s", cells[0]);
	return 0;
}

static int take_value(const char *const *cells, int n, void *arg)
{
	struct points *p = arg;
	u64 v = cells[0] ? strtoull(cells[0], NULL, 10) : 0, dur_ns = cells[1] ? strtoull(cells[1], NULL, 10) : 0;

	if (!cells[0])
		return 0;
	if (p->metric != HISTORY_HITCHES)
		p->read.value = (double)bucket__middle((u32)min(v, (u64)BUCKETS - 1)) / 1e6;
	else if (dur_ns)
		p->read.value = (double)v / ((double)dur_ns / 60e9);
	return 0;
}

/* of one run, by the database */
static int read_value(struct store *s, struct points *p, struct point *at, const char *scene)
{
	struct value args[] = {{.type = VALUE_TEXT, .s = at->id}, {.type = VALUE_TEXT, .s = scene}};
	const char *which = scene ? " AND b.scene = $2" : "";
	char sql[700];
	int err;

	if (p->metric == HISTORY_HITCHES)
		snprintf(sql, sizeof(sql),
			"SELECT sum(b.slow), sum(b.dur_ns) FROM blocks b WHERE b.run_id = $1 AND b.warm_up = 0%s",
			which);
	else
		snprintf(sql, sizeof(sql),
			"SELECT min(bucket), 0 FROM (SELECT bucket, sum(n) OVER (ORDER BY bucket) AS below, sum(n) "
			"OVER () AS total "
			"FROM (SELECT c.bucket, sum(c.frames) AS n FROM blocks b JOIN frame_counts c ON c.run_id = "
			"b.run_id AND "
			"c.block = b.block WHERE b.run_id = $1 AND b.warm_up = 0%s GROUP BY c.bucket) x) y "
			"WHERE below * 100 >= total * %d",
			which, percents[p->metric]);
	p->read.value = -1;
	err = store__query(s, sql, args, scene ? 2 : 1, take_value, p);
	at->value = p->read.value;
	return err;
}

static void set_of(struct run_set *set, const struct point *p)
{
	*set = (struct run_set){.n = 1};
	memcpy(set->ids[0], p->id, RUN_ID_SIZE);
}

/* The last runs that can be compared with the last of all, the earliest first, with their figures. */
static int load(struct store *s, const struct history_verb *o, struct points *p)
{
	struct points all = {0};
	struct run_set last, one;
	struct str why = {0};
	char sql[160];
	int err;

	snprintf(sql, sizeof(sql), "SELECT run_id FROM runs ORDER BY started_ms DESC, run_id DESC LIMIT %d", LIMIT_MAX);
	err = store__query(s, sql, NULL, 0, take_id, &all);
	for (int i = 0; i < all.n && !err && (u64)p->n < o->limit; i++) {
		const char *const cells[] = {all.p[i].id};

		set_of(&last, &all.p[0]);
		set_of(&one, &all.p[i]);
		str__clear(&why);
		err = run_set__difference(s, &last, &one, &why);
		if (!err && !why.len)
			err = take_id(cells, 1, p);
	}
	for (int i = 0; i < p->n / 2; i++) {
		struct point swap = p->p[i];

		p->p[i] = p->p[p->n - 1 - i];
		p->p[p->n - 1 - i] = swap;
	}
	for (int i = 0; i < p->n && !err; i++) {
		set_of(&one, &p->p[i]);
		err = run_set__name(s, &one, p->p[i].build, sizeof(p->p[i].build))
			      ?: read_value(s, p, &p->p[i], o->scene);
	}
	str__free(&why);
	free(all.p);
	return err;
}

/* ---- the first bad run ---- */

/* 1: worse than the first, 0: not, -errno; -ENODATA: cannot be told */
static int is_worse(struct store *s, const struct history_verb *o, const struct point *first, const struct point *at)
{
	struct compare_options options = {.scene = o->scene, .threshold = COMPARE_THRESHOLD};
	struct comparison c = {0};
	int err, measured = 0;

	set_of(&c.base, first);
	set_of(&c.new, at);
	err = compare__run(s, &options, &c);
	for (int k = 0; k < c.n_scenes; k++)
		measured += !c.scenes[k].why_not;
	if (!err)
		err = measured && !c.disturbed ? c.worse : -ENODATA;
	compare__free(&c);
	return err;
}

/* *first: index of it, or -1 where the last is not worse. As every bisection it takes for granted that what got worse
 * stayed so. Runs without frames are passed over. */
static int bisect(struct store *s, const struct history_verb *o, const struct points *p, int *first)
{
	int measured[LIMIT_MAX], n = 0, good = 0, bad, got;

	*first = -1;
	for (int i = 0; i < p->n; i++)
		if (p->p[i].value >= 0)
			measured[n++] = i;
	bad = n - 1;
	got = n > 1 ? is_worse(s, o, &p->p[measured[0]], &p->p[measured[bad]]) : 0;
	if (got <= 0)
		return got;
	while (bad - good > 1) {
		int middle = (good + bad) / 2;

		got = is_worse(s, o, &p->p[measured[0]], &p->p[measured[middle]]);
		if (got < 0)
			return got;
		if (got)
			bad = middle;
		else
			good = middle;
	}
	*first = measured[bad];
	return 0;
}

/* ---- printing ---- */

static void print_text(struct str *s, const struct history_verb *o, const struct points *p, int first, int measured)
{
	double top = 0;

	for (int i = 0; i < p->n; i++)
		top = fmax(top, p->p[i].value);
	str__fmt(s, "%s", words[p->metric]);
	if (o->scene) {
		char scene[256];

		term__escape(scene, sizeof(scene), o->scene, strlen(o->scene));
		str__fmt(s, " in scene %s", scene);
	}
	str__add(s, "\n");
	for (int i = 0; i < p->n; i++) {
		const struct point *at = &p->p[i];
		char build[160];
		int n = top > 0 && at->value > 0 ? (int)lround(at->value / top * BAR) : 0;

		term__escape(build, sizeof(build), at->build, strlen(at->build));
		str__fmt(s, "  %.8s  %-24s ", at->id, build);
		if (at->value < 0)
			str__add(s, "not measured");
		else
			str__fmt(s, "%10.2f  ", at->value);
		for (int k = 0; k < n; k++)
			str__add(s, "▇");
		str__add(s, i == first ? "  ← first bad run\n" : "\n");
	}
	if (o->bisect && measured < 2)
		str__add(s, "not bisected: of fewer than two runs there is something measured\n");
	else if (o->bisect && first < 0)
		str__add(s, "the last run is no worse than the first\n");
}

static void print_json(struct str *s, const struct history_verb *o, const struct points *p, int first)
{
	str__fmt(s, "{\"schema\": 1, \"metric\": \"%s\", ", words[p->metric]);
	json__member(s, "scene", o->scene);
	str__add(s, ", \"first_bad\": ");
	str__fmt(s, first < 0 ? "null" : "\"%s\"", first < 0 ? "" : p->p[first].id);
	str__add(s, ",\n \"runs\": [");
	for (int i = 0; i < p->n; i++) {
		str__fmt(s, "%s{\"run\": \"%s\", ", i ? ",\n  " : "\n  ", p->p[i].id);
		json__member(s, "name", p->p[i].build);
		if (p->p[i].value < 0)
			str__add(s, ", \"value\": null}");
		else
			str__fmt(s, ", \"value\": %.6f}", p->p[i].value);
	}
	str__add(s, "]}\n");
}

static int run(const struct history_verb *o, struct store *s, struct points *p)
{
	struct str out = {0};
	int first = -1, measured = 0, err = load(s, o, p);

	if (!err && o->bisect)
		err = bisect(s, o, p, &first);
	if (err == -ENODATA)
		log_err("history: runs cannot be compared: too few frames, no scene in common, or a machine that was "
			"busier for one");
	else if (err)
		log_err("history: %s", errstr(err));
	for (int i = 0; i < p->n; i++)
		measured += p->p[i].value >= 0;
	if (!err) {
		if (o->runs.json)
			print_json(&out, o, p, first);
		else
			print_text(&out, o, p, first, measured);
		err = out.oom ? -ENOMEM : 0;
		if (!err && (fwrite(out.s, 1, out.len, stdout) != out.len || fflush(stdout)))
			err = errno == EPIPE ? 0 : -errno;
		if (err)
			log_err("history: %s", errstr(err));
	}
	str__free(&out);
	return err || measured < (o->bisect ? 2 : 1) ? EXIT_NOT_MEASURED : first >= 0 ? EXIT_WORSE : EXIT_OK;
}

int verb__history(int argc, char **argv)
{
	struct history_verb o = {.metric = "p99_ms", .limit = LIMIT};
	struct points p = {0};
	struct store *s;
	int n, command, status, err = options__parse(&history, argc, argv, &o, &n, &command);

	if (err)
		return err > 0 ? EXIT_OK : EXIT_USAGE;
	if (n || metric_of(o.metric) < 0 || !o.limit || o.limit > LIMIT_MAX) {
		if (n)
			log_err("history: takes no run; 'redframe history --help' shows how");
		else if (metric_of(o.metric) < 0)
			log_err("--metric: '%s' is not p50_ms, p95_ms, p99_ms or hitches_per_min", o.metric);
		else
			log_err("--limit: must be 1 to %d", LIMIT_MAX);
		return EXIT_USAGE;
	}
	p.metric = (enum history_metric)metric_of(o.metric);
	if (run_set__open(o.runs.store, NULL, 0, &s))
		return EXIT_USAGE;
	status = run(&o, s, &p);
	free(p.p);
	store__close(s);
	return status;
}
