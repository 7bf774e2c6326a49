/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>

#include "lines.h"

struct exporter *lines__open(const struct exporter_ops *ops, int fd)
{
	struct lines *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->base = (struct exporter){.ops = ops, .fd = fd};
	l->out.fd = fd;
	return &l->base;
}

int lines__write(struct lines *l)
{
	int err;

	str__add_n(&l->line, "\n", 1);
	err = l->line.oom ? -ENOMEM : output__write(&l->out, l->line.s, l->line.len);
	str__clear(&l->line);
	return err;
}

int lines__end(struct exporter *e, const struct model *m, const struct report *r)
{
	return output__flush(&((struct lines *)e)->out);
}

void lines__close(struct exporter *e)
{
	str__free(&((struct lines *)e)->line);
	free(e);
}
