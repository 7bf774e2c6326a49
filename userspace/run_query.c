/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bucket.h"
#include "run_query.h"

#define COLUMNS     300 /* of the plot */
#define HITCHES_MAX 50
#define NOTES_MAX   200

static u64 number(const char *cell)
{
	return cell ? strtoull(cell, NULL, 10) : 0;
}

static char *copy(const char *cell)
{
	return strdup(cell ?: "");
}

/* a zeroed element more at the end of an array; NULL when out of memory */
static void *append(void *array, int *n, size_t size)
{
	char **at = array, *more = realloc(*at, (size_t)(*n + 1) * size);

	if (!more)
		return NULL;
	*at = more;
	return memset(more + (size_t)(*n)++ * size, 0, size);
}

#define APPEND(f, list) append(&(f)->list, &(f)->n_##list, sizeof(*(f)->list))

static int ask(struct store *s, struct run_facts *f, const char *sql, row_fn fn)
{
	struct value run = {.type = VALUE_TEXT, .s = f->id};

	return store__query(s, sql, &run, 1, fn, f);
}

static int take_run(const char *const *cells, int n, void *arg)
{
	struct run_facts *f = arg;

	f->kind = copy(cells[0]);
	f->game = copy(cells[1]);
	f->path = copy(cells[2]);
	f->version = copy(cells[3]);
	f->started_ms = (s64)number(cells[4]);
	f->ended = cells[5];
	f->ended_ms = (s64)number(cells[5]);
	f->status = (int)number(cells[6]);
	f->reason = copy(cells[7]);
	return f->kind && f->game && f->path && f->version && f->reason ? 0 : -ENOMEM;
}

/* ---- scenes ---- */

static int take_scene(const char *const *cells, int n, void *arg)
{
	struct run_facts *f = arg;
	struct run_scene *sc = APPEND(f, scenes);
	u64 *const to[] = {&sc->frames, &sc->slow, &sc->unsure, &sc->lost, &sc->dur_ns, &sc->max_ns,
		&sc->over_budget_ns, &sc->cold_bytes, &sc->allocs, &sc->alloc_bytes, &sc->faults, &sc->warm_up_frames,
		&sc->warm_up_slow};

	if (!sc)
		return -ENOMEM;
	sc->name = copy(cells[0]);
	for (size_t i = 0; i < ARRAY_SIZE(to); i++)
		*to[i] = number(cells[1 + i]);
	f->frames += sc->frames + sc->warm_up_frames;
	return sc->name ? 0 : -ENOMEM;
}

static struct run_scene *scene_of(struct run_facts *f, const char *name)
{
	for (int i = 0; i < f->n_scenes; i++)
		if (!strcmp(f->scenes[i].name, name))
			return &f->scenes[i];
	return NULL;
}

static u64 rank_ns(const char *bucket, u64 max_ns)
{
	u32 b = (u32)min(number(bucket), (u64)BUCKETS - 1);

	return min(bucket__middle(b), max_ns);
}

static int take_ranks(const char *const *cells, int n, void *arg)
{
	struct run_scene *sc = scene_of(arg, cells[0]);
	u64 ranks[3];

	for (int i = 0; i < 3 && sc; i++)
		ranks[i] = rank_ns(cells[1 + i], sc->max_ns);
	if (sc) {
		sc->p50_ns = ranks[0];
		sc->p95_ns = ranks[1];
		sc->p99_ns = ranks[2];
	}
	return 0;
}

static int take_below(const char *const *cells, int n, void *arg)
{
	struct run_scene *sc = scene_of(arg, cells[0]);

	for (int i = 0; i < RUN_BOUNDS && sc; i++)
		sc->below[i] = number(cells[1 + i]);
	return 0;
}

static int load_below(struct store *s, struct run_facts *f)
{
	static const u64 bounds[RUN_BOUNDS] = RUN_BOUNDS_NS;
	struct str sql = {0};
	int err;

	str__add(&sql, "SELECT b.scene");
	for (int i = 0; i < RUN_BOUNDS; i++)
		str__fmt(&sql, ", sum(CASE WHEN c.bucket <= %u THEN c.frames ELSE 0 END)", bucket__of(bounds[i]));
	str__add(&sql,
		" FROM blocks b JOIN frame_counts c ON c.run_id = b.run_id AND c.block = b.block WHERE b.run_id = $1 "
		"AND b.warm_up = 0 GROUP BY b.scene");
	err = sql.oom ? -ENOMEM : ask(s, f, sql.s, take_below);
	str__free(&sql);
	return err;
}

static int take_memory(const char *const *cells, int n, void *arg)
{
	struct run_scene *sc = scene_of(arg, cells[0]);

	if (sc)
		sc->peak_rss = number(cells[1]);
	return 0;
}

static int load_scenes(struct store *s, struct run_facts *f)
{
	int err = ask(s, f,
		"SELECT scene, sum(frames * (1 - warm_up)), sum(slow * (1 - warm_up)), sum(unsure * (1 - warm_up)), "
		"sum(lost * (1 - warm_up)), sum(dur_ns * (1 - warm_up)), max(max_ns * (1 - warm_up)), "
		"sum(over_budget_ns * (1 - warm_up)), sum(cold_bytes * (1 - warm_up)), sum(allocs * (1 - warm_up)), "
		"sum(alloc_bytes * (1 - warm_up)), sum(faults * (1 - warm_up)), sum(frames * warm_up), sum(slow * "
		"warm_up) FROM blocks "
		"WHERE run_id = $1 GROUP BY scene ORDER BY scene",
		take_scene);

	if (!err) /* the first bucket by which so many of the frames are at or below it */
		err = ask(s, f,
			"SELECT scene, min(CASE WHEN below * 100 >= total * 50 THEN bucket END), "
			"min(CASE WHEN below * 100 >= total * 95 THEN bucket END), "
			"min(CASE WHEN below * 100 >= total * 99 THEN bucket END) FROM (SELECT scene, bucket, "
			"sum(n) OVER (PARTITION BY scene ORDER BY bucket) AS below, sum(n) OVER (PARTITION BY scene) "
			"AS total "
			"FROM (SELECT b.scene, c.bucket, sum(c.frames) AS n FROM blocks b JOIN frame_counts c ON "
			"c.run_id = b.run_id AND c.block = b.block WHERE b.run_id = $1 AND b.warm_up = 0 "
			"GROUP BY b.scene, c.bucket) x) y GROUP BY scene",
			take_ranks);
	return err ?: load_below(s, f) ?: ask(s, f, "SELECT scene, max(rss) FROM memory WHERE run_id = $1 GROUP BY scene", take_memory);
}

/* ---- causes, hitches, checks ---- */

static int take_cause(const char *const *cells, int n, void *arg)
{
	struct run_cause *c = APPEND((struct run_facts *)arg, causes);

	if (!c)
		return -ENOMEM;
	*c = (struct run_cause){copy(cells[0]), copy(cells[1]), number(cells[2]), number(cells[3]), number(cells[4])};
	return c->scene && c->cause ? 0 : -ENOMEM;
}

static int take_hitch(const char *const *cells, int n, void *arg)
{
	struct run_hitch *h = APPEND((struct run_facts *)arg, hitches);

	if (!h)
		return -ENOMEM;
	*h = (struct run_hitch){.key = copy(cells[0]),
		.cause = copy(cells[1]),
		.text = copy(cells[2]),
		.scene = copy(cells[3]),
		.sentence = copy(cells[4]),
		.trace = copy(cells[5]),
		.worst_ns = number(cells[6]),
		.worst_frame = number(cells[7]),
		.worst_ms = number(cells[8]),
		.hitches = number(cells[9]),
		.excess_ns = number(cells[10]),
		.first_ms = number(cells[11])};
	return h->key && h->cause && h->text && h->scene && h->sentence && h->trace ? 0 : -ENOMEM;
}

static int take_explained(const char *const *cells, int n, void *arg)
{
	struct run_facts *f = arg;
	u64 slow = 0;

	for (int i = 0; i < f->n_scenes; i++)
		slow += f->scenes[i].slow;
	f->without_cause = slow - min(slow, number(cells[0]));
	return 0;
}

static int take_check(const char *const *cells, int n, void *arg)
{
	struct run_check *c = APPEND((struct run_facts *)arg, checks);

	if (!c)
		return -ENOMEM;
	*c = (struct run_check){copy(cells[0]), copy(cells[1]), copy(cells[2]), copy(cells[3]), number(cells[4])};
	return c->scene && c->name && c->limit && c->found ? 0 : -ENOMEM;
}

static int load_findings(struct store *s, struct run_facts *f)
{
	char sql[1024];
	int err = ask(s, f,
		"SELECT b.scene, c.cause, sum(c.total_ns), sum(c.hitches), sum(c.excess_ns) FROM blocks b JOIN "
		"block_causes c "
		"ON c.run_id = b.run_id AND c.block = b.block WHERE b.run_id = $1 AND b.warm_up = 0 GROUP BY b.scene, "
		"c.cause "
		"ORDER BY 5 DESC, 3 DESC",
		take_cause);

	/* of each kind the row of its longest frame, and the sums of all of it */
	snprintf(sql, sizeof(sql),
		"SELECT h.fingerprint, f.cause, f.pattern, h.scene, h.sentence, h.trace, h.worst_ns, h.worst_frame, "
		"h.worst_ms, h.total, h.excess, h.first_ms FROM (SELECT x.*, b.scene, "
		"sum(x.hitches) OVER (PARTITION BY x.fingerprint) AS total, "
		"sum(x.excess_ns) OVER (PARTITION BY x.fingerprint) AS excess, "
		"min(x.worst_ms) OVER (PARTITION BY x.fingerprint) AS first_ms, "
		"row_number() OVER (PARTITION BY x.fingerprint ORDER BY x.worst_ns DESC, x.block) AS nth "
		"FROM hitches x JOIN blocks b ON b.run_id = x.run_id AND b.block = x.block "
		"WHERE x.run_id = $1 AND b.warm_up = 0) h LEFT JOIN fingerprints f "
		"ON f.run_id = $1 AND f.fingerprint = h.fingerprint WHERE h.nth = 1 ORDER BY h.excess DESC LIMIT %d",
		HITCHES_MAX);
	if (!err)
		err = ask(s, f, sql, take_hitch);
	if (!err)
		err = ask(s, f,
			"SELECT sum(h.hitches) FROM hitches h JOIN blocks b ON b.run_id = h.run_id AND b.block = "
			"h.block WHERE h.run_id = $1 AND b.warm_up = 0 AND h.fingerprint <> '0000000000000000'",
			take_explained);
	return err
		       ?: ask(s, f,
				  "SELECT scene, name, bound, found, failed FROM checks WHERE run_id = $1 ORDER BY "
				  "scene, name",
				  take_check);
}

/* ---- over time ---- */

static int take_last(const char *const *cells, int n, void *arg)
{
	*(u64 *)arg = number(cells[0]);
	return 0;
}

static int take_column(const char *const *cells, int n, void *arg)
{
	struct run_column *c = APPEND((struct run_facts *)arg, columns);

	if (!c)
		return -ENOMEM;
	*c = (struct run_column){number(cells[0]), number(cells[1]), number(cells[2]), number(cells[3]),
		number(cells[4]), number(cells[5])};
	return 0;
}

/* Blocks are few seconds: of a long run several make a column, with the frames' mean of their medians. */
static int load_columns(struct store *s, struct run_facts *f)
{
	struct value run = {.type = VALUE_TEXT, .s = f->id};
	char sql[512];
	u64 last = 0;
	int err = store__query(s, "SELECT max(block) FROM blocks WHERE run_id = $1", &run, 1, take_last, &last);

	snprintf(sql, sizeof(sql),
		"SELECT min(start_ms), sum(frames), sum(p50_ns / 1000 * frames) * 1000 / sum(frames), max(p99_ns), "
		"max(max_ns), "
		"min(warm_up) FROM blocks WHERE run_id = $1 GROUP BY block / %llu HAVING sum(frames) > 0 ORDER BY "
		"min(block)",
		(unsigned long long)last / COLUMNS + 1);
	return err ?: ask(s, f, sql, take_column);
}

/* ---- before it ---- */

static int take_past(const char *const *cells, int n, void *arg)
{
	struct run_past *p = APPEND((struct run_facts *)arg, past);

	if (!p)
		return -ENOMEM;
	*p = (struct run_past){copy(cells[0]), copy(cells[1]), rank_ns(cells[2], ~0ULL), rank_ns(cells[3], ~0ULL)};
	return p->id && p->build ? 0 : -ENOMEM;
}

static int load_past(struct store *s, struct run_facts *f)
{
	return ask(s, f,
		"SELECT q.run_id, min(l.value), min(CASE WHEN below * 100 >= total * 50 THEN bucket END), "
		"min(CASE WHEN below * 100 >= total * 99 THEN bucket END) FROM (SELECT run_id, started_ms, bucket, "
		"sum(n) OVER (PARTITION BY run_id ORDER BY bucket) AS below, sum(n) OVER (PARTITION BY run_id) AS "
		"total FROM "
		"(SELECT p.run_id, p.started_ms, c.bucket, sum(c.frames) AS n FROM (SELECT r.run_id, r.started_ms FROM "
		"runs r "
		"JOIN runs t ON t.run_id = $1 AND t.game = r.game AND r.started_ms <= t.started_ms WHERE NOT EXISTS "
		"(SELECT 1 "
		"FROM run_meta a JOIN run_meta o ON o.run_id = r.run_id AND o.name = a.name AND o.value <> a.value "
		"WHERE "
		"a.run_id = $1 AND (a.name LIKE 'device.%' OR a.name LIKE 'option.%' OR a.name = 'meta.device')) "
		"ORDER BY r.started_ms DESC LIMIT 30) p JOIN blocks b ON b.run_id = p.run_id AND b.warm_up = 0 JOIN "
		"frame_counts c ON c.run_id = b.run_id AND c.block = b.block GROUP BY p.run_id, p.started_ms, "
		"c.bucket) x) q "
		"LEFT JOIN run_meta l ON l.run_id = q.run_id AND l.name IN ('meta.build', 'meta.commit') "
		"GROUP BY q.run_id, q.started_ms ORDER BY q.started_ms, q.run_id",
		take_past);
}

/* ---- the rest ---- */

static int take_pair(struct run_pair *p, const char *const *cells)
{
	if (!p)
		return -ENOMEM;
	*p = (struct run_pair){copy(cells[0]), copy(cells[1])};
	return p->name && p->value ? 0 : -ENOMEM;
}

static int take_meta(const char *const *cells, int n, void *arg)
{
	return take_pair(APPEND((struct run_facts *)arg, meta), cells);
}

static int take_counter(const char *const *cells, int n, void *arg)
{
	return take_pair(APPEND((struct run_facts *)arg, counters), cells);
}

static int take_note(const char *const *cells, int n, void *arg)
{
	return ((struct run_facts *)arg)->n_notes < NOTES_MAX ? take_pair(APPEND((struct run_facts *)arg, notes), cells)
							      : 0;
}

int run_facts__load(struct store *s, const char *run, struct run_facts *f)
{
	int err;

	*f = (struct run_facts){0};
	snprintf(f->id, sizeof(f->id), "%s", run);
	err = ask(s, f,
		"SELECT r.kind, r.game, r.path, r.version, r.started_ms, e.ended_ms, e.status, e.reason FROM runs r "
		"LEFT JOIN "
		"run_ends e ON e.run_id = r.run_id WHERE r.run_id = $1",
		take_run);
	if (!err && !f->kind)
		return -ENOENT;
	return err	 ?: load_scenes(s, f)
	       ?: load_findings(s, f)
	       ?: load_columns(s, f)
	       ?: load_past(s, f)
	       ?: ask(s, f, "SELECT name, value FROM run_meta WHERE run_id = $1 ORDER BY name", take_meta)
	       ?: ask(s, f, "SELECT name, value FROM counters WHERE run_id = $1 ORDER BY name", take_counter)
		       ?: ask(s, f, "SELECT at_ms, note FROM notes WHERE run_id = $1 ORDER BY number", take_note);
}

static void free_pairs(struct run_pair *p, int n)
{
	for (int i = 0; i < n; i++) {
		free(p[i].name);
		free(p[i].value);
	}
	free(p);
}

void run_facts__free(struct run_facts *f)
{
	for (int i = 0; i < f->n_scenes; i++)
		free(f->scenes[i].name);
	for (int i = 0; i < f->n_causes; i++) {
		free(f->causes[i].scene);
		free(f->causes[i].cause);
	}
	for (int i = 0; i < f->n_hitches; i++) {
		char *const texts[] = {f->hitches[i].key, f->hitches[i].cause, f->hitches[i].text, f->hitches[i].scene,
			f->hitches[i].sentence, f->hitches[i].trace};

		for (size_t k = 0; k < ARRAY_SIZE(texts); k++)
			free(texts[k]);
	}
	for (int i = 0; i < f->n_checks; i++) {
		free(f->checks[i].scene);
		free(f->checks[i].name);
		free(f->checks[i].limit);
		free(f->checks[i].found);
	}
	free(f->scenes);
	free(f->causes);
	free(f->hitches);
	free(f->checks);
	for (int i = 0; i < f->n_past; i++) {
		free(f->past[i].id);
		free(f->past[i].build);
	}
	free(f->past);
	free(f->columns);
	free_pairs(f->meta, f->n_meta);
	free_pairs(f->counters, f->n_counters);
	free_pairs(f->notes, f->n_notes);
	free(f->kind);
	free(f->game);
	free(f->path);
	free(f->version);
	free(f->reason);
}

const char *run_facts__result(const struct run_facts *f)
{
	bool failed = f->ended && f->status == EXIT_WORSE;

	for (int i = 0; i < f->n_checks; i++)
		failed |= f->checks[i].failed;
	if (!f->frames || (f->ended && f->status == EXIT_NOT_MEASURED))
		return "not measured";
	return failed ? "failed" : f->ended ? "passed" : "unfinished";
}
