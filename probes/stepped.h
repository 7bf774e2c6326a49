/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Where the kernel emulates no instruction of a function's entry, every call of it is single-stepped, which costs the
 * game 14 us: only what is called rarely gets such a probe by itself.
 */
#ifndef REDFRAME_STEPPED_H
#define REDFRAME_STEPPED_H

#include "sites.h"

#define STEPPED_CALLS_PER_SEC 1000 /* 1.4 % of one CPU */

bool stepped__any(const struct site_list *l);
/* Counts the calls of each stepped site for a moment, and takes out those that are called more often than that or
 * cannot be counted; `why` names them. */
void stepped__drop_hot(struct site_list *l, u32 tgid, char *why, size_t why_size);
/* Only says what the stepped sites from `first` on cost, by the calls of a moment: for what the user named. */
void stepped__tell_cost(struct site_list *l, int first, u32 tgid, char *why, size_t why_size);

#endif
