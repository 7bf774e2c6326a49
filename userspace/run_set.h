/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Runs that are taken together, as the user names them: an id or the beginning of one, a recording, @last, @prev, or
 * KEY=VALUE[,KEY=VALUE] of their metadata.
 */
#ifndef REDFRAME_RUN_SET_H
#define REDFRAME_RUN_SET_H

#include "options.h"
#include "store.h"
#include "store_db.h"
#include "strings.h"

#define RUN_SET_MAX 64

/* What every verb that asks a store takes: first in its own options, with run_option_rows as its `more`. */
struct run_options {
	const char *store; /* NULL: STORE_DEFAULT */
	bool json;
};
extern const struct option_row run_option_rows[];

struct run_set {
	char ids[RUN_SET_MAX][RUN_ID_SIZE]; /* the earliest first */
	int n;
};

/* Where the selectors' runs are (n 0: all runs). Recordings alone need no store (uri NULL), and make the one that is
 * named where it is missing; else it must be there. 0 or -errno after a message. */
int run_set__open(const char *uri, const char *const *selectors, int n, struct store **s);
/* enum exit_status, after a message that says what is wrong. `than`: what @prev comes before; NULL: the last run. */
int run_set__find(struct store *s, const char *selector, const struct run_set *than, struct run_set *out);
/* whether a selector names a recording, which is imported when it is found */
bool run_set__is_file(const char *selector);
/* "($3, $4)" for `IN`, with the values in args[2…]; the number of values so far moves on */
void run_set__in(const struct run_set *set, struct str *sql, struct value *args, int *n);
/* What keeps the runs of both from being compared, in words; empty: nothing. 0 or -errno. */
int run_set__difference(struct store *s, const struct run_set *a, const struct run_set *b, struct str *why);
/* "build 4711", "commit abc…", or the id's beginning: of the set's first run */
int run_set__name(struct store *s, const struct run_set *set, char *buf, size_t size);

#endif
