// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "options.h"
#include "strings.h"

static const struct option_row *first(const struct verb *v)
{
	const struct option_row *r = v->rows && v->rows->name ? v->rows : v->more;

	return r && r->name ? r : NULL;
}

/* Its own rows, then those that it shares. */
static const struct option_row *next(const struct verb *v, const struct option_row *r)
{
	if (r[1].name)
		return r + 1;
	for (const struct option_row *k = v->rows; k && k->name; k++)
		if (k == r)
			return v->more;
	return NULL;
}

#define HELP_COLUMN 28

/* bytes by which UTF-8 is longer than what is seen of it */
static int beyond_ascii(const char *s)
{
	int n = 0;

	for (; *s; s++)
		n += ((u8)*s & 0xc0) == 0x80;
	return n;
}

void options__help(const struct verb *v)
{
	printf("usage: redframe %s %s\n\n%s\n", v->name, v->synopsis, v->about);
	if (v->rows && v->rows->name)
		printf("\noptions:\n");
	for (const struct option_row *r = first(v); r; r = next(v, r)) {
		char left[64], letter[8] = "    ";

		if (r->letter)
			snprintf(letter, sizeof(letter), "-%c, ", r->letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, r->name, r->value ? " " : "",
			r->value ? r->value : "");
		printf("  %-*s %s\n", HELP_COLUMN + beyond_ascii(left), left, r->help);
	}
	if (v->examples)
		printf("\nexamples:\n%s", v->examples);
}

static const struct option_row *find(const struct verb *v, const char *arg, size_t len)
{
	for (const struct option_row *r = first(v); r; r = next(v, r)) {
		if (arg[0] == '-' && arg[1] == '-' && strlen(r->name) == len - 2 && !strncmp(arg + 2, r->name, len - 2))
			return r;
		if (len == 2 && arg[0] == '-' && r->letter && arg[1] == r->letter)
			return r;
	}
	return NULL;
}

static int bad_value(const struct option_row *r, const char *value, const char *want)
{
	log_err("--%s: '%s' is not %s", r->name, value, want);
	return -EINVAL;
}

static int set_number(const struct option_row *r, void *to, const char *value)
{
	char *end;

	errno = 0;
	if (r->type == OPT_SECONDS || r->type == OPT_SECONDS_0) {
		double d = strtod(value, &end);

		if (errno || *end || end == value || !(r->type == OPT_SECONDS ? d > 0 : d >= 0) || d > 1e9)
			return bad_value(r, value,
				r->type == OPT_SECONDS ? "a number of seconds above 0" : "a number of seconds");
		*(double *)to = d;
		return 0;
	}
	if (r->type == OPT_PERCENT) {
		double d = strtod(value, &end);

		if (errno || *end || end == value || !(d >= 0) || d > 100)
			return bad_value(r, value, "a number from 0 to 100");
		*(double *)to = d;
		return 0;
	}
	if (r->type == OPT_BYTES)
		return parse__bytes(value, to) ? bad_value(r, value, "a size such as 64M or 1.5G") : 0;
	*(u64 *)to = strtoull(value, &end, 10);
	if (errno || *end || end == value || *value == '-')
		return bad_value(r, value, "a whole number");
	if (r->type == OPT_PID && (!*(u64 *)to || *(u64 *)to > INT32_MAX))
		return bad_value(r, value, "a process id");
	return 0;
}

static int set(const struct option_row *r, void *out, const char *value)
{
	void *to = (char *)out + r->offset;
	struct option_texts *texts = to;

	switch (r->type) {
	case OPT_FLAG:
		*(bool *)to = true;
		return 0;
	case OPT_TEXT:
		*(const char **)to = value;
		return 0;
	case OPT_TEXTS:
		if (texts->n == (int)ARRAY_SIZE(texts->v)) {
			log_err("--%s: given more than %zu times", r->name, ARRAY_SIZE(texts->v));
			return -EINVAL;
		}
		texts->v[texts->n++] = value;
		return 0;
	default:
		return set_number(r, to, value);
	}
}

/* One option at argv[i]; returns how many arguments it took, or -EINVAL. */
static int option(const struct verb *v, int argc, char **argv, int i, void *out)
{
	const char *arg = argv[i], *equals = arg[1] == '-' ? strchr(arg, '=') : NULL;
	const struct option_row *r = find(v, arg, equals ? (size_t)(equals - arg) : strlen(arg));
	int err;

	if (!r) {
		log_err("%s: no option %s; 'redframe %s --help' lists them", v->name, arg, v->name);
		return -EINVAL;
	}
	if (r->type == OPT_FLAG) {
		if (equals)
			return bad_value(r, equals + 1, "wanted: the option takes no value");
		return set(r, out, NULL) ?: 1;
	}
	if (!equals && i + 1 >= argc) {
		log_err("--%s needs a value: %s", r->name, r->value);
		return -EINVAL;
	}
	err = set(r, out, equals ? equals + 1 : argv[i + 1]);
	return err ? err : equals ? 1 : 2;
}

int options__parse(const struct verb *v, int argc, char **argv, void *out, int *n, int *command)
{
	int i = 0, taken;

	*n = 0;
	while (i < argc && strcmp(argv[i], "--")) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			options__help(v);
			return 1;
		}
		if (argv[i][0] != '-' || !argv[i][1]) {
			argv[(*n)++] = argv[i++];
			continue;
		}
		taken = option(v, argc, argv, i, out);
		if (taken < 0)
			return taken;
		i += taken;
	}
	*command = *n;
	for (i++; i < argc; i++)
		argv[(*n)++] = argv[i];
	argv[*n] = NULL; /* for exec: there is room, main's argv ends in one */
	return 0;
}
