/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare_load.h"

#define GROUPS_TARGET 40 /* a side: enough to draw from, long enough to be nearly independent of each other */
#define GROUPS_MIN    4  /* a run */

static int take_scene(const char *const *cells, int n, void *arg)
{
	struct comparison *c = arg;
	struct scene_comparison *more = realloc(c->scenes, (size_t)(c->n_scenes + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	c->scenes = more;
	more[c->n_scenes] = (struct scene_comparison){.name = strdup(cells[0])};
	return more[c->n_scenes++].name ? 0 : -ENOMEM;
}

static int load_scenes(struct store *s, const struct compare_options *o, struct comparison *c)
{
	struct value args[2 * RUN_SET_MAX + 1];
	struct str sql = {0};
	int n = 0, err;

	str__add(&sql, "SELECT DISTINCT scene FROM blocks WHERE (run_id IN ");
	run_set__in(&c->base, &sql, args, &n);
	str__add(&sql, " OR run_id IN ");
	run_set__in(&c->new, &sql, args, &n);
	str__add(&sql, ")");
	if (o->scene) {
		args[n] = (struct value){.type = VALUE_TEXT, .s = o->scene};
		str__fmt(&sql, " AND scene = $%d", ++n);
	}
	str__add(&sql, " ORDER BY scene");
	err = sql.oom ? -ENOMEM : store__query(s, sql.s, args, n, take_scene, c);
	str__free(&sql);
	return err;
}

/* ---- one side of one scene ---- */

struct load {
	struct store *s;
	const struct run_set *set;
	struct scene_comparison *scene;
	struct sample *sample;
	u64 per_group[RUN_SET_MAX]; /* blocks */
	int run_of_row;
	u64 keys[RUN_SET_MAX * GROUPS_TARGET * 4]; /* of each group: run << 32 | number */
};

static int run_index(const struct run_set *set, const char *id)
{
	for (int i = 0; i < set->n; i++)
		if (!strcmp(set->ids[i], id))
			return i;
	return -1;
}

static u64 number(const char *cell)
{
	return cell ? strtoull(cell, NULL, 10) : 0;
}

/* " FROM blocks b … WHERE" the set's runs, this scene, no warm-up; $1 is the scene */
static void add_where(const struct load *l, struct str *sql, const char *join, struct value *args, int *n)
{
	args[(*n)++] = (struct value){.type = VALUE_TEXT, .s = l->scene->name};
	str__fmt(sql, " FROM blocks b %s WHERE b.scene = $1 AND b.warm_up = 0 AND b.run_id IN ", join);
	run_set__in(l->set, sql, args, n);
}

static int ask(struct load *l, const char *select, const char *join, const char *group, row_fn fn)
{
	struct value args[RUN_SET_MAX + 1];
	struct str sql = {0};
	int n = 0, err;

	str__add(&sql, select);
	add_where(l, &sql, join, args, &n);
	str__add(&sql, group);
	err = sql.oom ? -ENOMEM : store__query(l->s, sql.s, args, n, fn, l);
	str__free(&sql);
	return err;
}

/* run, its first and last block here, how many */
static int take_extent(const char *const *cells, int n, void *arg)
{
	struct load *l = arg;
	int i = run_index(l->set, cells[0]), groups = max(GROUPS_TARGET / l->set->n, GROUPS_MIN);

	if (i < 0)
		return 0;
	l->per_group[i] = max(number(cells[1]) / (u64)groups, (u64)1);
	return 0;
}

/* the group of the block of a row; a new one is appended: rows come run by run, in order of blocks */
static struct group *group_of(struct load *l, const char *run, u64 ordinal)
{
	int i = run_index(l->set, run);
	struct sample *a = l->sample;
	u64 key = (u64)i << 32 | ordinal / max(l->per_group[i], (u64)1);
	struct group *more;

	for (int k = a->n; k-- > 0;)
		if (l->keys[k] == key)
			return &a->groups[k];
	if (a->n == (int)ARRAY_SIZE(l->keys))
		return NULL;
	more = realloc(a->groups, (size_t)(a->n + 1) * sizeof(*more));
	if (!more)
		return NULL;
	a->groups = more;
	l->keys[a->n] = key;
	more[a->n] = (struct group){.run = i};
	return &more[a->n++];
}

#define ORDINAL "row_number() OVER (PARTITION BY b.run_id ORDER BY b.block) - 1"

/* run, ordinal of the block in the scene, frames, … */
static int take_block(const char *const *cells, int n, void *arg)
{
	struct group *g = group_of(arg, cells[0], number(cells[1]));

	if (!g)
		return -ENOMEM;
	g->frames += number(cells[2]);
	g->dur_ns += number(cells[3]);
	g->slow += number(cells[4]);
	g->cold_bytes += number(cells[5]);
	g->allocs += number(cells[6]);
	return 0;
}

static int bucket_index(const struct scene_comparison *sc, u64 bucket)
{
	int low = 0, high = sc->stats.n_buckets;

	while (low < high) {
		int middle = (low + high) / 2;

		if (sc->buckets[middle] < bucket)
			low = middle + 1;
		else
			high = middle;
	}
	return low < sc->stats.n_buckets && sc->buckets[low] == bucket ? low : -1;
}

static int take_count(const char *const *cells, int n, void *arg)
{
	struct load *l = arg;
	struct group *g = group_of(l, cells[0], number(cells[1]));
	int i = bucket_index(l->scene, number(cells[2]));

	if (!g || i < 0)
		return -ENOMEM;
	if (!g->counts)
		g->counts = calloc((size_t)l->scene->stats.n_buckets, sizeof(*g->counts));
	if (!g->counts)
		return -ENOMEM;
	g->counts[i] += (u32)number(cells[3]);
	return 0;
}

static int take_cause(const char *const *cells, int n, void *arg)
{
	struct group *g = group_of(arg, cells[0], number(cells[1]));

	if (!g)
		return -ENOMEM;
	for (int c = 0; c < CAUSE_COUNT; c++) {
		if (strcmp(cells[2], cause_names[c]))
			continue;
		g->cause_ns[c] += number(cells[3]);
		g->hitches[c] += number(cells[4]);
	}
	return 0;
}

static int take_peak(const char *const *cells, int n, void *arg)
{
	struct load *l = arg;
	int i = run_index(l->set, cells[0]);

	if (i >= 0)
		l->sample->rss[i] = number(cells[1]);
	return 0;
}

/* Sums by group are made where the data is: of a long run 40 groups come back, not its blocks. */
static int load_groups(struct load *l, const char *columns, const char *join, const char *by, row_fn fn)
{
	struct value args[RUN_SET_MAX + 1];
	struct str sql = {0};
	int n = 0, err;

	str__add(&sql, "SELECT b.run_id, b.g");
	str__fmt(&sql, "%s FROM (SELECT o.*, CASE o.run_id", columns);
	for (int i = 0; i < l->set->n; i++)
		str__fmt(&sql, " WHEN '%s' THEN o.ordinal / %llu * %llu", l->set->ids[i],
			(unsigned long long)max(l->per_group[i], (u64)1),
			(unsigned long long)max(l->per_group[i], (u64)1));
	str__add(&sql, " END AS g FROM (SELECT b.*, " ORDINAL " AS ordinal");
	add_where(l, &sql, "", args, &n);
	str__fmt(&sql, ") o) b %s GROUP BY b.run_id, b.g%s ORDER BY b.run_id, b.g", join, by);
	err = sql.oom ? -ENOMEM : store__query(l->s, sql.s, args, n, fn, l);
	str__free(&sql);
	return err;
}

static int load_side(struct load *l)
{
	int err = ask(l, "SELECT b.run_id, count(*)", "", " GROUP BY b.run_id", take_extent);

	l->sample->runs = l->set->n;
	if (!err)
		err = load_groups(l, ", sum(b.frames), sum(b.dur_ns), sum(b.slow), sum(b.cold_bytes), sum(b.allocs)",
			"", "", take_block);
	if (!err)
		err = load_groups(l, ", c.bucket, sum(c.frames)",
			"JOIN frame_counts c ON c.run_id = b.run_id AND c.block = b.block", ", c.bucket", take_count);
	if (!err)
		err = load_groups(l, ", c.cause, sum(c.total_ns), sum(c.hitches)",
			"JOIN block_causes c ON c.run_id = b.run_id AND c.block = b.block", ", c.cause", take_cause);
	return err;
}

static int load_peak(struct load *l)
{
	struct value args[RUN_SET_MAX + 1];
	struct str sql = {0};
	int n = 0, err;

	args[n++] = (struct value){.type = VALUE_TEXT, .s = l->scene->name};
	str__add(&sql, "SELECT run_id, max(rss) FROM memory WHERE scene = $1 AND run_id IN ");
	run_set__in(l->set, &sql, args, &n);
	str__add(&sql, " GROUP BY run_id");
	err = sql.oom ? -ENOMEM : store__query(l->s, sql.s, args, n, take_peak, l);
	str__free(&sql);
	return err;
}

/* ---- a scene ---- */

static int take_bucket(const char *const *cells, int n, void *arg)
{
	struct load *l = arg;
	struct scene_comparison *sc = l->scene;
	u64 b = number(cells[0]);

	if (b + 1 >= BUCKETS || bucket_index(sc, b) >= 0)
		return 0;
	sc->buckets[sc->stats.n_buckets++] = (u32)b; /* ascending: the query says so, and see below */
	return 0;
}

static int load_buckets(struct store *s, struct comparison *c, struct load *l)
{
	struct value args[2 * RUN_SET_MAX + 1];
	struct str sql = {0};
	int n = 0, err;

	l->scene->buckets = calloc(BUCKETS, sizeof(u32));
	if (!l->scene->buckets)
		return -ENOMEM;
	args[n++] = (struct value){.type = VALUE_TEXT, .s = l->scene->name};
	str__add(&sql, "SELECT DISTINCT c.bucket FROM blocks b JOIN frame_counts c ON c.run_id = b.run_id AND "
		       "c.block = b.block WHERE b.scene = $1 AND b.warm_up = 0 AND (b.run_id IN ");
	run_set__in(&c->base, &sql, args, &n);
	str__add(&sql, " OR b.run_id IN ");
	run_set__in(&c->new, &sql, args, &n);
	str__add(&sql, ") ORDER BY 1");
	err = sql.oom ? -ENOMEM : store__query(s, sql.s, args, n, take_bucket, l);
	str__free(&sql);
	l->scene->stats.buckets = l->scene->buckets;
	return err;
}

/* groups without counts would be a store that was tampered with; the arithmetic wants an array all the same */
static int complete(struct scene_comparison *sc, struct sample *a, u64 *frames, u64 *ns)
{
	for (int i = 0; i < a->n; i++) {
		struct group *g = &a->groups[i];

		if (!g->counts)
			g->counts = calloc((size_t)sc->stats.n_buckets + 1, sizeof(*g->counts));
		if (!g->counts)
			return -ENOMEM;
		*frames += g->frames;
		*ns += g->dur_ns;
	}
	return 0;
}

/* Runs without this scene are not among those that are drawn. */
static void close_gaps(struct sample *a)
{
	int runs = 0, last = -1;
	u64 rss[RUN_SET_MAX] = {0};

	for (int i = 0; i < a->n; i++) {
		if (a->groups[i].run != last) {
			last = a->groups[i].run;
			rss[runs++] = a->rss[last];
		}
		a->groups[i].run = runs - 1;
	}
	a->runs = runs;
	memcpy(a->rss, rss, sizeof(rss));
}

static int load_scene(struct store *s, struct comparison *c, struct scene_comparison *sc)
{
	struct load *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->s = s;
	l->scene = sc;
	err = load_buckets(s, c, l);
	for (int side = 0; side < 2 && !err; side++) {
		l->set = side ? &c->new : &c->base;
		l->sample = side ? &sc->stats.new : &sc->stats.base;
		memset(l->per_group, 0, sizeof(l->per_group));
		err = load_side(l) ?: load_peak(l);
		if (!err)
			err = side ? complete(sc, l->sample, &sc->new_frames, &sc->new_ns)
				   : complete(sc, l->sample, &sc->base_frames, &sc->base_ns);
		close_gaps(l->sample);
	}
	free(l);
	return err;
}

int compare__load(struct store *s, const struct compare_options *o, struct comparison *c)
{
	int err = load_scenes(s, o, c);

	for (int i = 0; i < c->n_scenes && !err; i++)
		err = load_scene(s, c, &c->scenes[i]);
	return err;
}
