/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The names in a part: what, who, where, and a detail in words.
 */
#ifndef REDFRAME_DESCRIBE_H
#define REDFRAME_DESCRIBE_H

#include "verdict.h"

extern const char thread_ended[]; /* a detail of UNEXPLAINED */

/* Of code: the function (or file) that `code` is the begin of, 0 for several; on how many of the samples that rests */
int describe__code(struct part *p, struct arena *a, const struct model *m, u64 code, u32 hits, u32 samples);
/* Of everything else. 0 or -ENOMEM */
int describe__node(
	struct part *p, struct arena *a, const struct tree *tree, const struct model *m, const struct node *n);

#endif
