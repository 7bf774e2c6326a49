/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Frames are not independent of each other, groups of blocks nearly are: so whole groups are drawn with replacement,
 * a thousand times, and what the figures then vary by is what they are uncertain by. Where a side has several runs,
 * runs are drawn first. The numbers drawn are always the same: equal input gives equal output.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bucket.h"
#include "compare.h"

#define DRAWS       1000
#define LEVEL       0.10 /* of all metrics and scenes together: with the threshold, 1 in 40 in the simulation */
#define MEMORY_PART 0.10 /* a process's peak differs from run to run with nothing changed */

/* below these a change is of no interest, whatever its share: ms, hitches per minute, bytes, calls, bytes */
static const double floors[METRIC_CAUSES] = {
	[METRIC_P50] = 0.05,
	[METRIC_P95] = 0.1,
	[METRIC_P99] = 0.1,
	[METRIC_LOW1] = 0.1,
	[METRIC_HITCHES] = 0.5,
	[METRIC_COLD] = 1024,
	[METRIC_ALLOCS] = 1,
	[METRIC_MEMORY] = 4 << 20,
};

struct pool {
	struct group sum; /* of the groups drawn */
	double values[METRIC_COUNT];
};

static u64 next_random(u64 *state)
{
	u64 x = *state += 0x9e3779b97f4a7c15ULL; /* splitmix64 */

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static void add_group(struct group *to, const struct group *g, int buckets)
{
	to->frames += g->frames;
	to->dur_ns += g->dur_ns;
	to->slow += g->slow;
	to->cold_bytes += g->cold_bytes;
	to->allocs += g->allocs;
	for (int c = 0; c < CAUSE_COUNT; c++)
		to->hitches[c] += g->hitches[c];
	for (int i = 0; i < buckets; i++)
		to->counts[i] += g->counts[i];
}

static void clear(struct group *g, int buckets)
{
	u32 *counts = g->counts;

	memset(counts, 0, (size_t)buckets * sizeof(*counts));
	*g = (struct group){.counts = counts};
}

/* within a bucket frames are taken to be spread evenly, or a percentile would move in steps of 0.8 % */
static double percentile_ms(const struct scene_stats *s, const struct group *g, double share)
{
	double want = share * (double)g->frames, seen = 0;

	for (int i = 0; i < s->n_buckets; i++) {
		double low = (double)bucket__low(s->buckets[i]), high = (double)bucket__low(s->buckets[i] + 1);

		if (g->counts[i] && seen + g->counts[i] >= want)
			return (low + (high - low) * (want - seen) / g->counts[i]) / 1e6;
		seen += g->counts[i];
	}
	return 0;
}

static double worst_ms(const struct scene_stats *s, const struct group *g)
{
	double left = ceil((double)g->frames / 100), k = left, sum = 0;

	for (int i = s->n_buckets; i-- > 0 && left > 0;) {
		double take = fmin(left, g->counts[i]);

		sum += take * (double)bucket__middle(s->buckets[i]);
		left -= take;
	}
	return k > 0 ? sum / k / 1e6 : 0;
}

static void evaluate(const struct scene_stats *s, const struct group *g, double *values)
{
	double minutes = (double)g->dur_ns / 60e9, frames = (double)g->frames;

	memset(values, 0, METRIC_COUNT * sizeof(*values));
	if (!g->frames || !g->dur_ns)
		return;
	values[METRIC_P50] = percentile_ms(s, g, 0.50);
	values[METRIC_P95] = percentile_ms(s, g, 0.95);
	values[METRIC_P99] = percentile_ms(s, g, 0.99);
	values[METRIC_LOW1] = worst_ms(s, g);
	values[METRIC_HITCHES] = (double)g->slow / minutes;
	values[METRIC_COLD] = (double)g->cold_bytes / frames;
	values[METRIC_ALLOCS] = (double)g->allocs / frames;
	for (int c = 0; c < CAUSE_COUNT; c++)
		values[METRIC_CAUSES + c] = (double)g->hitches[c] / minutes;
}

/* the groups of a run: [*from, return value) */
static int run_range(const struct sample *a, int run, int *from)
{
	int to;

	for (*from = 0; *from < a->n && a->groups[*from].run != run; ++*from)
		;
	for (to = *from; to < a->n && a->groups[to].run == run; to++)
		;
	return to;
}

static void draw(const struct scene_stats *s, const struct sample *a, u64 *random, struct group *sum)
{
	clear(sum, s->n_buckets);
	for (int r = 0; r < a->runs; r++) {
		int from, to = run_range(a, (int)(next_random(random) % (u64)a->runs), &from);

		for (int i = from; i < to; i++)
			add_group(sum, &a->groups[from + (int)(next_random(random) % (u64)(to - from))], s->n_buckets);
	}
}

static void whole(const struct scene_stats *s, const struct sample *a, int run, struct group *sum)
{
	clear(sum, s->n_buckets);
	for (int i = 0; i < a->n; i++)
		if (run < 0 || a->groups[i].run == run)
			add_group(sum, &a->groups[i], s->n_buckets);
}

/* ---- from draws to a metric ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double variance(const double *v, int n)
{
	double mean = 0, sum = 0;

	for (int i = 0; i < n; i++)
		mean += v[i] / n;
	for (int i = 0; i < n; i++)
		sum += (v[i] - mean) * (v[i] - mean);
	return n > 1 ? sum / (n - 1) : 0;
}

/* the chance of a Student's t of so many degrees above t, by Wallace's approximation */
static double above(double t, double degrees)
{
	double z = (8 * degrees + 1) / (8 * degrees + 3) * sqrt(degrees * log1p(t * t / degrees));

	return 0.5 * erfc((t < 0 ? -z : z) / sqrt(2));
}

/* what a Student's t is beyond, to either side, in 5 % */
static double two_sided(double degrees)
{
	double low = 0, high = 100;

	for (int i = 0; i < 50; i++) {
		double t = (low + high) / 2;

		*(above(t, degrees) > 0.025 ? &low : &high) = t;
	}
	return high;
}

/* the 95 % point of Student's t */
static double t95(int degrees)
{
	static const double table[] = {6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83};

	return degrees < 1 ? INFINITY : degrees <= (int)ARRAY_SIZE(table) ? table[degrees - 1] : 1.7;
}

static bool is_rate(int id)
{
	return id == METRIC_HITCHES || id >= METRIC_CAUSES;
}

/* Few hitches may all lie in one group or in none: they vary at least as counts do. */
static double least_variance(const struct scene_stats *s, const struct pool *base, const struct pool *new, int id)
{
	double b = (double)base->sum.dur_ns / 60e9, n = (double)new->sum.dur_ns / 60e9;
	double width = 0.001 * base->values[id];

	return is_rate(id) ? base->values[id] / b + new->values[id] / n : width *width;
}

static void finish_metric(struct scene_stats *s, int id, const struct pool *base, const struct pool *new, double *diffs)
{
	struct metric *m = &s->metrics[id];
	double mean = new->values[id] - base->values[id], sd, degrees = fmax(min(s->base.n, s->new.n) - 1, 1);
	double reach = two_sided(degrees);

	sd = sqrt(fmax(variance(diffs, DRAWS), least_variance(s, base, new, id)));
	qsort(diffs, DRAWS, sizeof(*diffs), by_value);
	m->measured = base->values[id] > 0 || new->values[id] > 0;
	m->base = base->values[id];
	m->new = new->values[id];
	m->low = fmin(diffs[DRAWS / 40], mean - reach * sd);
	m->high = fmax(diffs[DRAWS - 1 - DRAWS / 40], mean + reach * sd);
	m->p = sd > 0 ? above(mean / sd, degrees) : 1;
}

static double peak(const struct sample *a)
{
	double sum = 0;
	int n = 0;

	for (int i = 0; i < a->runs; i++) {
		sum += (double)a->rss[i];
		n += a->rss[i] > 0;
	}
	return n ? sum / n : 0;
}

static void finish_memory(struct scene_stats *s)
{
	struct metric *m = &s->metrics[METRIC_MEMORY];

	*m = (struct metric){.base = peak(&s->base), .new = peak(&s->new), .p = 1};
	m->measured = m->base > 0 && m->new > 0;
}

/* What runs of the same build differ by, of the means of as many runs: needs at least two of the base. */
static void add_noise(struct scene_stats *s, struct pool *one)
{
	double values[METRIC_COUNT][RUN_SET_MAX];
	int n = s->base.runs;

	for (int r = 0; r < n; r++) {
		whole(s, &s->base, r, &one->sum);
		evaluate(s, &one->sum, one->values);
		one->values[METRIC_MEMORY] = (double)s->base.rss[r];
		for (int id = 0; id < METRIC_COUNT; id++)
			values[id][r] = one->values[id];
	}
	for (int id = 0; id < METRIC_COUNT; id++) {
		struct metric *m = &s->metrics[id];
		double part = id == METRIC_MEMORY ? fmax(s->threshold, MEMORY_PART) : s->threshold;
		double least = floors[id < METRIC_CAUSES ? id : METRIC_HITCHES];

		m->noise = n > 1 ? t95(n - 1) * sqrt(variance(values[id], n) * (1.0 / n + 1.0 / s->new.runs)) : 0;
		m->needed = fmax(fmax(part * m->base, least), m->noise);
	}
}

int scene_stats__compute(struct scene_stats *s)
{
	u32 *counts = calloc((size_t)s->n_buckets * 2 + 1, sizeof(*counts));
	double(*diffs)[DRAWS] = calloc(METRIC_COUNT, sizeof(*diffs));
	struct pool base = {.sum.counts = counts}, new = {.sum.counts = counts ? counts + s->n_buckets : NULL};
	u64 random = 1;

	if (!counts || !diffs) {
		free(counts);
		free(diffs);
		return -ENOMEM;
	}
	for (int i = 0; i < DRAWS; i++) {
		draw(s, &s->base, &random, &base.sum);
		draw(s, &s->new, &random, &new.sum);
		evaluate(s, &base.sum, base.values);
		evaluate(s, &new.sum, new.values);
		for (int id = 0; id < METRIC_COUNT; id++)
			diffs[id][i] = new.values[id] - base.values[id];
	}
	whole(s, &s->base, -1, &base.sum);
	whole(s, &s->new, -1, &new.sum);
	evaluate(s, &base.sum, base.values);
	evaluate(s, &new.sum, new.values);
	for (int id = 0; id < METRIC_COUNT; id++)
		finish_metric(s, id, &base, &new, diffs[id]);
	finish_memory(s);
	add_noise(s, &base);
	free(counts);
	free(diffs);
	return 0;
}

/* ---- all metrics of all scenes together ---- */

struct claim {
	struct metric *m;
	double p;
	bool better;
};

static int by_p(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	return x->p < y->p ? -1 : x->p > y->p;
}

/* Benjamini-Hochberg: of n claims in order the k-th holds where p ≤ level × k / n, and with it all before it. */
static void accept(struct claim *claims, int n)
{
	int last = 0;

	qsort(claims, (size_t)n, sizeof(*claims), by_p);
	for (int k = 1; k <= n; k++)
		if (claims[k - 1].p <= LEVEL * k / n)
			last = k;
	for (int k = 0; k < last; k++) {
		struct metric *m = claims[k].m;
		double diff = m->new - m->base;

		if (claims[k].better)
			m->better = -diff > m->needed;
		else
			m->worse = diff > m->needed;
	}
}

int scene_stats__decide(struct scene_stats **scenes, int n)
{
	struct claim *claims = calloc((size_t)n * METRIC_COUNT + 1, sizeof(*claims));
	struct metric *m;

	if (!claims)
		return -ENOMEM;
	for (int better = 0; better < 2; better++) {
		int k = 0;

		for (int i = 0; i < n * METRIC_COUNT; i++) {
			m = &scenes[i / METRIC_COUNT]->metrics[i % METRIC_COUNT];
			if (m->measured && i % METRIC_COUNT != METRIC_MEMORY)
				claims[k++] = (struct claim){m, better ? 1 - m->p : m->p, better};
		}
		accept(claims, k);
	}
	for (int i = 0; i < n; i++) {
		m = &scenes[i]->metrics[METRIC_MEMORY];
		m->worse = m->measured && m->new - m->base > m->needed;
		m->better = m->measured && m->base - m->new > m->needed;
	}
	free(claims);
	return 0;
}
