/* SPDX-License-Identifier: GPL-2.0-only
 *
 * One row a frame, for spreadsheets: when it was, how long it took, and its time by cause. Texts that came from the
 * game are valid UTF-8 on one line, and no spreadsheet takes one for a formula.
 */
#include <string.h>

#include "explain.h"
#include "lines.h"
#include "names.h"

static struct exporter *csv_open(int fd)
{
	struct exporter *e = lines__open(&exporter_csv, fd);
	struct lines *c = (struct lines *)e;

	if (!e)
		return NULL;
	str__add(&c->line, "stream,frame,start_s,start_ns,duration_ms,typical_ms,budget_ms,slow,lost_events,tid");
	for (int i = 0; i < CAUSE_COUNT; i++)
		str__fmt(&c->line, ",%s_ms", cause_names[i]);
	str__add(&c->line, ",thread,scene,verdict");
	lines__write(c); /* into its buffer: an error of that comes with the next one */
	return e;
}

static int csv_event(struct exporter *e, const struct model *m, const struct ev_hdr *rec)
{
	return 0;
}

/* What begins as a formula does, after blanks too, is led by an apostrophe: spreadsheets then take it for text. */
static void add_text(struct str *s, const char *text)
{
	char clean[4096];
	size_t n = utf8__sanitize(clean, sizeof(clean), text ? text : "", text ? strlen(text) : 0);
	const char *first = clean;

	for (size_t i = 0; i < n; i++)
		if ((u8)clean[i] < ' ' || clean[i] == 0x7f)
			clean[i] = ' ';
	first += strspn(clean, " ");
	str__add(s, *first && strchr("=+-@", *first) ? ",\"'" : ",\"");
	for (const char *p = clean; *p; p++)
		str__add_n(s, *p == '"' ? "\"\"" : p, *p == '"' ? 2 : 1);
	str__add(s, "\"");
}

static void add_ms(struct str *s, u64 ns)
{
	str__fmt(s, ",%.6f", (double)ns / 1e6);
}

/* of the first frames 0: not known yet */
static void add_known_ms(struct str *s, u64 ns)
{
	if (ns)
		add_ms(s, ns);
	else
		str__add(s, ",");
}

static int csv_frame(struct exporter *e, const struct model *m, const struct verdict *v)
{
	struct lines *c = (struct lines *)e;
	const struct frame *f = &v->frame;
	char name[160];

	str__fmt(&c->line, "%u,%llu,%.6f,%llu", f->stream->id, (unsigned long long)f->number,
		(double)(s64)(f->start - e->zero) / 1e9, (unsigned long long)f->start);
	add_ms(&c->line, f->end - f->start);
	add_known_ms(&c->line, v->typical_ns);
	add_known_ms(&c->line, v->budget_ns);
	str__fmt(&c->line, ",%d,%llu,%u", v->slow, (unsigned long long)f->lost, f->tid);
	for (int i = 0; i < CAUSE_COUNT; i++)
		add_ms(&c->line, v->cause_ns[i]);
	thread__name(m, f->tid, name, sizeof(name));
	add_text(&c->line, name);
	add_text(&c->line, f->scene);
	add_text(&c->line, v->sentence);
	return lines__write(c);
}

const struct exporter_ops exporter_csv = {.name = "csv",
	.suffix = ".csv",
	.frames_only = true,
	.open = csv_open,
	.event = csv_event,
	.frame = csv_frame,
	.end = lines__end,
	.close = lines__close};
