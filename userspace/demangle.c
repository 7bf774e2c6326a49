// SPDX-License-Identifier: GPL-2.0-only
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"

/* A name of 240 bytes may say of itself twenty times over that a part of it comes twice, and so demangle to 400 MB:
 * what is longer is cut off. */
#define LONGEST 4096

struct plain {
	char *text; /* NULL: out of memory */
	size_t n;
	jmp_buf full;
};

static void take(const char *s, size_t n, void *arg)
{
	struct plain *p = arg;

	if (n > LONGEST - p->n)
		n = LONGEST - p->n;
	memcpy(p->text + p->n, s, n);
	p->n += n;
	if (p->n == LONGEST)
		longjmp(p->full, 1);
}

char *demangle(const char *name)
{
	struct plain p = {.text = malloc(LONGEST + 1)};
	char *shorter;

	if (!p.text)
		return NULL;
	if (!setjmp(p.full) && !rust_demangle_callback(name, 0, take, &p)) {
		p.n = 0;
		if (!cplus_demangle_v3_callback(name, 0, take, &p))
			p.n = 0;
	}
	p.text[p.n] = 0;
	shorter = p.n ? realloc(p.text, p.n + 1) : NULL;
	if (!shorter)
		free(p.text);
	return shorter;
}
