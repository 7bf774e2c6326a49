// SPDX-License-Identifier: GPL-2.0-only
/* Which of the allocator's functions get a probe, and functions that the user names (--alloc-fn). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../preload/area.h"
#include "allocators.h"
#include "ifunc.h"
#include "stepped.h"
#include "strings.h"

static int take_rare(struct site_list *l, struct site_list *found, u32 tgid, char *why, size_t why_size)
{
	int before = l->n, err;

	stepped__drop_hot(found, tgid, why, why_size);
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

int sites__sampled(struct site_list *l, const char *library)
{
	static const char *const symbol = PRELOAD_SAMPLE;
	const struct use use = {.what = PROBE_SAMPLED, .args = {0, 1, 2}};
	struct function f = {.lib = "libredframe-alloc.so"};
	struct objects o = {0};
	bool stepped;
	int fd = open(library, O_RDONLY | O_CLOEXEC), err = fd < 0 ? -errno : objects__from_file(&o, library, fd);

	if (err)
		return err;
	f.obj = &o.v[0];
	err = object__open(&o, f.obj);
	if (!err)
		err = elf_file__find(&f.obj->elf, &symbol, 1, false, &f.sym) > 0 ? 0 : -ENOENT;
	if (!err)
		err = sites__add_function(l, &o, &f, &use, true, &stepped);
	objects__free(&o);
	return err;
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
	if (!err && !found.n) {
		why__add(why, why_size, "nothing that the game maps has a function %.200s", symbol);
		err = -ENOENT;
	}
	objects__free(&o);
	if (err < 0) {
		sites__free(&found);
		return err;
	}
	return take_rare(l, &found, pid, why, why_size);
}
