/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A verdict in one sentence, for a game programmer.
 */
#ifndef REDFRAME_SENTENCE_H
#define REDFRAME_SENTENCE_H

#include "explain.h"
#include "strings.h"

/* Appends the sentence for a verdict whose parts are filled. */
void sentence__write(struct str *s, const struct verdict *v);
/* Appends what happened without figures: the same for hitches of the same kind. */
void sentence__pattern(struct str *s, const struct part *p);
/* What is told first: of code, which counts as one, the function with most. NULL: there is nothing. */
const struct part *sentence__lead(const struct verdict *v, s64 *excess_ns);
/* The because that accounts for a part, followed to its end: the part itself where it has none. */
const struct part *sentence__root(const struct part *p);
/* 64-bit identity of cause, thing and thread along the chain: equal for hitches of the same kind */
u64 sentence__fingerprint(const struct part *p);

#endif
