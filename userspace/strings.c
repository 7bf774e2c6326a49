/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "strings.h"

void str__free(struct str *s)
{
	free(s->s);
	*s = (struct str){0};
}

void str__clear(struct str *s)
{
	s->len = 0;
	s->oom = false;
	if (s->s)
		s->s[0] = '\0';
}

/* room for n more bytes and the NUL */
static bool reserve(struct str *s, size_t n)
{
	size_t cap = s->cap ? s->cap : 64;
	char *grown;

	if (s->len + n + 1 <= s->cap)
		return true;
	while (cap < s->len + n + 1)
		cap *= 2;
	grown = realloc(s->s, cap);
	if (!grown) {
		s->oom = true;
		return false;
	}
	s->s = grown;
	s->cap = cap;
	return true;
}

void str__add_n(struct str *s, const char *bytes, size_t n)
{
	if (!reserve(s, n))
		return;
	if (n)
		memcpy(s->s + s->len, bytes, n);
	s->len += n;
	s->s[s->len] = '\0';
}

void str__add(struct str *s, const char *text)
{
	str__add_n(s, text, strlen(text));
}

void str__dec(struct str *s, u64 v)
{
	char digits[FMT_DIGITS];

	str__add_n(s, digits, fmt__dec(digits, v));
}

void str__fmt(struct str *s, const char *fmt, ...)
{
	size_t room = s->cap - s->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(s->s ? s->s + s->len : NULL, s->s ? room : 0, fmt, ap);
	va_end(ap);
	if (n >= 0 && s->s && (size_t)n < room) {
		s->len += (size_t)n;
		return;
	}
	if (s->s)
		s->s[s->len] = '\0'; /* not half of it */
	if (n < 0 || !reserve(s, (size_t)n))
		return;
	va_start(ap, fmt);
	vsnprintf(s->s + s->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	s->len += (size_t)n;
}

/* Length of the well-formed UTF-8 sequence at p, its code point in *cp; 0 where there is none. No surrogates, no
 * overlong forms, nothing above U+10FFFF. */
static size_t utf8_next(const unsigned char *p, size_t n, u32 *cp)
{
	static const u32 least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len, i;

	if (p[0] < 0x80) {
		*cp = p[0];
		return 1;
	}
	len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || len > n)
		return 0;
	*cp = p[0] & (0x7f >> len);
	for (i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		*cp = *cp << 6 | (p[i] & 0x3f);
	}
	if (*cp < least[len] || *cp > 0x10ffff || (*cp >= 0xd800 && *cp <= 0xdfff))
		return 0;
	return len;
}

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

bool text__ends_with(const char *text, const char *suffix)
{
	size_t n = strlen(text), k = strlen(suffix);

	return n > k && !strcmp(text + n - k, suffix);
}

void str__tallies(struct str *s, const struct tally_row *rows, size_t n)
{
	const char *comma = "";

	for (size_t i = 0; i < n; i++) {
		if (!rows[i].n)
			continue;
		str__fmt(s, "%s%s %llu", comma, rows[i].what, (unsigned long long)rows[i].n);
		comma = ", ";
	}
}

size_t utf8__sanitize(char *dst, size_t size, const char *src, size_t n)
{
	size_t in = 0, out = 0;
	u32 cp;

	if (!size)
		return 0;
	while (in < n) {
		size_t len, add;
		const char *from;

		if ((signed char)src[in] > 0 && out + 1 < size) { /* most of all text is ASCII */
			dst[out++] = src[in++];
			continue;
		}
		len = utf8_next((const unsigned char *)src + in, n - in, &cp);
		from = len && cp ? src + in : REPLACEMENT;
		add = len && cp ? len : 3;
		if (out + add >= size)
			break;
		memcpy(dst + out, from, add);
		out += add;
		in += len ? len : 1;
	}
	dst[out] = '\0';
	return out;
}

/* C0, DEL, C1, and the marks that make text run backwards: a terminal obeys all of them */
static bool obeyed_by_terminals(u32 cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x200e || cp == 0x200f ||
	       (cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069);
}

size_t term__escape(char *dst, size_t size, const char *src, size_t n)
{
	size_t in = 0, out = 0;
	char hex[16];
	u32 cp;

	if (!size)
		return 0;
	while (in < n) {
		size_t len = utf8_next((const unsigned char *)src + in, n - in, &cp);
		const char *from = src + in;
		size_t add = len;

		if (!len) {
			from = REPLACEMENT;
			add = 3;
		} else if (obeyed_by_terminals(cp)) {
			add = (size_t)snprintf(hex, sizeof(hex), cp < 0x100 ? "\\x%02x" : "\\u%04x", cp);
			from = hex;
		}
		if (out + add >= size)
			break;
		memcpy(dst + out, from, add);
		out += add;
		in += len ? len : 1;
	}
	dst[out] = '\0';
	return out;
}

/* one character of a JSON string; len 0: a byte that is no UTF-8 */
static void json_char(struct str *s, const char *p, size_t len, u32 cp)
{
	if (!len)
		str__add_n(s, REPLACEMENT, 3);
	else if (cp == '"' || cp == '\\')
		str__fmt(s, "\\%c", (char)cp);
	else if (cp == '\n')
		str__add_n(s, "\\n", 2);
	else if (cp < 0x20 || cp == 0x7f)
		str__fmt(s, "\\u%04x", cp);
	else
		str__add_n(s, p, len);
}

void json__string(struct str *s, const char *src, size_t n)
{
	size_t in = 0, len;
	u32 cp = 0;

	str__add_n(s, "\"", 1);
	while (in < n) {
		size_t run = in; /* plain ASCII goes out in one piece */

		while (run < n && src[run] >= 0x20 && src[run] < 0x7f && src[run] != '"' && src[run] != '\\')
			run++;
		str__add_n(s, src + in, run - in);
		in = run;
		if (in == n)
			break;
		len = utf8_next((const unsigned char *)src + in, n - in, &cp);
		json_char(s, src + in, len, cp);
		in += len ? len : 1;
	}
	str__add_n(s, "\"", 1);
}

size_t fmt__dec(char *buf, u64 v)
{
	char digits[FMT_DIGITS];
	size_t n = 0;

	do {
		digits[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	for (size_t i = 0; i < n; i++)
		buf[i] = digits[n - 1 - i];
	return n;
}

size_t fmt__hex(char *buf, u64 v)
{
	size_t n = 2, digits = v ? (67 - (size_t)__builtin_clzll(v)) / 4 : 1;

	buf[0] = '0';
	buf[1] = 'x';
	while (digits--)
		buf[n++] = "0123456789abcdef"[v >> digits * 4 & 15];
	return n;
}

const char *fmt__bytes(char *buf, size_t size, u64 bytes)
{
	static const char *const units[] = {"MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(buf, size, "%u B", (unsigned)bytes);
		return buf;
	}
	if (bytes < 1024 * 1024 - 512) {
		snprintf(buf, size, bytes % 1024 && value < 9.95 ? "%.1f KiB" : "%.0f KiB", value);
		return buf;
	}
	for (value /= 1024; value >= 1023.95 && unit + 1 < ARRAY_SIZE(units); unit++)
		value /= 1024;
	snprintf(buf, size, "%.1f %s", value, units[unit]);
	return buf;
}

const char *fmt__ns(char *buf, size_t size, u64 ns)
{
	if (ns < 1000)
		snprintf(buf, size, "%u ns", (unsigned)ns);
	else if (ns < 9950)
		snprintf(buf, size, "%.1f µs", (double)ns / 1e3);
	else if (ns < 999500)
		snprintf(buf, size, "%.0f µs", (double)ns / 1e3);
	else if (ns < 9999950000)
		snprintf(buf, size, "%.1f ms", (double)ns / 1e6);
	else
		snprintf(buf, size, "%.2f s", (double)ns / 1e9);
	return buf;
}

/* log2 of a size suffix, -1 where it is none: K M G T, with B or iB after it */
static int suffix_shift(const char *s)
{
	static const char letters[] = "KMGT";
	const char *at;
	int shift = 0;

	if (*s && (at = strchr(letters, *s >= 'a' ? *s - 'a' + 'A' : *s))) {
		shift = (int)(at - letters + 1) * 10;
		s++;
		if (s[0] == 'i' && s[1] == 'B')
			s++;
	}
	if (*s == 'B')
		s++;
	return *s ? -1 : shift;
}

int parse__bytes(const char *text, u64 *out)
{
	double value;
	char *end;
	int shift;

	if (text[0] < '0' || text[0] > '9' || (text[0] == '0' && (text[1] | 0x20) == 'x'))
		return -EINVAL;
	value = strtod(text, &end);
	shift = suffix_shift(end);
	if (shift < 0)
		return -EINVAL;
	value *= (double)(1ULL << shift);
	if (!(value < 9e18))
		return -EINVAL;
	*out = (u64)value;
	return 0;
}

void json__member(struct str *s, const char *key, const char *text)
{
	str__fmt(s, "\"%s\": ", key);
	if (text)
		json__string(s, text, strlen(text));
	else
		str__add(s, "null");
}

void str__xml(struct str *s, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'')
			str__fmt(s, "&#%u;", c);
		else
			str__add_n(s, c < ' ' || c == 0x7f ? " " : text, 1);
	}
}
