/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "thresholds.h"
#include "log.h"
#include "strings.h"

enum limit_unit { LIMIT_NS, LIMIT_BYTES, LIMIT_COUNT };

const char *const limit_names[LIMIT_KINDS] = {
#define X(NAME, name, unit, word, about) [LIMIT_##NAME] = #name,
	LIMITS(X)
#undef X
};

static const enum limit_unit units[LIMIT_KINDS] = {
#define X(NAME, name, unit, word, about) [LIMIT_##NAME] = LIMIT_##unit,
	LIMITS(X)
#undef X
};

static int kind_of(const char *word, size_t len)
{
	for (int i = 0; i < LIMIT_KINDS; i++)
		if (strlen(limit_names[i]) == len && !strncmp(limit_names[i], word, len))
			return i;
	return -1;
}

static int amount_of(enum limit_kind kind, const char *text, u64 *out)
{
	char *end;
	double v;

	if (units[kind] == LIMIT_BYTES)
		return parse__bytes(text, out) ?: *out ? 0 : -EINVAL;
	v = strtod(text, &end);
	if (end == text || !(v > 0) || v > 1e12 || (*end && (units[kind] != LIMIT_NS || strcmp(end, "ms"))))
		return -EINVAL;
	*out = units[kind] == LIMIT_NS ? (u64)(v * NSEC_PER_MSEC) : (u64)v;
	return *out ? 0 : -EINVAL;
}

static int parse_one(const char *option, const char *word, size_t len, struct amounts *out)
{
	const char *equals = memchr(word, '=', len);
	int kind = equals ? kind_of(word, (size_t)(equals - word)) : -1;
	char value[32];

	if (kind < 0) {
		log_err("--%s: '%.*s' is none of frame=MS, alloc=BYTES, allocs=N, faults=N, cold=BYTES, lock=MS",
			option, (int)len, word);
		return -EINVAL;
	}
	snprintf(value, sizeof(value), "%.*s", (int)(len - (size_t)(equals + 1 - word)), equals + 1);
	if (!amount_of(kind, value, &out->of[kind]))
		return 0;
	log_err("--%s: %s: '%s' is not %s", option, limit_names[kind], value,
		units[kind] == LIMIT_NS      ? "a number of milliseconds above 0"
		: units[kind] == LIMIT_BYTES ? "a size such as 64K or 16M"
					     : "a number above 0");
	return -EINVAL;
}

int limits__parse(const char *option, const char *text, struct amounts *out)
{
	size_t len;
	int err = 0;

	for (const char *p = text; *p && !err; p += len + (p[len] == ',')) {
		len = strcspn(p, ",");
		err = parse_one(option, p, len, out);
	}
	return err;
}

u32 limits__crossed(const struct amounts *limits, const struct amounts *did)
{
	u32 bits = 0;

	for (int i = 0; i < LIMIT_KINDS; i++)
		bits |= limits->of[i] && did->of[i] > limits->of[i] ? 1u << i : 0;
	return bits;
}

const char *limit__words(enum limit_kind kind, u64 amount, char *buf, size_t size)
{
	if (units[kind] == LIMIT_NS)
		return fmt__ns(buf, size, amount);
	if (units[kind] == LIMIT_BYTES)
		return fmt__bytes(buf, size, amount);
	snprintf(buf, size, "%llu", (unsigned long long)amount);
	return buf;
}
