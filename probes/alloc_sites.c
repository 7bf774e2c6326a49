// SPDX-License-Identifier: GPL-2.0-only
/* Which of the allocator's functions get a probe, and functions that the user names (--alloc-fn). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "allocators.h"
#include "ifunc.h"
#include "strings.h"
#include "trial.h"

#define COUNT_MS      200
#define COUNT_STEP_MS 10
#define CALLS_PER_SEC 1000 /* of a function that is single-stepped: 1.4 % of one CPU */
#define CALLS_COUNTED (CALLS_PER_SEC * COUNT_MS / 1000)

static void take_out(struct site_list *l, int i, char *why, size_t why_size, const char *reason)
{
	why__add(why, why_size, "left out, as every call would be single-stepped and %s: %.80s", reason,
		l->sites[i].label);
	l->sites[i].gone = true;
}

/* Counts one site's calls for a moment, or until there are too many. */
static int is_rare(struct site_list *l, int i, u32 tgid, bool *rare)
{
	const struct timespec step = {.tv_nsec = COUNT_STEP_MS * 1000000L};
	struct site_list one = {.sites = &l->sites[i], .n = 1, .files = l->files, .n_files = l->n_files};
	struct trial t;
	int err = trial__open(&t, tgid);

	if (!err)
		err = min(trial__add(&t, &one), 0);
	for (int ms = 0; !err && ms < COUNT_MS && trial__count(&t, 0) <= CALLS_COUNTED; ms += COUNT_STEP_MS)
		nanosleep(&step, NULL);
	*rare = !err && trial__count(&t, 0) <= CALLS_COUNTED;
	trial__close(&t);
	return err;
}

/* Where the kernel emulates no instruction of a function's entry, a call costs 14 us: only what is called rarely may.
 */
static void drop_hot(struct site_list *l, u32 tgid, char *why, size_t why_size)
{
	int kept = 0;

	for (int i = 0; i < l->n; i++) {
		bool rare;

		if (!l->sites[i].stepped)
			continue;
		if (is_rare(l, i, tgid, &rare))
			take_out(l, i, why, why_size, "its calls could not be counted");
		else if (!rare)
			take_out(l, i, why, why_size, "it is called more than 1000 times a second");
	}
	for (int i = 0; i < l->n; i++)
		if (!l->sites[i].gone)
			l->sites[kept++] = l->sites[i];
	l->n = kept;
}

static int take_rare(struct site_list *l, struct site_list *found, u32 tgid, char *why, size_t why_size)
{
	int before = l->n, err;

	drop_hot(found, tgid, why, why_size);
	err = sites__take(l, found);
	sites__free(found);
	return err ? err : l->n - before;
}

static int read_objects(struct objects *o, u32 pid, char *why, size_t why_size)
{
	int err = objects__read(o, pid);

	why[0] = 0;
	if (err)
		why__add(why, why_size, "/proc/%u/maps: %s", pid, strerror(-err));
	return err;
}

int sites__alloc(struct site_list *l, u32 pid, bool with_free, char *why, size_t why_size)
{
	struct site_list found = {0};
	struct objects o;
	int err = read_objects(&o, pid, why, why_size);

	if (err)
		return err;
	err = allocators__find(&found, &o, with_free, true, why, why_size);
	objects__free(&o);
	if (err < 0) {
		sites__free(&found);
		return err;
	}
	return take_rare(l, &found, pid, why, why_size);
}

/* ---- --alloc-fn SYMBOL[:size=ARG] ---- */

int alloc_fn__parse(const char *spec, char *symbol, size_t size, int *arg)
{
	const char *colon = strstr(spec, ":size=");
	size_t n = colon ? (size_t)(colon - spec) : strlen(spec);
	char *end = NULL;

	*arg = colon ? (int)strtol(colon + 6, &end, 10) : 0;
	if (!n || n >= size || (colon && (end == colon + 6 || *end)) || *arg < 0 || *arg > 5)
		return -EINVAL;
	snprintf(symbol, size, "%.*s", (int)n, spec);
	return 0;
}

static int add_in(struct site_list *l, struct objects *o, struct object *obj, const char *symbol, int arg)
{
	struct use use = {.what = PROBE_ALLOC, .sub = ALLOC_CUSTOM, .args = {(signed char)arg, -1, -1}};
	struct function f = {.obj = obj};
	char base[64];
	bool stepped;

	if (object__open(o, obj) || elf_file__find(&obj->elf, &symbol, 1, true, &f.sym) <= 0)
		return 0;
	if (ifunc__resolve(o, obj, symbol, &f.sym))
		return 0;
	utf8__sanitize(base, sizeof(base), obj->base, strlen(obj->base));
	f.lib = base;
	return sites__add_function(l, o, &f, &use, true, &stepped);
}

int sites__alloc_fn(struct site_list *l, u32 pid, const char *spec, char *why, size_t why_size)
{
	struct site_list found = {0};
	char symbol[512];
	struct objects o;
	int arg, n = 0, err;

	why[0] = 0;
	if (alloc_fn__parse(spec, symbol, sizeof(symbol), &arg)) {
		why__add(why, why_size, "--alloc-fn %.200s: it is SYMBOL or SYMBOL:size=ARG, ARG from 0 to 5", spec);
		return -EINVAL;
	}
	err = read_objects(&o, pid, why, why_size);
	for (int i = 0; !err && i < o.n; i++) {
		n = add_in(&found, &o, &o.v[i], symbol, arg);
		err = min(n, 0);
	}
	if (!err && !found.n)
		why__add(why, why_size, "nothing that the game maps has a function %.200s", symbol);
	objects__free(&o);
	if (err < 0) {
		sites__free(&found);
		return err;
	}
	return take_rare(l, &found, pid, why, why_size);
}
