/* SPDX-License-Identifier: GPL-2.0-only
 *
 * From a frame's tree to what is said of it: parts with names, in order of excess.
 */
#ifndef REDFRAME_VERDICT_H
#define REDFRAME_VERDICT_H

#include "because.h"
#include "explain.h"

/* Memory of one verdict, given back all at once. */
struct arena {
	struct arena_chunk *chunks; /* the one in use first */
	size_t used;
};
void *arena__get(struct arena *a, size_t bytes);      /* zeroed, aligned to 8; NULL when out of memory */
char *arena__text(struct arena *a, const char *text); /* copy, made valid UTF-8 */
char *arena__fmt(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void arena__reset(struct arena *a);
void arena__free(struct arena *a);

/* Fills parts, n_parts, stretches, n_stretches and alloc_where of v from a tree whose excess is set.
 * Small things of one cause are folded into one row. 0 or -ENOMEM. */
int verdict__fill(struct verdict *v, struct arena *a, const struct tree *tree, const struct model *m);

#define CODE_ROWS 8u /* functions of one thread's code that have a row of their own */
/* verdict_code.c: appends at most CODE_ROWS + 1 rows, which sum to the CODE node. 0 or -ENOMEM. */
int verdict__code_rows(struct arena *a, const struct tree *tree, const struct model *m, const struct node *node,
	struct part *rows, u32 *n_rows);

#endif
