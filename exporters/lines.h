/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What exporters share that write line after line.
 */
#ifndef REDFRAME_LINES_H
#define REDFRAME_LINES_H

#include "exporter.h"
#include "output.h"
#include "strings.h"

struct lines {
	struct exporter base;
	struct output out;
	struct str line; /* the one that is being made */
};

struct exporter *lines__open(const struct exporter_ops *ops, int fd);
/* What the line holds and a line feed; then it is empty. 0 or -errno. */
int lines__write(struct lines *l);
/* for exporter_ops */
int lines__end(struct exporter *e, const struct model *m, const struct report *r);
void lines__close(struct exporter *e);

#endif
