/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Reads JSON that our own programs wrote, for tests. Anything malformed is an error, never half a tree.
 */
#ifndef REDFRAME_TEST_JSON_H
#define REDFRAME_TEST_JSON_H

#include <stdbool.h>
#include <stddef.h>

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
	enum json_type type;
	const char *key;  /* within an object */
	const char *text; /* STRING; "" of others */
	double number;    /* NUMBER; BOOL: 0 or 1 */
	struct json *child, *next;
	size_t n; /* children */
};

/* Parses in place: text is changed, and must live as long as the tree. NULL: malformed, or out of memory. */
struct json *json__parse(char *text);
void json__free(struct json *j);

/* Of an absent value too: j may be NULL. */
const struct json *json__get(const struct json *j, const char *key);
const char *json__text(const struct json *j, const char *key); /* "" where it is no string */
double json__number(const struct json *j, const char *key);    /* 0 where it is no number */
#define json__each(j, e) for (const struct json *e = (j) ? (j)->child : NULL; e; e = e->next)

#endif
