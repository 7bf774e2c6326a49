/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Command lines: a verb's options are a table, one row each, which also makes its help.
 */
#ifndef REDFRAME_OPTIONS_H
#define REDFRAME_OPTIONS_H

#include "common.h"

enum option_type {
	OPT_FLAG,      /* bool */
	OPT_TEXT,      /* const char * into argv */
	OPT_TEXTS,     /* struct option_texts: may come again */
	OPT_UINT,      /* u64 */
	OPT_PID,       /* u64 from 1 to 2^31 - 1 */
	OPT_SECONDS,   /* double > 0 */
	OPT_SECONDS_0, /* double >= 0 */
	OPT_BYTES,     /* u64: 64M, 1.5G */
	OPT_PERCENT,   /* double from 0 to 100 */
};

struct option_texts {
	const char *v[64];
	int n;
};

struct option_row {
	const char *name; /* "budget": --budget; NULL ends the table */
	char letter;      /* 0: none */
	enum option_type type;
	size_t offset;     /* into the verb's options */
	const char *value; /* "MS", for the help; NULL for flags */
	const char *help;
};

struct verb {
	const char *name;
	const char *synopsis; /* what follows the name */
	const char *about;    /* one sentence */
	const struct option_row *rows;
	const char *examples;          /* lines that run */
	const struct option_row *more; /* rows that it shares with another verb; NULL */
};

/* Fills *out and leaves positional arguments in argv[0 … *n - 1]; what follows "--" counts as positional, and *command
 * is its index (or *n). 0, 1 when help was asked for and printed, or -EINVAL with a message that names the option. */
int options__parse(const struct verb *v, int argc, char **argv, void *out, int *n, int *command);
void options__help(const struct verb *v);

#endif
