/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdlib.h>
#include <string.h>

#include "json.h"

#define MAX_DEPTH 64

static const char blanks[] = " \t\r\n";

static struct json *value(char **at, int depth);

static char skip(char **at)
{
	*at += strspn(*at, blanks);
	return **at;
}

static int hex4(const char *s)
{
	int v = 0;

	for (int i = 0; i < 4; i++) {
		const char *digits = "0123456789abcdef", *d = s[i] ? strchr(digits, s[i] | 0x20) : NULL;

		if (!d)
			return -1;
		v = v * 16 + (int)(d - digits);
	}
	return v;
}

/* \uXXXX below 0x80 is all that is written here: control characters */
static char *unescape(char **in, char *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *e = **in ? strchr(from, **in) : NULL;
	int c;

	if (e) {
		*out++ = to[e - from];
		(*in)++;
		return out;
	}
	c = **in == 'u' ? hex4(*in + 1) : -1;
	if (c <= 0 || c >= 0x80)
		return NULL;
	*out++ = (char)c;
	*in += 5;
	return out;
}

static char *string(char **at)
{
	char *in = *at + 1, *out = in, *begin = in;

	while (*in != '"') {
		if (!*in)
			return NULL;
		if (*in != '\\') {
			*out++ = *in++;
			continue;
		}
		in++;
		out = unescape(&in, out);
		if (!out)
			return NULL;
	}
	*at = in + 1;
	*out = '\0';
	return begin;
}

static bool member(char **at, const char **key)
{
	if (skip(at) != '"')
		return false;
	*key = string(at);
	if (!*key || skip(at) != ':')
		return false;
	(*at)++;
	return true;
}

/* '[' or '{' is at *at */
static bool children(struct json *j, char **at, int depth)
{
	char close = **at == '[' ? ']' : '}';
	struct json **last = &j->child;

	j->type = close == ']' ? JSON_ARRAY : JSON_OBJECT;
	(*at)++;
	while (skip(at) != close) {
		const char *key = NULL;

		if (j->n && *(*at)++ != ',')
			return false;
		if (close == '}' && !member(at, &key))
			return false;
		*last = value(at, depth + 1);
		if (!*last)
			return false;
		(*last)->key = key;
		last = &(*last)->next;
		j->n++;
	}
	(*at)++;
	return true;
}

static bool word(struct json *j, char **at)
{
	static const struct {
		const char *text;
		enum json_type type;
		double number;
	} words[] = {{"null", JSON_NULL, 0}, {"true", JSON_BOOL, 1}, {"false", JSON_BOOL, 0}};
	char *end;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t n = strlen(words[i].text);

		if (strncmp(*at, words[i].text, n))
			continue;
		j->type = words[i].type;
		j->number = words[i].number;
		*at += n;
		return true;
	}
	j->type = JSON_NUMBER;
	j->number = strtod(*at, &end);
	if (end == *at)
		return false;
	*at = end;
	return true;
}

static struct json *value(char **at, int depth)
{
	struct json *j = calloc(1, sizeof(*j));
	char c = skip(at);
	bool ok;

	if (!j)
		return NULL;
	j->text = "";
	if (c == '"') {
		j->type = JSON_STRING;
		j->text = string(at);
		ok = j->text;
	} else if (c == '[' || c == '{') {
		ok = depth < MAX_DEPTH && children(j, at, depth);
	} else {
		ok = word(j, at);
	}
	if (ok)
		return j;
	json__free(j);
	return NULL;
}

struct json *json__parse(char *text)
{
	struct json *j = value(&text, 0);

	if (j && skip(&text)) {
		json__free(j);
		return NULL;
	}
	return j;
}

void json__free(struct json *j)
{
	while (j) {
		struct json *next = j->next;

		json__free(j->child); /* at most MAX_DEPTH down */
		free(j);
		j = next;
	}
}

const struct json *json__get(const struct json *j, const char *key)
{
	json__each(j, e) if (e->key && !strcmp(e->key, key)) return e;
	return NULL;
}

const char *json__text(const struct json *j, const char *key)
{
	const struct json *e = json__get(j, key);

	return e && e->type == JSON_STRING ? e->text : "";
}

double json__number(const struct json *j, const char *key)
{
	const struct json *e = json__get(j, key);

	return e && (e->type == JSON_NUMBER || e->type == JSON_BOOL) ? e->number : 0;
}
