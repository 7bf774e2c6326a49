/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The names in a part: what, who, where, and a detail in words.
 */
#ifndef REDFRAME_DESCRIBE_H
#define REDFRAME_DESCRIBE_H

#include "verdict.h"

extern const char thread_ended[]; /* a detail of UNEXPLAINED */

/* 0 or -ENOMEM */
int describe__node(
	struct part *p, struct arena *a, const struct tree *tree, const struct model *m, const struct node *n);

#endif
