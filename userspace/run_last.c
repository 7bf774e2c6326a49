/* SPDX-License-Identifier: GPL-2.0-only */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"
#include "log.h"
#include "model.h"
#include "recording.h"
#include "replay.h"
#include "run_last.h"
#include "run_query.h"
#include "strings.h"

#define HITCHES_MAX 20

struct last {
	struct str text;
	char *dir, *told; /* NULL: the run has ended; the last recording that the store tells of, "" for none */
	const char *name; /* of the recording that is read */
	bool named;
	u64 until, now; /* the end of the last frame in those before it, and in it */
	u32 hitches;
};

static int take_run(const char *const *cells, int n, void *arg)
{
	struct last *l = arg;

	l->dir = strdup(cells[0] ?: "");
	l->told = strdup(cells[1] ?: "");
	return l->dir && l->told ? 0 : -ENOMEM;
}

static void add_escaped(struct str *s, const char *text)
{
	char buf[2048];

	str__add_n(s, buf, term__escape(buf, sizeof(buf), text, strlen(text)));
}

/* A recording begins with frames that are in the one before it as well. */
static void take_verdict(const struct verdict *v, const struct model *m, void *arg)
{
	struct last *l = arg;

	l->now = max(l->now, v->frame.end);
	if (!v->slow || v->frame.end <= l->until || strcmp(l->name, l->told) <= 0)
		return;
	if (l->hitches++ >= HITCHES_MAX)
		return;
	str__fmt(&l->text, "  %s%s, %.1f ms: ", l->name, l->named ? "" : " (without names)",
		(double)(v->frame.end - v->frame.start) / 1e6);
	add_escaped(&l->text, v->sentence ?: "");
	str__add(&l->text, "\n");
}

static int explain(struct last *l, const char *path)
{
	struct replay replay = {.verdict = take_verdict, .arg = l};
	struct explain_options options;
	struct explain *x = NULL;
	struct recording r;
	struct model *m;
	int err = recording__open(&r, path);

	if (err)
		return err;
	l->named = !r.truncated;
	m = model__new();
	err = m ? replay__prepare(&r, m) : -ENOMEM;
	if (err)
		goto cleanup;
	replay__explain_options(m, &options);
	x = explain__new(&options);
	err = x ? replay__run(&r, m, x, NULL, 0, &replay) : -ENOMEM;
cleanup:
	explain__free(x);
	model__free(m);
	recording__close(&r);
	return err;
}

static int is_segment(const struct dirent *d)
{
	unsigned number;
	int end = 0;

	return sscanf(d->d_name, "segment-%6u.redframe%n", &number, &end) == 1 && end && !d->d_name[end];
}

/* The last one that the store tells of is read too: for where the next one begins. */
static void explain_all(struct last *l, struct dirent *const *list, int n)
{
	char path[PATH_MAX];
	int err;

	for (int i = 0; i < n; i++) {
		if (strcmp(list[i]->d_name, l->told) < 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", l->dir, list[i]->d_name);
		l->name = list[i]->d_name;
		err = explain(l, path);
		if (err)
			str__fmt(&l->text, "  %s: %s\n", l->name, recording__strerror(err));
		l->until = max(l->until, l->now);
	}
}

static void tell(struct last *l)
{
	struct dirent **list = NULL;
	int n = scandir(l->dir, &list, is_segment, alphasort);

	str__add(&l->text, "\nIt was killed, or goes on: the last seconds are in no table. Later slow frames in ");
	add_escaped(&l->text, l->dir);
	if (n < 0)
		str__fmt(&l->text, " are not read: %s\n", errstr(errno));
	else
		str__add(&l->text, ":\n");
	explain_all(l, list, n);
	if (l->hitches > HITCHES_MAX)
		str__fmt(&l->text, "  and %u more\n", l->hitches - HITCHES_MAX);
	else if (n >= 0 && !l->hitches)
		str__add(&l->text, "  none\n");
	for (int i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

int run_last__text(struct store *s, const char *run, FILE *to)
{
	struct value id = {.type = VALUE_TEXT, .s = run};
	struct last l = {0};
	int err = store__query(s,
		"SELECT r.path, max(h.trace) FROM runs r LEFT JOIN hitches h ON h.run_id = r.run_id LEFT JOIN run_ends "
		"e "
		"ON e.run_id = r.run_id WHERE r.run_id = $1 AND r.kind = 'soak' AND e.run_id IS NULL GROUP BY r.path",
		&id, 1, take_run, &l);

	if (!err && l.dir && l.dir[0]) {
		tell(&l);
		err = l.text.oom ? -ENOMEM : 0;
		if (!err && (fwrite(l.text.s, 1, l.text.len, to) != l.text.len || fflush(to)))
			err = errno == EPIPE ? 0 : -errno;
	}
	str__free(&l.text);
	free(l.dir);
	free(l.told);
	return err;
}
