/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "maps.h"
#include "names.h"
#include "strings.h"
#include "verdict.h"
#include "where.h"

#define CALLS_MAX 1024 /* of a chain that are looked at */

/* ---- whose code it is ---- */

static bool begins(const char *path, const char *with)
{
	return !strncmp(path, with, strlen(with));
}

/* The distribution's libraries, and those of the runtimes that games are run in. */
static bool is_system(const struct mapping *map)
{
	static const char *const dirs[] = {"/usr/lib", "/lib", "/usr/local/lib", "[v", "/app/lib", "/nix/store"};
	const char *path = map && map->path ? map->path : "";

	if (begins(path__base(path), "libredframe-alloc.so"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (begins(path, dirs[i]))
			return strstr(path, ".so") || path[0] == '[';
	return strstr(path, "/pressure-vessel/") || strstr(path, "/steam-runtime/");
}

/* What every wait goes through: its function says no more than the system call does. */
static bool is_runtime(const struct mapping *map)
{
	static const char *const names[] = {
		"libc.so", "libc-2.", "libpthread", "ld-", "libstdc++", "libredframe-", "[v"};
	const char *name = map && map->path ? path__base(map->path) : "";

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (begins(name, names[i]))
			return true;
	return false;
}

/* ---- one function after the other ---- */

static const char *symbol_name(const struct model *m, u64 addr, u32 jit)
{
	const struct symbol *s = jit ? model__jit(m, jit) : model__symbol(m, addr);

	return s ? s->name : "";
}

bool where__each(const struct model *m, u32 chain, bool (*fn)(const struct where_step *s, void *arg), void *arg)
{
	const struct call *c = model__call(m, chain);

	for (u32 n = 0; c && n < CALLS_MAX; c = model__call(m, c->caller), n++) {
		struct where_step s = {.function = "",
			.file = "",
			.addr = c->addr,
			.map = model__mapping(m, c->addr),
			.kernel = c->flags & CALL_KERNEL};
		const struct source *src;
		u32 levels = model__sources(m, c->addr, &src);

		for (u32 i = 0; i < levels || !i; i++) {
			if (levels) {
				s.function = src[i].function;
				s.file = src[i].file;
				s.line = src[i].line;
			}
			/* the symbol is that of the function around all that is inlined */
			if (!*s.function && i + 1 >= levels)
				s.function = symbol_name(m, c->addr, c->jit);
			if (fn(&s, arg))
				return true;
		}
	}
	return false;
}

void where__name(const struct where_step *s, char *buf, size_t size)
{
	const char *path = s->map && s->map->path ? s->map->path : "";
	unsigned long long offset = s->map ? s->addr - s->map->start + s->map->offset : s->addr;
	char raw[512];

	if (*s->function)
		snprintf(raw, sizeof(raw), "%s", s->function);
	else if (*path)
		snprintf(raw, sizeof(raw), "%.400s+0x%llx", path__base(path), offset);
	else
		snprintf(raw, sizeof(raw), "0x%llx", offset);
	utf8__sanitize(buf, size, raw, strlen(raw));
}

/* ---- for a sentence ---- */

enum rank { RANK_NONE, RANK_RUNTIME, RANK_SYSTEM, RANK_GAME, RANK_GAME_NAMED };

struct pick {
	struct where_step best;
	enum rank rank;
};

static enum rank rank_of(const struct where_step *s)
{
	if (!is_system(s->map))
		return *s->function ? RANK_GAME_NAMED : RANK_GAME;
	if (!*s->function)
		return RANK_NONE;
	return is_runtime(s->map) ? RANK_RUNTIME : RANK_SYSTEM;
}

static bool pick(const struct where_step *s, void *arg)
{
	struct pick *p = arg;
	enum rank rank = rank_of(s);

	if (rank > p->rank) {
		p->best = *s;
		p->rank = rank;
	}
	return rank == RANK_GAME_NAMED;
}

bool where__function(const struct model *m, u32 chain, char *buf, size_t size)
{
	struct pick p = {};

	where__each(m, chain, pick, &p);
	if (p.rank <= RANK_RUNTIME)
		return false;
	where__name(&p.best, buf, size);
	return true;
}

bool where__game(const struct model *m, u32 chain, char *buf, size_t size)
{
	struct pick p = {};
	char name[256], file[128];

	where__each(m, chain, pick, &p);
	if (p.rank <= RANK_RUNTIME)
		return false;
	where__name(&p.best, name, sizeof(name));
	utf8__sanitize(file, sizeof(file), path__base(p.best.file), strlen(path__base(p.best.file)));
	if (*file && p.best.line)
		snprintf(buf, size, "%s (%s:%u)", name, file, p.best.line);
	else
		snprintf(buf, size, "%s", name);
	return true;
}

/* ---- for the JSON ---- */

struct fill {
	struct arena *a;
	struct place *places;
	u32 n, n_system;
	bool own; /* seen */
	int err;
};

static bool fill(const struct where_step *s, void *arg)
{
	struct fill *f = arg;
	struct place *p = &f->places[f->n];
	char name[256];

	where__name(s, name, sizeof(name));
	p->func = arena__text(f->a, name);
	p->file = *s->file ? arena__text(f->a, s->file) : NULL;
	p->object = s->map && s->map->path && *s->map->path ? arena__text(f->a, path__base(s->map->path)) : NULL;
	p->line = s->line;
	f->own |= !is_system(s->map);
	f->n_system += !f->own;
	if (!p->func || (*s->file && !p->file))
		f->err = -ENOMEM;
	return ++f->n == WHERE_PLACES || f->err;
}

static bool is_truncated(const struct model *m, u32 chain)
{
	const struct call *c = model__call(m, chain);

	for (u32 n = 0; c && c->caller && n < CALLS_MAX; n++)
		c = model__call(m, c->caller);
	return c && (c->caller || c->flags & CALL_TRUNCATED);
}

int where__fill(struct part *p, struct arena *a, const struct model *m, u32 chain)
{
	struct fill f = {.a = a};
	char text[512];

	if (!model__call(m, chain))
		return 0;
	if (where__game(m, chain, text, sizeof(text))) {
		p->where = arena__text(a, text);
		f.err = p->where ? 0 : -ENOMEM;
	}
	f.places = arena__get(a, WHERE_PLACES * sizeof(*f.places));
	if (!f.places)
		return -ENOMEM;
	p->where_cut = where__each(m, chain, fill, &f) || is_truncated(m, chain);
	p->places = f.places;
	p->n_places = f.n;
	p->n_system = f.own ? f.n_system : 0;
	return f.err;
}

/* ---- for lock kinds ---- */

struct functions {
	const struct model *m;
	bool (*fn)(const char *function, void *arg);
	void *arg;
	bool found;
};

static bool function(const struct where_step *s, void *arg)
{
	struct functions *f = arg;
	const char *name = symbol_name(f->m, s->addr, 0);

	if (!is_system(s->map))
		return true;
	f->found = *name && f->fn(name, f->arg);
	return f->found;
}

bool where__each_function(const struct model *m, u32 chain, bool (*fn)(const char *function, void *arg), void *arg)
{
	struct functions f = {.m = m, .fn = fn, .arg = arg};

	where__each(m, chain, function, &f);
	return f.found;
}
