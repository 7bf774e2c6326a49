/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Growing text, and the two ways to make a game's bytes safe. Everything that comes from the game is hostile.
 */
#ifndef REDFRAME_STRINGS_H
#define REDFRAME_STRINGS_H

#include "common.h"

struct str {
	char *s; /* NUL-terminated, never NULL after the first append */
	size_t len, cap;
	bool oom;
};

void str__free(struct str *s);
void str__clear(struct str *s);
void str__add(struct str *s, const char *text);
void str__add_n(struct str *s, const char *bytes, size_t n);
void str__dec(struct str *s, u64 v); /* "%llu", without the price of printf */
void str__fmt(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "x.json" ends with ".json"; ".json", which is all suffix, does not */
bool text__ends_with(const char *text, const char *suffix);
/* Appends "over a budget 3, no room 1": what there is none of is left out. */
struct tally_row {
	const char *what;
	u64 n;
};
void str__tallies(struct str *s, const struct tally_row *rows, size_t n);

/* Valid UTF-8 of src (each bad byte becomes U+FFFD), cut at a character boundary to fit; returns the length. */
size_t utf8__sanitize(char *dst, size_t size, const char *src, size_t n);
/* The same with control characters as \xNN, for a terminal. */
size_t term__escape(char *dst, size_t size, const char *src, size_t n);
/* Appends "…" with quotes: valid JSON and valid UTF-8 whatever src holds. */
void json__string(struct str *s, const char *src, size_t n);
/* The same as the value of a member: "key": "…"; null where text is NULL. */
void json__member(struct str *s, const char *key, const char *text);
/* Text of an element, or of a quoted attribute, in XML and HTML. XML 1.0 has no way to write control characters: they
 * become spaces. */
void str__xml(struct str *s, const char *text);

#define FMT_DIGITS 20
/* "1234" and "0x4d2" into at least FMT_DIGITS bytes, without a NUL; return the length */
size_t fmt__dec(char *buf, u64 v);
size_t fmt__hex(char *buf, u64 v);
/* "50.0 MiB", "12 KiB", "7 B" and "91.2 ms", "340 µs" into buf; return buf */
const char *fmt__bytes(char *buf, size_t size, u64 bytes);
const char *fmt__ns(char *buf, size_t size, u64 ns);
/* "64M", "1.5G", "4096": 0 or -EINVAL */
int parse__bytes(const char *text, u64 *out);

#endif
