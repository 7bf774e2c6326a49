/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare_load.h"

#define FRAMES_MIN   200 /* below, a p99 is one or two frames */
#define CHANGE_SIGMA 3.0 /* a kind of hitch is more or less frequent: beyond what counts vary by */
#define CHANGES_MAX  64  /* told */

/* ---- kinds of hitches ---- */

static double per_minute(double v, u64 ns)
{
	return ns ? v / ((double)ns / 60e9) : 0;
}

static void judge(struct fingerprint_change *f, const struct scene_comparison *sc)
{
	double sigma = sqrt(per_minute(f->base_rate, sc->base_ns) + per_minute(f->new_rate, sc->new_ns));
	double diff = f->new_rate - f->base_rate;

	if (!f->base)
		f->change = f->new > 1 ? CHANGE_NEW : CHANGE_NONE;
	else if (!f->new)
		f->change = f->base > 1 ? CHANGE_GONE : CHANGE_NONE;
	else
		f->change = diff > CHANGE_SIGMA * sigma    ? CHANGE_MORE
			    : -diff > CHANGE_SIGMA * sigma ? CHANGE_LESS
							   : CHANGE_NONE;
}

/* fingerprint, cause, text, hitches, excess and longest in base, the same in new */
static int take_change(const char *const *cells, int n, void *arg)
{
	struct scene_comparison *sc = arg;
	struct fingerprint_change *more = realloc(sc->changes, (size_t)(sc->n_changes + 1) * sizeof(*more));
	struct fingerprint_change *f;
	u64 v[6];

	if (!more)
		return -ENOMEM;
	sc->changes = more;
	for (int i = 0; i < 6; i++)
		v[i] = cells[3 + i] ? strtoull(cells[3 + i], NULL, 10) : 0;
	f = &more[sc->n_changes];
	*f = (struct fingerprint_change){.key = strdup(cells[0]),
		.cause = strdup(cells[1] ?: "other"),
		.text = strdup(cells[2] ?: "hitches whose explanation is not in the store"),
		.base = v[0],
		.base_rate = per_minute((double)v[0], sc->base_ns),
		.base_ms = per_minute((double)v[1] / 1e6, sc->base_ns),
		.new = v[3],
		.new_rate = per_minute((double)v[3], sc->new_ns),
		.new_ms = per_minute((double)v[4] / 1e6, sc->new_ns),
		.worst_ns = v[3] ? v[5] : v[2]};
	judge(f, sc);
	sc->n_changes++;
	return f->key && f->cause && f->text ? 0 : -ENOMEM;
}

static int by_added(const void *a, const void *b)
{
	const struct fingerprint_change *x = a, *y = b;
	double dx = x->new_ms - x->base_ms, dy = y->new_ms - y->base_ms;

	return dx > dy ? -1 : dx < dy ? 1 : strcmp(x->key, y->key);
}

static void add_sums(struct str *sql, const struct run_set *set, struct value *args, int *n)
{
	static const char *const what[] = {
		"sum(CASE WHEN h.run_id IN ", "sum(CASE WHEN h.run_id IN ", "max(CASE WHEN h.run_id IN "};
	static const char *const column[] = {
		" THEN h.hitches ELSE 0 END)", " THEN h.excess_ns ELSE 0 END)", " THEN h.worst_ns ELSE 0 END)"};
	struct str in = {0};

	run_set__in(set, &in, args, n);
	for (int i = 0; i < 3; i++)
		str__fmt(sql, ", %s%s%s", what[i], in.s ?: "()", column[i]);
	sql->oom = sql->oom || in.oom;
	str__free(&in);
}

static int load_changes(struct store *s, struct comparison *c, struct scene_comparison *sc)
{
	struct value args[4 * RUN_SET_MAX + 1];
	struct str sql = {0};
	int n = 0, err;

	args[n++] = (struct value){.type = VALUE_TEXT, .s = sc->name};
	str__add(&sql, "SELECT h.fingerprint, min(f.cause), min(f.pattern)");
	add_sums(&sql, &c->base, args, &n);
	add_sums(&sql, &c->new, args, &n);
	str__add(&sql,
		" FROM hitches h JOIN blocks b ON b.run_id = h.run_id AND b.block = h.block LEFT JOIN fingerprints f "
		"ON f.run_id = h.run_id AND f.fingerprint = h.fingerprint WHERE b.scene = $1 AND b.warm_up = 0 AND "
		"(h.run_id IN ");
	run_set__in(&c->base, &sql, args, &n);
	str__add(&sql, " OR h.run_id IN ");
	run_set__in(&c->new, &sql, args, &n);
	str__add(&sql, ") GROUP BY h.fingerprint");
	err = sql.oom ? -ENOMEM : store__query(s, sql.s, args, n, take_change, sc);
	str__free(&sql);
	if (sc->n_changes)
		qsort(sc->changes, (size_t)sc->n_changes, sizeof(*sc->changes), by_added);
	return err;
}

static int take_first(const char *const *cells, int n, void *arg)
{
	struct fingerprint_change *f = arg;
	const char *name = cells[1] ? cells[1] + strlen("meta.") : "run";
	char value[80];

	if (f->first[0])
		return 0;
	utf8__sanitize(value, sizeof(value), cells[2] ?: cells[0], cells[2] ? strlen(cells[2]) : 8);
	snprintf(f->first, sizeof(f->first), "%s %s", name, value);
	return 0;
}

static int find_first(struct store *s, struct fingerprint_change *f)
{
	struct value arg = {.type = VALUE_TEXT, .s = f->key};

	return store__query(s,
		"SELECT f.run_id, m.name, m.value FROM fingerprints f JOIN runs r ON r.run_id = f.run_id LEFT JOIN "
		"run_meta m "
		"ON m.run_id = f.run_id AND m.name IN ('meta.build', 'meta.commit') WHERE f.fingerprint = $1 "
		"ORDER BY r.started_ms, m.name LIMIT 1",
		&arg, 1, take_first, f);
}

static int find_firsts(struct store *s, struct scene_comparison *sc)
{
	int err = 0, told = 0;

	for (int i = 0; i < sc->n_changes && !err && told < CHANGES_MAX; i++) {
		if (sc->changes[i].change != CHANGE_NEW && sc->changes[i].change != CHANGE_MORE)
			continue;
		told++;
		err = find_first(s, &sc->changes[i]);
	}
	return err;
}

/* ---- the answer ---- */

/* what is said first: frame times before what they come of; the median before the tail */
static int lead(const struct scene_comparison *sc)
{
	static const enum metric_id order[] = {METRIC_P50, METRIC_P95, METRIC_P99, METRIC_LOW1, METRIC_HITCHES,
		METRIC_COLD, METRIC_ALLOCS, METRIC_MEMORY};

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		if (sc->stats.metrics[order[i]].worse)
			return order[i];
	for (int id = METRIC_CAUSES; id < METRIC_COUNT; id++)
		if (sc->stats.metrics[id].worse)
			return id;
	return -1;
}

static double mean_cause_ms(const struct sample *a, int cause, u64 frames)
{
	double ns = 0;

	for (int i = 0; i < a->n; i++)
		ns += (double)a->groups[i].cause_ns[cause];
	return frames ? ns / (double)frames / 1e6 : 0;
}

/* A median moves with what every frame does: the cause whose time per frame grew most. */
static void add_cause(struct str *s, const struct scene_comparison *sc)
{
	double most = 0;
	int which = -1;

	for (int c = 0; c < CAUSE_COUNT; c++) {
		double diff = mean_cause_ms(&sc->stats.new, c, sc->new_frames) -
			      mean_cause_ms(&sc->stats.base, c, sc->base_frames);

		if (diff > most) {
			most = diff;
			which = c;
		}
	}
	if (which >= 0)
		str__fmt(s, ": mostly %s, %+.2f ms a frame", cause_names[which], most);
}

/* The tail moves with its hitches. Their excess, spread over the worst 1 % of frames, is what they add to its mean. */
static void add_hitches(struct str *s, const struct scene_comparison *sc, int id)
{
	const struct fingerprint_change *f = sc->changes;
	const struct metric *m = &sc->stats.metrics[id];
	double before, after, share;

	for (; f < sc->changes + sc->n_changes && id >= METRIC_CAUSES &&
		strcmp(f->cause, cause_names[id - METRIC_CAUSES]);)
		f++;
	if (f == sc->changes + sc->n_changes || f->new_ms <= f->base_ms)
		return;
	if (id == METRIC_HITCHES || id >= METRIC_CAUSES) {
		str__fmt(s, ": %.1f of them %s", fmin(f->new_rate - f->base_rate, m->new - m->base),
			f->base ? "" : "new: ");
	} else {
		before = f->base_ms * (double)sc->base_ns / 60e9 / ((double)sc->base_frames / 100);
		after = f->new_ms * (double)sc->new_ns / 60e9 / ((double)sc->new_frames / 100);
		share = fmin(after - before, m->new - m->base);
		str__fmt(s, ": %.1f ms of it %s", share, f->base ? "" : "new: ");
	}
	str__add(s, f->text);
	if (f->first[0])
		str__fmt(s, ", first seen in %s", f->first);
}

static int answer(struct scene_comparison *sc)
{
	struct str s = {0};
	char label[64];
	int id = lead(sc);
	const struct metric *m = &sc->stats.metrics[max(id, 0)];

	if (id < 0)
		return 0;
	metric__value(&s, (enum metric_id)id, m->new - m->base, true);
	str__fmt(&s, " %s", metric__label((enum metric_id)id, label, sizeof(label)));
	if (sc->name[0])
		str__fmt(&s, " in scene %s", sc->name);
	if (id == METRIC_P50)
		add_cause(&s, sc);
	else if (id != METRIC_ALLOCS && id != METRIC_MEMORY)
		add_hitches(&s, sc, id);
	sc->answer = s.s;
	return s.oom ? -ENOMEM : 0;
}

/* ---- all of it ---- */

static bool comparable(struct scene_comparison *sc)
{
	if (!sc->base_frames || !sc->new_frames)
		sc->why_not = sc->base_frames  ? "not in the new runs"
			      : sc->new_frames ? "not in the base"
					       : "warm-up only";
	else if (sc->base_frames < FRAMES_MIN || sc->new_frames < FRAMES_MIN)
		sc->why_not = "too few frames";
	else if (sc->stats.base.n < 3 || sc->stats.new.n < 3)
		sc->why_not = "too short: fewer than three blocks of time";
	return !sc->why_not;
}

static int decide(struct comparison *c)
{
	struct scene_stats **list = calloc((size_t)c->n_scenes + 1, sizeof(struct scene_stats *));
	int n = 0, err;

	if (!list)
		return -ENOMEM;
	for (int i = 0; i < c->n_scenes; i++)
		if (!c->scenes[i].why_not)
			list[n++] = &c->scenes[i].stats;
	err = scene_stats__decide(list, n);
	free(list);
	for (int i = 0; i < c->n_scenes && !err; i++) {
		for (int id = 0; id < METRIC_COUNT; id++) {
			c->worse |= c->scenes[i].stats.metrics[id].worse;
			c->better |= c->scenes[i].stats.metrics[id].better;
		}
		err = answer(&c->scenes[i]);
	}
	return err;
}

static int take_use(const char *const *cells, int n, void *arg)
{
	double all = cells[0] ? strtod(cells[0], NULL) : 0;

	*(double *)arg = all > 0 && cells[1] ? 100 * strtod(cells[1], NULL) / all : -1;
	return 0;
}

/* Of all runs of a set together. */
static int load_others(struct store *s, const struct run_set *set, double *percent)
{
	struct value args[RUN_SET_MAX];
	struct str sql = {0};
	int n = 0, err;

	*percent = -1;
	str__add(&sql, "SELECT sum(CASE WHEN name = 'cpus.all_ns' THEN value ELSE 0 END), "
		       "sum(CASE WHEN name = 'cpus.all_ns' THEN 0 ELSE value END) FROM counters WHERE name IN "
		       "('cpus.all_ns', 'cpus.others_ns', 'cpus.stolen_ns') AND run_id IN ");
	run_set__in(set, &sql, args, &n);
	err = sql.oom ? -ENOMEM : store__query(s, sql.s, args, n, take_use, percent);
	str__free(&sql);
	return err;
}

static double per_frame(const struct sample *a, int cause)
{
	double ns = 0, frames = 0;

	for (int i = 0; i < a->n; i++) {
		ns += (double)a->groups[i].cause_ns[cause];
		frames += (double)a->groups[i].frames;
	}
	return frames > 0 ? ns / frames : 0;
}

/* Whether in all that got worse frames wait longer for CPUs, and what they do longer is above all to wait: for one, or
 * for threads that wait for one in their turn. */
static bool waits_for_cpus(const struct comparison *c)
{
	static const bool is_wait[CAUSE_COUNT] = {
		[CAUSE_CPU_WAIT] = true, [CAUSE_THREAD_WAIT] = true, [CAUSE_LOCK_WAIT] = true, [CAUSE_IO_WAIT] = true};

	for (int i = 0; i < c->n_scenes; i++) {
		const struct scene_stats *s = &c->scenes[i].stats;
		double most = 0, cpu = per_frame(&s->new, CAUSE_CPU_WAIT) - per_frame(&s->base, CAUSE_CPU_WAIT);
		bool worse = false;
		int what = CAUSE_CPU_WAIT;

		for (int id = 0; id < METRIC_COUNT; id++)
			worse |= s->metrics[id].worse;
		for (int cause = 0; worse && cause < CAUSE_COUNT; cause++) {
			double more = per_frame(&s->new, cause) - per_frame(&s->base, cause);

			what = more > most ? cause : what;
			most = fmax(more, most);
		}
		if (worse && (!is_wait[what] || cpu <= most / 10))
			return false;
	}
	return true;
}

static int look_at_machine(struct store *s, struct comparison *c)
{
	int err = load_others(s, &c->base, &c->base_others) ?: load_others(s, &c->new, &c->new_others);
	double more = c->new_others - c->base_others;

	if (err || c->base_others < 0 || c->new_others < 0)
		return err;
	if (c->worse)
		c->disturbed = (more >= COMPARE_BUSIER || c->new_others >= COMPARE_BUSY) && waits_for_cpus(c);
	else
		c->disturbed = more <= -COMPARE_BUSIER;
	return 0;
}

int compare__run(struct store *s, const struct compare_options *o, struct comparison *c)
{
	int err = run_set__name(s, &c->base, c->base_name, sizeof(c->base_name));

	if (!err)
		err = run_set__name(s, &c->new, c->new_name, sizeof(c->new_name));
	if (!err)
		err = compare__load(s, o, c);
	for (int i = 0; i < c->n_scenes && !err; i++) {
		struct scene_comparison *sc = &c->scenes[i];

		sc->stats.threshold = o->threshold;
		if (!comparable(sc))
			continue;
		err = scene_stats__compute(&sc->stats) ?: load_changes(s, c, sc) ?: find_firsts(s, sc);
	}
	return err ?: decide(c) ?: look_at_machine(s, c);
}

static const struct scene_comparison *same_scene(const struct comparison *c, const char *name)
{
	for (int i = 0; i < c->n_scenes; i++)
		if (!strcmp(c->scenes[i].name, name))
			return &c->scenes[i];
	return NULL;
}

void compare__confirm(struct comparison *c, const struct comparison *again)
{
	bool was = c->worse;

	c->worse = false;
	c->confirming = true;
	for (int i = 0; i < c->n_scenes; i++) {
		const struct scene_comparison *other = same_scene(again, c->scenes[i].name);
		bool worse = false;

		for (int id = 0; id < METRIC_COUNT; id++) {
			struct metric *m = &c->scenes[i].stats.metrics[id];

			m->worse = m->worse && other && other->stats.metrics[id].worse;
			worse |= m->worse;
		}
		free(c->scenes[i].answer);
		c->scenes[i].answer = NULL;
		answer(&c->scenes[i]);
		c->worse |= worse;
	}
	c->refuted = was && !c->worse;
	c->disturbed = again->disturbed;
}

static void free_sample(struct sample *a)
{
	for (int i = 0; i < a->n; i++)
		free(a->groups[i].counts);
	free(a->groups);
}

void compare__free(struct comparison *c)
{
	for (int i = 0; i < c->n_scenes; i++) {
		struct scene_comparison *sc = &c->scenes[i];

		for (int k = 0; k < sc->n_changes; k++) {
			free(sc->changes[k].key);
			free(sc->changes[k].cause);
			free(sc->changes[k].text);
		}
		free(sc->changes);
		free(sc->buckets);
		free(sc->name);
		free(sc->answer);
		free_sample(&sc->stats.base);
		free_sample(&sc->stats.new);
	}
	free(c->scenes);
}
