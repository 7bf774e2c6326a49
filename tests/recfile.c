/* SPDX-License-Identifier: GPL-2.0-only */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "events_desc.h"
#include "recfile.h"
#include "recording.h"

struct line {
	u64 rec[EV_MAX_BYTES / 8];
	const struct ev_desc *desc;
	char text[EV_MAX_BYTES];
	size_t text_len;
	bool has_text;
};

/* a number and what may stand behind it; false where it is none */
static bool number(const char *word, s64 *out)
{
	static const struct {
		const char *name;
		double times;
	} suffixes[] = {{"", 1}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"K", 1 << 10}, {"M", 1 << 20},
		{"G", 1 << 30}};
	char *end, *dot_end;
	u64 whole = *word == '-' ? (u64)strtoll(word, &end, 0) : strtoull(word, &end, 0);
	double fraction = strtod(word, &dot_end);
	size_t i;

	if (!isdigit((unsigned char)word[word[0] == '-']))
		return false;
	for (i = 0; i < ARRAY_SIZE(suffixes); i++) {
		if (!strcmp(end, suffixes[i].name)) {
			*out = (s64)(whole * (u64)suffixes[i].times);
			return true;
		}
		if (!strcmp(dot_end, suffixes[i].name)) {
			*out = (s64)(fraction * suffixes[i].times + (fraction < 0 ? -0.5 : 0.5));
			return true;
		}
	}
	return false;
}

static bool is_flags(enum ev_unit unit)
{
	return unit == UNIT_STATE || unit == UNIT_FAULT_FLAGS || unit == UNIT_SWITCH_FLAGS || unit == UNIT_WAKE_FLAGS ||
	       unit == UNIT_PROT || unit == UNIT_CALL_FLAGS;
}

/* The value whose text ev__format would print: no second list of names. */
static bool named(const struct ev_field *f, const char *word, s64 *out)
{
	struct ev_field only = *f;
	u64 rec[4] = {0}, v, i;
	struct ev_hdr *h = (struct ev_hdr *)rec;
	char buf[128];

	h->words = 4;
	only.offset = sizeof(*h);
	for (i = 0; i < (is_flags(f->unit) ? 33 : 0x1001); i++) {
		v = !is_flags(f->unit) ? i : i ? 1ULL << (i - 1) : 0;
		rec[2] = v;
		if (!strcmp(ev__format(h, &only, buf, sizeof(buf)), word)) {
			*out = (s64)v;
			return true;
		}
	}
	return false;
}

static bool error_name(const char *word, s64 *out)
{
	int e;

	if (word[0] != '-')
		return false;
	for (e = 1; e < 134; e++) {
		if (strerrorname_np(e) && !strcmp(strerrorname_np(e), word + 1)) {
			*out = -e;
			return true;
		}
	}
	return false;
}

static bool value(const struct ev_field *f, const char *text, s64 *out)
{
	char word[EV_MAX_BYTES], *save, *w;
	unsigned major, minor;
	s64 v;

	if (f->unit == UNIT_DEV && sscanf(text, "%u:%u", &major, &minor) == 2) {
		*out = (s64)major << 20 | minor;
		return true;
	}
	if (!strcmp(text, "-")) {
		*out = -1;
		return true;
	}
	if (number(text, out) || error_name(text, out) || (!is_flags(f->unit) && named(f, text, out)))
		return true;
	*out = 0;
	snprintf(word, sizeof(word), "%s", text);
	for (w = strtok_r(word, "|", &save); w; w = strtok_r(NULL, "|", &save)) {
		if (!is_flags(f->unit) || (!number(w, &v) && !named(f, w, &v)))
			return false;
		*out |= v;
	}
	return true;
}

/* "a\0b\x1b\n" between quotes; returns the end of the literal, NULL where there is none */
static const char *literal(const char *p, char *out, size_t size, size_t *len)
{
	unsigned hex;

	if (*p++ != '"')
		return NULL;
	for (*len = 0; *p && *p != '"' && *len + 1 < size; p++) {
		char c = *p;

		if (c == '\\' && p[1] == 'x' && sscanf(p + 2, "%2x", &hex) == 1) {
			c = (char)hex;
			p += 3;
		} else if (c == '\\' && p[1]) {
			p++;
			c = (char)(*p == '0' ? '\0' : *p == 'n' ? '\n' : *p);
		}
		out[(*len)++] = c;
	}
	out[*len] = '\0';
	return *p == '"' ? p + 1 : NULL;
}

static const struct ev_field *field_named(const struct ev_desc *d, const char *name, size_t n)
{
	int i;

	for (i = 0; i < d->n_fields; i++)
		if (strlen(d->fields[i].name) == n && !strncmp(d->fields[i].name, name, n))
			return &d->fields[i];
	return NULL;
}

/* one field=value at p; returns its end, NULL where it is none */
static const char *field(struct line *l, const char *p)
{
	const char *eq = strchr(p, '=');
	const struct ev_field *f;
	char text[EV_MAX_BYTES];
	size_t len;
	s64 v;

	if (!eq)
		return NULL;
	f = field_named(l->desc, p, (size_t)(eq - p));
	if (!f && l->desc->has_text && strlen(l->desc->text_name) == (size_t)(eq - p) &&
		!strncmp(p, l->desc->text_name, (size_t)(eq - p))) {
		l->has_text = true;
		return literal(eq + 1, l->text, sizeof(l->text), &l->text_len);
	}
	if (!f)
		return NULL;
	if (eq[1] == '"') {
		p = literal(eq + 1, text, sizeof(text), &len);
	} else {
		len = strcspn(eq + 1, " \t");
		snprintf(text, sizeof(text), "%.*s", (int)len, eq + 1);
		p = eq + 1 + len;
	}
	if (f->unit == UNIT_TEXT) {
		memcpy((char *)l->rec + f->offset, text, len < f->size ? len : f->size - 1u);
		return p;
	}
	if (!p || !value(f, text, &v))
		return NULL;
	memcpy((char *)l->rec + f->offset, &v, f->size);
	return p;
}

static const struct ev_desc *kind_named(const char *name, u8 *kind)
{
	int i;

	for (i = 0; i < 256; i++) {
		const struct ev_desc *d = ev__desc((u8)i);

		if (d && !strcmp(d->name, name)) {
			*kind = (u8)i;
			return d;
		}
	}
	return NULL;
}

static void defaults(struct line *l)
{
	int i;

	for (i = 0; i < l->desc->n_fields; i++) {
		const struct ev_field *f = &l->desc->fields[i];

		if (f->unit == UNIT_OFFSET || !strcmp(f->name, "number"))
			memset((char *)l->rec + f->offset, 0xff, f->size);
	}
}

static int parse(struct line *l, const char *text)
{
	struct ev_hdr *h = (struct ev_hdr *)l->rec;
	char ts[64], kind[64];
	const char *p;
	int used = 0;
	unsigned cpu;
	s64 v;

	memset(l, 0, sizeof(*l));
	if (sscanf(text, "%63s %u %u %63s%n", ts, &h->tid, &cpu, kind, &used) != 4 || !number(ts, &v))
		return -EINVAL;
	l->desc = kind_named(kind, &h->kind);
	if (!l->desc)
		return -EINVAL;
	h->ts = (u64)v;
	h->cpu = (u16)cpu;
	h->words = (u8)(l->desc->size / 8);
	defaults(l);
	for (p = text + used; p && *(p += strspn(p, " \t"));)
		p = field(l, p);
	return p ? 0 : -EINVAL;
}

static int compile_line(struct recording_writer *w, const char *text, bool *complete)
{
	struct line l;
	int err;

	text += strspn(text, " \t");
	if (!*text || *text == '#')
		return 0;
	if (!strcmp(text, "!incomplete")) {
		*complete = false;
		return 0;
	}
	err = parse(&l, text);
	if (err)
		return err;
	if (l.desc->has_text)
		return recording__append_text(w, l.rec, l.desc->size, l.text, l.text_len);
	return recording__append(w, l.rec, l.desc->size);
}

static int compile(FILE *in, const char *name, int out)
{
	struct recording_writer w;
	bool complete = true;
	char *text = NULL;
	size_t cap = 0, n = 0;
	int err = recording__create(&w, out, 0), end;

	while (!err && getline(&text, &cap, in) >= 0) {
		n++;
		text[strcspn(text, "\n")] = '\0';
		err = compile_line(&w, text, &complete);
		if (err)
			fprintf(stderr, "%s:%zu: %s: %s\n", name, n, strerror(-err), text);
	}
	free(text);
	end = recording__finish(&w, complete);
	return err ? err : end;
}

int recfile__compile(const char *text_path, const char *out_path)
{
	FILE *in = fopen(text_path, "re");
	int out = open(out_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	int err = in && out >= 0 ? 0 : -errno;

	if (!err)
		err = compile(in, text_path, out);
	else if (out >= 0)
		close(out);
	if (in)
		fclose(in);
	return err;
}

int recfile__from_string(const char *text)
{
	FILE *in = fmemopen((char *)text, strlen(text), "r");
	int fd = memfd_create("recording", MFD_CLOEXEC), err;

	err = in && fd >= 0 ? compile(in, "string", dup(fd)) : -errno;
	if (in)
		fclose(in);
	if (!err && lseek(fd, 0, SEEK_SET) < 0)
		err = -errno;
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}
