// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>
#include <time.h>
#include "site_build.h"
#include "stepped.h"
#include "trial.h"

#define COUNT_MS      200
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

/* Counts one site's calls for a moment, or until there are too many: calls a second. */
static int count(struct site_list *l, int i, u32 tgid, u64 *per_sec)
{
	const struct timespec step = {.tv_nsec = COUNT_STEP_MS * 1000000L};
	struct site_list one = {.sites = &l->sites[i], .n = 1, .files = l->files, .n_files = l->n_files};
	struct trial t;
	u64 begin;
	int err = trial__open(&t, tgid);

	if (!err)
		err = min(trial__add(&t, &one), 0);
	begin = now_us();
	for (int ms = 0; !err && ms < COUNT_MS && trial__count(&t, 0) <= CALLS_COUNTED; ms += COUNT_STEP_MS)
		nanosleep(&step, NULL);
	if (!err)
		*per_sec = trial__count(&t, 0) * 1000000 / max(now_us() - begin, (u64)1);
	trial__close(&t);
	return err;
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

	for (int i = 0; i < l->n; i++) {
		u64 per_sec = 0;

		if (!l->sites[i].stepped)
			continue;
		if (count(l, i, tgid, &per_sec))
			take_out(l, i, why, why_size, "its calls could not be counted");
		else if (per_sec > STEPPED_CALLS_PER_SEC)
			take_out(l, i, why, why_size, "it is called more than 1000 times a second");
	}
	for (int i = 0; i < l->n; i++)
		if (!l->sites[i].gone)
			l->sites[kept++] = l->sites[i];
	l->n = kept;
}

void stepped__tell_cost(struct site_list *l, int first, u32 tgid, char *why, size_t why_size)
{
	for (int i = first; i < l->n; i++) {
		u64 per_sec = 0;

		if (!l->sites[i].stepped)
			continue;
		if (count(l, i, tgid, &per_sec))
			why__add(why, why_size, "%.100s is single-stepped: each call costs the game about %d µs",
				l->sites[i].label, CALL_US);
		else
			why__add(why, why_size,
				"%.100s is single-stepped: each call costs the game about %d µs, at %llu calls/s now "
				"%.1f %% of a CPU",
				l->sites[i].label, CALL_US, (unsigned long long)per_sec,
				(double)per_sec * CALL_US / 1e4);
	}
}
