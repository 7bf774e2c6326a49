// SPDX-License-Identifier: GPL-2.0-only
/* --frame uprobe:…: a function or a place that the user names. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "frame_source.h"
#include "ifunc.h"
#include "strings.h"

struct near {
	const char *want;
	char *out;
	size_t size;
	int n;
};

static bool near_symbol(const struct elf_symbol *s, void *arg)
{
	struct near *q = arg;
	char text[100];

	if (!strcasestr(s->name, q->want))
		return true;
	term__escape(text, sizeof(text), s->name, strnlen(s->name, 90));
	snprintf(q->out + strlen(q->out), q->size - strlen(q->out), "%s%s", q->n++ ? ", " : "", text);
	return q->n < 5;
}

static int no_such_symbol(struct object *obj, const char *symbol, char *why, size_t why_size)
{
	char list[600] = "", name[128], base[128];
	struct near q = {.want = symbol, .out = list, .size = sizeof(list)};

	/* half of a mistyped name finds its neighbours */
	char half[64];

	snprintf(half, sizeof(half), "%.*s", (int)min(strlen(symbol), sizeof(half) - 1), symbol);
	for (size_t n = strlen(half); q.n == 0 && n >= 4; n = n * 3 / 4) {
		half[n] = 0;
		q.want = half;
		elf_file__each_symbol(&obj->elf, ELF_DYNSYM, near_symbol, &q);
		if (q.n == 0)
			elf_file__each_symbol(&obj->elf, ELF_SYMTAB, near_symbol, &q);
	}
	term__escape(name, sizeof(name), symbol, strlen(symbol));
	term__escape(base, sizeof(base), obj->base, strlen(obj->base));
	why__add(why, why_size, "%s has no function %s%s%s", base, name, q.n ? "; it has " : "", list);
	return -ENOENT;
}

static int no_such_object(const struct objects *o, const char *lib, char *why, size_t why_size)
{
	char list[600] = "", name[200], stem[32];
	const char *base = path__base(lib);
	int n = 0;

	snprintf(stem, sizeof(stem), "%.*s", (int)strcspn(base, ".-"), base);
	for (int i = 0; i < o->n && n < 8; i++) {
		char text[128];

		if (*stem && !strcasestr(o->v[i].base, stem) && !o->v[i].exe)
			continue;
		term__escape(text, sizeof(text), o->v[i].base, strlen(o->v[i].base));
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%.60s", n++ ? ", " : "", text);
	}
	term__escape(name, sizeof(name), lib, strlen(lib));
	why__add(why, why_size, "the game maps no %s%s%s", name, n ? "; it maps " : "", list);
	return -ENOENT;
}

/* "+0x1f4" at the end; the text before it is cut off */
static bool cut_offset(char *text, u64 *offset)
{
	char *plus = strrchr(text, '+'), *end;

	if (!plus || plus[1] != '0' || (plus[2] | 0x20) != 'x' || !plus[3])
		return false;
	errno = 0;
	*offset = strtoull(plus + 1, &end, 16);
	if (*end || errno)
		return false;
	*plus = 0;
	return true;
}

static void within_an_instruction(const char *where, u64 offset, char *why, size_t why_size)
{
	why__add(why, why_size,
		"0x%" PRIx64
		" of %.100s is in the middle of an instruction: a probe there would change what the game does",
		offset, where);
}

static int by_offset(struct site_list *l, struct objects *o, const char *lib, u64 offset, char *why, size_t why_size)
{
	for (int i = 0; i < o->n; i++) {
		int err;

		if (!object__is(&o->v[i], lib))
			continue;
		err = sites__add_offset(l, o, &o->v[i], offset, PROBE_FRAME, FRAME_MARK);
		if (err == -EINVAL)
			why__add(why, why_size, "the file offset 0x%" PRIx64 " is not in the code of %.100s", offset,
				o->v[i].base);
		else if (err == -EILSEQ)
			within_an_instruction(o->v[i].base, offset, why, why_size);
		else if (err < 0)
			why__add(why, why_size, "%.100s: %s", o->v[i].base, strerror(-err));
		return err;
	}
	return no_such_object(o, lib, why, why_size);
}

static int by_symbol(struct site_list *l, struct objects *o, const char *lib, const char *symbol, const u64 *into,
	char *why, size_t why_size)
{
	struct use use = present__use(symbol);
	struct object *last = NULL;
	bool stepped;
	int err;

	for (int i = 0; i < o->n; i++) {
		struct function f = {.obj = &o->v[i], .lib = o->v[i].base};

		if (!object__is(&o->v[i], lib) || object__open(o, &o->v[i]))
			continue;
		last = &o->v[i];
		err = elf_file__find(&last->elf, &symbol, 1, true, &f.sym);
		if (err < 0)
			return err;
		if (!err)
			continue;
		if (ifunc__resolve(o, f.obj, symbol, &f.sym)) {
			why__add(why, why_size,
				"%s is chosen at run time (IFUNC), and nothing in the game has it bound yet: name the "
				"implementation itself",
				symbol);
			return -ENOTSUP;
		}
		if (!into)
			return sites__add_function(l, o, &f, &use, true, &stepped);
		err = sites__add_inside(l, o, &f, *into, &use);
		if (err == -EINVAL)
			why__add(why, why_size, "0x%" PRIx64 " is not inside %s", *into, symbol);
		if (err == -EILSEQ)
			within_an_instruction(symbol, *into, why, why_size);
		return err;
	}
	return last ? no_such_symbol(last, symbol, why, why_size) : no_such_object(o, lib, why, why_size);
}

int uprobe_spec__parse(struct uprobe_spec *u, const char *spec)
{
	char *colon;

	*u = (struct uprobe_spec){0};
	if ((size_t)snprintf(u->object, sizeof(u->object), "%s", spec) >= sizeof(u->object))
		return -ENAMETOOLONG;
	u->has_offset = cut_offset(u->object, &u->offset);
	colon = strrchr(u->object, ':');
	/* a colon may be part of a path */
	if (colon && !strchr(colon, '/') && colon > u->object && colon[1]) {
		*colon = 0;
		u->symbol = colon + 1;
		return 0;
	}
	return u->has_offset && u->object[0] ? 0 : -EINVAL;
}

int frame_source__uprobe(struct site_list *l, struct objects *o, const char *spec, char *why, size_t why_size)
{
	struct uprobe_spec u;
	int err = uprobe_spec__parse(&u, spec);

	if (err)
		return err;
	if (u.symbol)
		return by_symbol(l, o, u.object, u.symbol, u.has_offset ? &u.offset : NULL, why, why_size);
	return by_offset(l, o, u.object, u.offset, why, why_size);
}
