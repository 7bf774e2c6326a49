// SPDX-License-Identifier: GPL-2.0-only
/* A compilation unit's tree is walked once for all addresses in it: asking libdw for each address's scopes anew would
 * walk it as often as there are addresses. */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apart.h"
#include "demangle.h"
#include "recording.h"
#include "sources.h"
#include "symbols.h"
#include "units.h"

#define DEPTH_MAX  64         /* of nested scopes */
#define LEVELS_MAX 32         /* of inlining that are told */
#define DIES_MAX   (1u << 24) /* looked at in a unit: damaged data may lead in circles */

/* A function, and the one that it is inlined into. */
struct scope {
	Dwarf_Die die;
	u32 outer; /* index + 1; 0: none */
};

struct unit {
	Dwarf_Die die;
	u64 bias;
	const u64 *addrs; /* those of the module */
	u32 *scope_of;    /* per address: index + 1 of the innermost; 0: none */
	struct scope *scopes;
	u32 n_scopes, cap_scopes;
	u32 dies;
	int error;
};

/* ---- which functions an address lies in ---- */

static u32 add_scope(struct unit *u, const Dwarf_Die *die, u32 outer)
{
	if (u->n_scopes == u->cap_scopes) {
		u32 cap = u->cap_scopes ? 2 * u->cap_scopes : 256;
		struct scope *bigger = realloc(u->scopes, cap * sizeof(*bigger));

		if (!bigger) {
			u->error = -ENOMEM;
			return outer;
		}
		u->scopes = bigger;
		u->cap_scopes = cap;
	}
	u->scopes[u->n_scopes++] = (struct scope){.die = *die, .outer = outer};
	return u->n_scopes;
}

static void walk_children(struct unit *u, Dwarf_Die *parent, u32 from, u32 to, u32 scope, int depth);

/* A scope with code: into it with those addresses that it has. */
static void walk_code(struct unit *u, Dwarf_Die *die, bool function, u32 from, u32 to, u32 scope, int depth)
{
	Dwarf_Addr base, start, end;
	u32 inner = 0, first, last;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		first = addrs__first(u->addrs, from, to, start + u->bias);
		last = addrs__first(u->addrs, first, to, end + u->bias);
		if (first >= last)
			continue;
		if (function && !inner)
			inner = add_scope(u, die, scope);
		for (u32 i = first; function && i < last; i++)
			u->scope_of[i] = inner;
		walk_children(u, die, first, last, function ? inner : scope, depth + 1);
	}
}

static void walk_die(struct unit *u, Dwarf_Die *die, u32 from, u32 to, u32 scope, int depth)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram: /* an inner one is no part of the function around it */
		walk_code(u, die, true, from, to, 0, depth);
		break;
	case DW_TAG_inlined_subroutine:
		walk_code(u, die, true, from, to, scope, depth);
		break;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
		walk_code(u, die, false, from, to, scope, depth);
		break;
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
		walk_children(u, die, from, to, 0, depth + 1);
		break;
	}
}

static void walk_children(struct unit *u, Dwarf_Die *parent, u32 from, u32 to, u32 scope, int depth)
{
	Dwarf_Die die;
	int got = depth < DEPTH_MAX ? dwarf_child(parent, &die) : 1;

	for (; !got && !u->error && u->dies < DIES_MAX; got = dwarf_siblingof(&die, &die)) {
		u->dies++;
		walk_die(u, &die, from, to, scope, depth);
	}
}

/* ---- what to say of them ---- */

static const char *attr_text(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;

	return dwarf_formstring(dwarf_attr_integrate(die, name, &attr));
}

static bool is_cxx(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
		return true;
	}
	return false;
}

static char *function_name(struct unit *u, struct scope *s)
{
	Dwarf_Die *die = &s->die;
	const char *name = attr_text(die, DW_AT_linkage_name);
	char *plain = name ? demangle(name) : NULL;

	if (plain)
		return plain;
	/* a static function in a namespace: its symbol says in which, its name does not */
	if (!name && !s->outer && is_cxx(&u->die))
		return strdup("");
	name = attr_text(die, DW_AT_name);
	return strdup(name ?: "");
}

static u32 attr_number(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	/* not integrated: the call is this copy's own */
	return dwarf_formudata(dwarf_attr(die, name, &attr), &value) ? 0 : (u32)value;
}

static const char *call_file(struct unit *u, Dwarf_Die *die)
{
	Dwarf_Files *files;
	size_t n;
	u32 i = attr_number(die, DW_AT_call_file);

	if (dwarf_getsrcfiles(&u->die, &files, &n) || i >= n)
		return NULL;
	return dwarf_filesrc(files, i, NULL, NULL);
}

static int write_source(
	struct recording_writer *w, u64 ts, u64 addr, u32 level, const char *function, const char *file, u32 line)
{
	struct ev_source e = {
		.hdr = {.ts = ts, .kind = EV_SOURCE}, .addr = addr, .level = level, .line = file ? line : 0};
	char text[1024];
	size_t n = min(strlen(function), sizeof(text) / 2 - 1), len = file ? strlen(file) : 0;
	size_t kept = min(len, sizeof(text) / 2 - 1);

	memcpy(text, function, n);
	text[n++] = 0;
	if (kept) /* of a path that is too long the end */
		memcpy(text + n, file + (len - kept), kept);
	return recording__append_text(w, &e, sizeof(e), text, n + kept);
}

static int write_address(struct unit *u, struct recording_writer *w, u64 ts, u32 i, u32 *lines)
{
	Dwarf_Line *at = dwarf_getsrc_die(&u->die, u->addrs[i] - u->bias);
	const char *file = at ? dwarf_linesrc(at, NULL, NULL) : NULL;
	u32 scope = u->scope_of[i];
	int line = 0, err = 0;

	if (at)
		dwarf_lineno(at, &line);
	if (!scope && !file)
		return 0;
	*lines += file != NULL;
	if (!scope)
		return write_source(w, ts, u->addrs[i], 0, "", file, (u32)line);
	for (u32 level = 0; scope && level < LEVELS_MAX && !err; level++) {
		struct scope *s = &u->scopes[scope - 1];
		char *name = function_name(u, s);

		if (!name)
			return -ENOMEM;
		err = write_source(w, ts, u->addrs[i], level, name, file, (u32)line);
		free(name);
		file = call_file(u, &s->die);
		line = (int)attr_number(&s->die, DW_AT_call_line);
		scope = s->outer;
	}
	return err;
}

/* ---- units ---- */

/* From the first to the last address in the unit; false where there is none. */
static bool unit_hull(struct unit *u, u32 from, u32 to, u32 *first, u32 *last)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	*first = to;
	*last = from;
	while ((at = dwarf_ranges(&u->die, at, &base, &start, &end)) > 0) {
		u32 a = addrs__first(u->addrs, from, to, start + u->bias);
		u32 b = addrs__first(u->addrs, a, to, end + u->bias);

		if (a < b) {
			*first = min(*first, a);
			*last = max(*last, b);
		}
	}
	return *first < *last;
}

struct module {
	struct unit u;
	struct recording_writer *w;
	u64 ts;
	u32 from, to; /* its addresses */
	u32 *lines;
};

/* Walked once, though a unit may have thousands of ranges. */
static int write_unit(Dwarf_Die *die, u64 bias, void *arg)
{
	struct module *m = arg;
	struct unit *u = &m->u;
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	u32 first, last;
	int err;

	u->die = *die;
	u->bias = bias;
	u->n_scopes = u->dies = 0;
	if (!unit_hull(u, m->from, m->to, &first, &last))
		return 0;
	memset(u->scope_of + first, 0, (last - first) * sizeof(*u->scope_of));
	walk_children(u, &u->die, first, last, 0, 0);
	err = u->error;
	while (!err && (at = dwarf_ranges(&u->die, at, &base, &start, &end)) > 0) {
		u32 i = addrs__first(u->addrs, first, last, start + u->bias);

		for (; i < last && u->addrs[i] - u->bias < end && !err; i++)
			err = write_address(u, m->w, m->ts, i, m->lines);
	}
	return err ? err : 1;
}

int sources__write(struct recording_writer *w, Dwfl *dwfl, u64 ts, const u64 *addrs, u32 n, u32 *lines)
{
	struct module m = {
		.u = {.addrs = addrs, .scope_of = calloc(n ?: 1, sizeof(u32))}, .w = w, .ts = ts, .lines = lines};
	int err = m.u.scope_of ? 0 : -ENOMEM;

	for (; m.from < n && !err; m.from = m.to) {
		Dwfl_Module *mod = dwfl_addrmodule(dwfl, addrs[m.from]);
		Dwarf_Addr end = 0;

		m.to = m.from + 1;
		if (!mod || !dwfl_module_info(mod, NULL, NULL, &end, NULL, NULL, NULL, NULL))
			continue;
		apart__at(addrs[m.from]);
		m.to = max(addrs__first(addrs, m.to, n, end), m.to);
		err = units__each(mod, write_unit, &m);
	}
	free(m.u.scopes);
	free(m.u.scope_of);
	return err;
}
