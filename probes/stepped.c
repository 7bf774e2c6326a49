// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>
#include <time.h>
#include "site_build.h"
#include "stepped.h"
#include "trial.h"

#define COUNT_MS      100
#define COUNT_STEP_MS 10
#define CALLS_COUNTED (STEPPED_CALLS_PER_SEC * COUNT_MS / 1000)
#define CALL_US       14

bool stepped__any(const struct site_list *l)
{
	for (int i = 0; i < l->n; i++)
		if (l->sites[i].stepped)
			return true;
	return false;
}

static u64 now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000 + (u64)ts.tv_nsec / 1000;
}

/* Whether a round has seen what it needs: too many calls of each. */
static bool all_hot(const struct trial *t)
{
	for (int i = 0; i < t->n; i++)
		if (trial__count(t, i) <= CALLS_COUNTED)
			return false;
	return true;
}

/* Counts the calls of up to TRIAL_MAX sites for a moment, all at once. */
static void count_together(struct site_list *l, struct site *const *sites, int n, u32 tgid)
{
	const struct timespec step = {.tv_nsec = COUNT_STEP_MS * 1000000L};
	int candidate[TRIAL_MAX];
	struct trial t;
	u64 begin;

	if (trial__open(&t, tgid))
		return;
	for (int i = 0; i < n; i++) {
		struct site_list one = {.sites = sites[i], .n = 1, .files = l->files, .n_files = l->n_files};

		candidate[i] = trial__add(&t, &one);
	}
	begin = now_us();
	for (int ms = 0; t.n && ms < COUNT_MS && !all_hot(&t); ms += COUNT_STEP_MS)
		nanosleep(&step, NULL);
	for (int i = 0; i < n; i++) {
		sites[i]->counted = candidate[i] >= 0;
		if (candidate[i] >= 0)
			sites[i]->calls_per_sec =
				trial__count(&t, candidate[i]) * 1000000 / max(now_us() - begin, (u64)1);
	}
	trial__close(&t);
}

static void count(struct site_list *l, int first, u32 tgid)
{
	struct site *sites[TRIAL_MAX];
	int n = 0;

	for (int i = first; i < l->n; i++) {
		if (!l->sites[i].stepped || l->sites[i].counted)
			continue;
		sites[n++] = &l->sites[i];
		if (n == TRIAL_MAX) {
			count_together(l, sites, n, tgid);
			n = 0;
		}
	}
	if (n)
		count_together(l, sites, n, tgid);
}

static void take_out(struct site_list *l, int i, char *why, size_t why_size, const char *reason)
{
	why__add(why, why_size, "left out, as every call would be single-stepped and %s: %.80s", reason,
		l->sites[i].label);
	l->sites[i].gone = true;
}

void stepped__drop_hot(struct site_list *l, u32 tgid, char *why, size_t why_size)
{
	int kept = 0;

	count(l, 0, tgid);
	for (int i = 0; i < l->n; i++) {
		const struct site *site = &l->sites[i];

		if (site->stepped && !site->counted)
			take_out(l, i, why, why_size, "its calls could not be counted");
		else if (site->stepped && site->calls_per_sec > STEPPED_CALLS_PER_SEC)
			take_out(l, i, why, why_size, "it is called more than 1000 times a second");
	}
	for (int i = 0; i < l->n; i++)
		if (!l->sites[i].gone)
			l->sites[kept++] = l->sites[i];
	l->n = kept;
}

bool stepped_rate__look(struct stepped_rate *r, u64 ts, u64 calls)
{
	u64 ns = ts - r->begin;

	if (r->begin && ns < STEPPED_WINDOW_NS)
		return false;
	if (r->begin) {
		r->calls_per_sec = (u64)((double)(calls - r->calls) * 1e9 / (double)ns);
		r->hot = r->calls_per_sec > STEPPED_CALLS_PER_SEC ? r->hot + 1 : 0;
	}
	r->begin = ts;
	r->calls = calls;
	return r->hot >= STEPPED_WINDOWS;
}

void stepped__tell_cost(struct site_list *l, int first, u32 tgid, char *why, size_t why_size)
{
	count(l, first, tgid);
	for (int i = first; i < l->n; i++) {
		const struct site *site = &l->sites[i];

		if (!site->stepped)
			continue;
		if (site->counted)
			why__add(why, why_size,
				"%.100s is single-stepped: each call costs the game about %d µs, at %llu calls/s now "
				"%.1f %% of a CPU",
				site->label, CALL_US, (unsigned long long)site->calls_per_sec,
				(double)site->calls_per_sec * CALL_US / 1e4);
		else
			why__add(why, why_size, "%.100s is single-stepped: each call costs the game about %d µs",
				site->label, CALL_US);
	}
}
