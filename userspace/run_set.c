/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger.h"
#include "log.h"
#include "run_set.h"

/* what must be equal: an own name for the device stands for all that is known of it; for a format string */
#define COMPARED "(m.name LIKE 'device.%%' OR m.name LIKE 'option.%%' OR m.name = 'meta.device')"

#define ROW(name, type, field, value, help)                                                                            \
	{                                                                                                              \
		name, 0, type, offsetof(struct run_options, field), value, help                                        \
	}
const struct option_row run_option_rows[] = {
	ROW("store", OPT_TEXT, store, "FILE|URI", "where the runs are: FILE.db or postgresql://…; default runs.db"),
	ROW("json", OPT_FLAG, json, NULL, "for programs, on standard output: schema 1"),
	{},
};

static int take_run(const char *const *cells, int n, void *arg)
{
	struct run_set *set = arg;

	if (set->n == RUN_SET_MAX)
		return -E2BIG;
	snprintf(set->ids[set->n++], RUN_ID_SIZE, "%s", cells[0]);
	return 0;
}

bool run_set__is_file(const char *selector)
{
	size_t n = strlen(selector);

	return (n > 9 && !strcmp(selector + n - 9, ".redframe")) || !access(selector, F_OK);
}

int run_set__open(const char *uri, const char *const *selectors, int n, struct store **s)
{
	int files = 0;

	for (int i = 0; i < n; i++)
		files += selectors[i] && run_set__is_file(selectors[i]);
	if (!uri && n && files == n)
		return store__open(":memory:", s);
	if (uri && files && !strstr(uri, "://"))
		return store__open(uri, s);
	return store__open_read(uri ?: STORE_DEFAULT, s);
}

static int import(struct store *s, const char *path, struct run_set *out)
{
	int status = ledger__import(s, path, out->ids[0]);

	out->n = 1;
	return status;
}

static int by_id(struct store *s, const char *text, struct run_set *out)
{
	char end[RUN_ID_SIZE + 1];
	struct value args[] = {{.type = VALUE_TEXT, .s = text}, {.type = VALUE_TEXT, .s = end}};

	if (strspn(text, "0123456789abcdef-") != strlen(text) || strlen(text) < 4 || strlen(text) >= RUN_ID_SIZE)
		return 0;
	snprintf(end, sizeof(end), "%sg", text); /* after every id that begins so */
	return store__query(
		s, "SELECT run_id FROM runs WHERE run_id >= $1 AND run_id < $2 LIMIT 2", args, 2, take_run, out);
}

/* "build=4711,device=deck"; changes the text */
static int by_meta(struct store *s, char *text, struct run_set *out)
{
	struct str sql = {0};
	struct value args[16];
	char keys[ARRAY_SIZE(args)][80], *rest = NULL;
	int n = 0, err;

	str__add(&sql, "SELECT r.run_id FROM runs r WHERE 1 = 1");
	for (char *p = strtok_r(text, ",", &rest); p; p = strtok_r(NULL, ",", &rest)) {
		char *equals = strchr(p, '=');

		if (!equals || n + 2 > (int)ARRAY_SIZE(args)) {
			str__free(&sql);
			return -EINVAL;
		}
		*equals = 0;
		snprintf(keys[n], sizeof(keys[n]), "%s%s", strchr(p, '.') ? "" : "meta.", p);
		args[n] = (struct value){.type = VALUE_TEXT, .s = keys[n]};
		args[n + 1] = (struct value){.type = VALUE_TEXT, .s = equals + 1};
		n += 2;
		str__fmt(&sql,
			" AND EXISTS (SELECT 1 FROM run_meta m WHERE m.run_id = r.run_id AND m.name = $%d AND m.value "
			"= $%d)",
			n - 1, n);
	}
	str__add(&sql, " ORDER BY r.started_ms, r.run_id");
	err = sql.oom ? -ENOMEM : store__query(s, sql.s, args, n, take_run, out);
	str__free(&sql);
	return err;
}

static int last(struct store *s, struct run_set *out)
{
	return store__query(
		s, "SELECT run_id FROM runs ORDER BY started_ms DESC, run_id DESC LIMIT 1", NULL, 0, take_run, out);
}

/* the run before, with equal device and options */
static int previous(struct store *s, const struct run_set *than, struct run_set *out)
{
	struct value args[] = {{.type = VALUE_TEXT, .s = than->ids[0]}};
	struct run_set all = {0};
	struct str why = {0};
	int err = store__query(s,
		"SELECT r.run_id FROM runs r JOIN runs n ON n.run_id = $1 WHERE r.started_ms < n.started_ms "
		"ORDER BY r.started_ms DESC LIMIT 64",
		args, 1, take_run, &all);

	for (int i = 0; i < all.n && !err && !out->n; i++) {
		struct run_set one = {.n = 1};

		memcpy(one.ids[0], all.ids[i], RUN_ID_SIZE);
		str__clear(&why);
		err = run_set__difference(s, &one, than, &why);
		if (!err && !why.len)
			*out = one;
	}
	str__free(&why);
	return err;
}

static int find(struct store *s, const char *selector, const struct run_set *than, struct run_set *out)
{
	struct run_set newest = {0};
	char *copy;
	int err;

	if (!strcmp(selector, "@last"))
		return last(s, out);
	if (!strcmp(selector, "@prev")) {
		err = than ? 0 : last(s, &newest);
		return err ? err : than || newest.n ? previous(s, than ?: &newest, out) : 0;
	}
	if (!strchr(selector, '='))
		return by_id(s, selector, out);
	copy = strdup(selector);
	err = copy ? by_meta(s, copy, out) : -ENOMEM;
	free(copy);
	return err;
}

int run_set__find(struct store *s, const char *selector, const struct run_set *than, struct run_set *out)
{
	int err;

	*out = (struct run_set){0};
	if (run_set__is_file(selector))
		return import(s, selector, out);
	err = find(s, selector, than, out);
	if (err == -E2BIG)
		log_err("%s: more than %d runs match: name more of their metadata", selector, RUN_SET_MAX);
	else if (err == -EINVAL)
		log_err("%s: a query is KEY=VALUE[,KEY=VALUE], at most 8 of them", selector);
	else if (!err && !out->n)
		log_err("%s: no such run in the store; a run is an id, a recording, @last, @prev or KEY=VALUE",
			selector);
	else if (!err && out->n > 1 && !strchr(selector, '='))
		log_err("%s: several runs begin so: give more of the id", selector);
	else
		return err ? EXIT_NOT_MEASURED : EXIT_OK;
	return EXIT_USAGE;
}

void run_set__in(const struct run_set *set, struct str *sql, struct value *args, int *n)
{
	for (int i = 0; i < set->n; i++) {
		args[*n] = (struct value){.type = VALUE_TEXT, .s = set->ids[i]};
		str__fmt(sql, "%s$%d", i ? ", " : "(", ++*n);
	}
	str__add(sql, ")");
}

/* ---- what differs ---- */

struct difference {
	struct str *why;
	int runs;
	bool named; /* meta.device is there and equal */
};

/* name, how many values, how many runs have it, smallest, largest */
static int take_difference(const char *const *cells, int n, void *arg)
{
	struct difference *d = arg;
	bool equal = atoi(cells[1]) == 1 && atoi(cells[2]) == d->runs;

	if (!strcmp(cells[0], "a")) /* sorts first, see below */
		d->named = equal;
	if (equal || (d->named && !strncmp(cells[0], "device.", 7)))
		return 0;
	str__fmt(d->why, "%s%s: ", d->why->len ? "; " : "", strcmp(cells[0], "a") ? cells[0] : "device");
	if (atoi(cells[1]) > 1)
		str__fmt(d->why, "'%s' and '%s'", cells[3], cells[4]);
	else
		str__fmt(d->why, "'%s' in some runs only", cells[3]);
	return 0;
}

static int take_game(const char *const *cells, int n, void *arg)
{
	struct difference *d = arg;

	if (atoi(cells[0]) > 1)
		str__fmt(d->why, "game: '%s' and '%s'", cells[1], cells[2]);
	return 0;
}

int run_set__difference(struct store *s, const struct run_set *a, const struct run_set *b, struct str *why)
{
	struct difference d = {.why = why, .runs = a->n};
	struct value args[2 * RUN_SET_MAX];
	struct str in = {0}, sql = {0};
	int n = 0, err;

	for (int i = 0; i < b->n; i++) { /* a run may be in both */
		d.runs++;
		for (int k = 0; k < a->n; k++)
			d.runs -= !strcmp(a->ids[k], b->ids[i]);
	}
	str__add(&in, "(r.run_id IN ");
	run_set__in(a, &in, args, &n);
	str__add(&in, " OR r.run_id IN ");
	run_set__in(b, &in, args, &n);
	str__add(&in, ")");
	str__fmt(&sql, "SELECT count(DISTINCT r.game), min(r.game), max(r.game) FROM runs r WHERE %s", in.s ?: "");
	err = in.oom || sql.oom ? -ENOMEM : store__query(s, sql.s, args, n, take_game, &d);
	str__clear(&sql);
	str__fmt(&sql,
		"SELECT CASE WHEN m.name = 'meta.device' THEN 'a' ELSE m.name END AS k, count(DISTINCT m.value), "
		"count(*), min(m.value), max(m.value) FROM run_meta m JOIN runs r ON r.run_id = m.run_id WHERE %s "
		"AND " COMPARED " GROUP BY 1 ORDER BY 1",
		in.s ?: "");
	if (!err)
		err = sql.oom ? -ENOMEM : store__query(s, sql.s, args, n, take_difference, &d);
	str__free(&in);
	str__free(&sql);
	return err ? err : why->oom ? -ENOMEM : 0;
}

static int take_name(const char *const *cells, int n, void *arg)
{
	struct str *s = arg;

	if (!s->len)
		str__fmt(s, "%s %s", cells[0] + strlen("meta."), cells[1]);
	return 0;
}

int run_set__name(struct store *s, const struct run_set *set, char *buf, size_t size)
{
	struct value arg = {.type = VALUE_TEXT, .s = set->ids[0]};
	struct str name = {0};
	int err = store__query(s,
		"SELECT name, value FROM run_meta WHERE run_id = $1 AND name IN ('meta.build', 'meta.commit') ORDER BY "
		"name",
		&arg, 1, take_name, &name);

	if (!name.len)
		str__fmt(&name, "run %.8s", set->ids[0]);
	utf8__sanitize(buf, size, name.s ?: "", name.len);
	str__free(&name);
	return err;
}
