/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What a thread did, in words: one phrase per cause.
 */
#ifndef REDFRAME_PHRASE_H
#define REDFRAME_PHRASE_H

#include "explain.h"
#include "strings.h"

enum form { ING, PAST }; /* "reading x", "read x" */

/* with_figures: with counts and bytes, which differ from hitch to hitch */
void phrase__say(struct str *s, const struct part *p, enum form f, bool with_figures);
void phrase__ns(struct str *s, u64 ns);
void phrase__bytes(struct str *s, u64 bytes);

#endif
