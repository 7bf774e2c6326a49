// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which malloc a game calls. A reference to "malloc" binds to the first definition in the loader's order: the program,
 * what is preloaded, then the libraries; so a preloaded or statically linked allocator that exports it replaces libc's
 * for everyone. One that is only in the program's .symtab (hidden) serves the program alone, and libraries go on
 * calling the next one: both are probed. Allocators called by names of their own (je_malloc, mi_malloc, tc_malloc)
 * serve beside libc's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "allocators.h"
#include "ifunc.h"
#include "strings.h"

struct row {
	const char *name;
	u8 fn; /* enum alloc_fn */
	bool frees;
	signed char args[PROBE_ARGS]; /* which argument is the size, the count or alignment, the old block */
};

#define NOTHROW "RKSt9nothrow_t"
#define ALIGN   "St11align_val_t"
static const struct row rows[] = {
	{"malloc", ALLOC_MALLOC, false, {0, -1, -1}},
	{"calloc", ALLOC_CALLOC, false, {1, 0, -1}},
	{"realloc", ALLOC_REALLOC, false, {1, -1, 0}},
	{"aligned_alloc", ALLOC_ALIGNED, false, {1, 0, -1}},
	{"memalign", ALLOC_ALIGNED, false, {1, 0, -1}},
	{"valloc", ALLOC_ALIGNED, false, {0, -1, -1}},
	{"posix_memalign", ALLOC_POSIX_MEMALIGN, false, {2, 1, -1}},
	{"free", ALLOC_FREE, true, {-1, -1, 0}},
	{"_Znwm", ALLOC_NEW, false, {0, -1, -1}},
	{"_Znam", ALLOC_NEW_ARRAY, false, {0, -1, -1}},
	{"_Znwm" NOTHROW, ALLOC_NEW, false, {0, -1, -1}},
	{"_Znam" NOTHROW, ALLOC_NEW_ARRAY, false, {0, -1, -1}},
	{"_Znwm" ALIGN, ALLOC_NEW, false, {0, 1, -1}},
	{"_Znam" ALIGN, ALLOC_NEW_ARRAY, false, {0, 1, -1}},
	{"_Znwm" ALIGN NOTHROW, ALLOC_NEW, false, {0, 1, -1}},
	{"_Znam" ALIGN NOTHROW, ALLOC_NEW_ARRAY, false, {0, 1, -1}},
	{"_ZdlPv", ALLOC_DELETE, true, {-1, -1, 0}},
	{"_ZdaPv", ALLOC_DELETE_ARRAY, true, {-1, -1, 0}},
	{"_ZdlPvm", ALLOC_DELETE, true, {-1, -1, 0}},
	{"_ZdaPvm", ALLOC_DELETE_ARRAY, true, {-1, -1, 0}},
	{"_ZdlPv" NOTHROW, ALLOC_DELETE, true, {-1, -1, 0}},
	{"_ZdaPv" NOTHROW, ALLOC_DELETE_ARRAY, true, {-1, -1, 0}},
	{"_ZdlPv" ALIGN, ALLOC_DELETE, true, {-1, -1, 0}},
	{"_ZdaPv" ALIGN, ALLOC_DELETE_ARRAY, true, {-1, -1, 0}},
	{"_ZdlPvm" ALIGN, ALLOC_DELETE, true, {-1, -1, 0}},
	{"_ZdaPvm" ALIGN, ALLOC_DELETE_ARRAY, true, {-1, -1, 0}},
	{"_ZdlPv" ALIGN NOTHROW, ALLOC_DELETE, true, {-1, -1, 0}},
	{"_ZdaPv" ALIGN NOTHROW, ALLOC_DELETE_ARRAY, true, {-1, -1, 0}},
	/* own names of allocators that are used beside malloc */
	{"je_malloc", ALLOC_MALLOC, false, {0, -1, -1}},
	{"je_calloc", ALLOC_CALLOC, false, {1, 0, -1}},
	{"je_realloc", ALLOC_REALLOC, false, {1, -1, 0}},
	{"je_aligned_alloc", ALLOC_ALIGNED, false, {1, 0, -1}},
	{"je_posix_memalign", ALLOC_POSIX_MEMALIGN, false, {2, 1, -1}},
	{"je_free", ALLOC_FREE, true, {-1, -1, 0}},
	{"mi_malloc", ALLOC_MALLOC, false, {0, -1, -1}},
	{"mi_calloc", ALLOC_CALLOC, false, {1, 0, -1}},
	{"mi_realloc", ALLOC_REALLOC, false, {1, -1, 0}},
	{"mi_malloc_aligned", ALLOC_ALIGNED, false, {0, 1, -1}},
	{"mi_free", ALLOC_FREE, true, {-1, -1, 0}},
	{"je_mallocx", ALLOC_MALLOC, false, {0, -1, -1}},
	{"je_rallocx", ALLOC_REALLOC, false, {1, -1, 0}},
	{"je_dallocx", ALLOC_FREE, true, {-1, -1, 0}},
	{"je_sdallocx", ALLOC_FREE, true, {-1, -1, 0}},
	/* jemalloc under a game in Rust */
	{"_rjem_malloc", ALLOC_MALLOC, false, {0, -1, -1}},
	{"_rjem_calloc", ALLOC_CALLOC, false, {1, 0, -1}},
	{"_rjem_realloc", ALLOC_REALLOC, false, {1, -1, 0}},
	{"_rjem_mallocx", ALLOC_MALLOC, false, {0, -1, -1}},
	{"_rjem_free", ALLOC_FREE, true, {-1, -1, 0}},
	{"_rjem_sdallocx", ALLOC_FREE, true, {-1, -1, 0}},
	{"mi_zalloc", ALLOC_MALLOC, false, {0, -1, -1}},
	{"mi_new", ALLOC_NEW, false, {0, -1, -1}},
	{"mi_free_size", ALLOC_FREE, true, {-1, -1, 0}},
	{"tc_new", ALLOC_NEW, false, {0, -1, -1}},
	{"tc_newarray", ALLOC_NEW_ARRAY, false, {0, -1, -1}},
	{"tc_delete", ALLOC_DELETE, true, {-1, -1, 0}},
	{"tc_deletearray", ALLOC_DELETE_ARRAY, true, {-1, -1, 0}},
	/* rpmalloc, TBB, dlmalloc */
	{"rpmalloc", ALLOC_MALLOC, false, {0, -1, -1}},
	{"rpcalloc", ALLOC_CALLOC, false, {1, 0, -1}},
	{"rprealloc", ALLOC_REALLOC, false, {1, -1, 0}},
	{"rpfree", ALLOC_FREE, true, {-1, -1, 0}},
	{"scalable_malloc", ALLOC_MALLOC, false, {0, -1, -1}},
	{"scalable_free", ALLOC_FREE, true, {-1, -1, 0}},
	{"dlmalloc", ALLOC_MALLOC, false, {0, -1, -1}},
	{"dlfree", ALLOC_FREE, true, {-1, -1, 0}},
	{"tc_malloc", ALLOC_MALLOC, false, {0, -1, -1}},
	{"tc_calloc", ALLOC_CALLOC, false, {1, 0, -1}},
	{"tc_realloc", ALLOC_REALLOC, false, {1, -1, 0}},
	{"tc_memalign", ALLOC_ALIGNED, false, {1, 0, -1}},
	{"tc_free", ALLOC_FREE, true, {-1, -1, 0}},
};
#define ROWS      ((int)ARRAY_SIZE(rows))
#define FIRST_OWN 28 /* rows from here on have an allocator's own name */
_Static_assert(ARRAY_SIZE(rows) == FIRST_OWN + 41, "FIRST_OWN is the row of je_malloc");

struct find {
	struct site_list *l;
	struct objects *o;
	bool with_free, allow_stepped;
	bool bound[ROWS]; /* an exported definition was met: later ones are shadowed */
	struct str stepped, ifunc;
	int added;
};

static int add_row(struct find *q, struct object *obj, int i, const struct elf_symbol *sym)
{
	struct use use = {.what = PROBE_ALLOC, .sub = rows[i].fn};
	char base[64];
	struct function f = {.obj = obj, .sym = *sym, .lib = base};
	bool stepped;
	int n;

	if (rows[i].frees && !q->with_free)
		return 0;
	if (ifunc__resolve(q->o, obj, rows[i].name, &f.sym)) {
		str__fmt(&q->ifunc, "%s%s", q->ifunc.len ? ", " : "", rows[i].name);
		return 0;
	}
	memcpy(use.args, rows[i].args, sizeof(use.args));
	utf8__sanitize(base, sizeof(base), obj->base, strlen(obj->base));
	n = sites__add_function(q->l, q->o, &f, &use, q->allow_stepped, &stepped);
	if (n == 0 && stepped && !q->allow_stepped)
		str__fmt(&q->stepped, "%s%s", q->stepped.len ? ", " : "", rows[i].name);
	return n;
}

static int search_object(struct find *q, struct object *obj, const char *const *names)
{
	struct elf_symbol found[ROWS];
	bool own_malloc;
	int n;

	if (object__open(q->o, obj))
		return 0;
	n = elf_file__find(&obj->elf, names, ROWS, obj->exe, found);
	own_malloc = n > 0 && found[0].name;
	for (int i = 0; n > 0 && i < ROWS; i++) {
		int added;

		if (!found[i].name || q->bound[i])
			continue;
		/* where malloc is the same allocator's, its own names are aliases or inner calls */
		if (i >= FIRST_OWN && own_malloc)
			continue;
		added = add_row(q, obj, i, &found[i]);
		if (added < 0)
			return added;
		q->added += added;
		q->bound[i] = found[i].dynamic || !q->o->linked;
	}
	return n < 0 ? n : 0;
}

int allocators__find(
	struct site_list *l, struct objects *o, bool with_free, bool allow_stepped, char *why, size_t why_size)
{
	struct find q = {.l = l, .o = o, .with_free = with_free, .allow_stepped = allow_stepped};
	const char *names[ROWS];
	int err = 0;

	for (int i = 0; i < ROWS; i++)
		names[i] = rows[i].name;
	for (int i = 0; i < o->n && !err; i++)
		if (!o->linked || o->v[i].order != OBJECT_NO_ORDER)
			err = search_object(&q, &o->v[i], names);
	if (q.stepped.len)
		why__add(why, why_size, "left out, as every call would be single-stepped: %s", q.stepped.s);
	if (q.ifunc.len)
		why__add(why, why_size, "left out, as they are chosen at run time (IFUNC) and bound by nobody yet: %s",
			q.ifunc.s);
	if (err)
		why__add(why, why_size, "%s", strerror(-err));
	else if (!q.added)
		why__add(why, why_size, "no allocator found");
	str__free(&q.stepped);
	str__free(&q.ifunc);
	return err ? err : q.added;
}
