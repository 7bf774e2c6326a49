/* SPDX-License-Identifier: GPL-2.0-only
 *
 * One JSON object a line. {"ts": …, "tid": …, "cpu": …, "kind": "file_read", FIELDS…, "what": "…"} for a record, with
 * addresses, flags and named values as strings; {"kind": "verdict", …} for an explained frame. Every line is valid JSON
 * and valid UTF-8, whatever the game put in.
 */
#include <string.h>

#include "events_desc.h"
#include "explain.h"
#include "lines.h"
#include "model.h"

static struct exporter *json_open(int fd)
{
	return lines__open(&exporter_json, fd);
}

static bool is_number(enum ev_unit unit)
{
	switch (unit) {
	case UNIT_NS:
	case UNIT_BYTES:
	case UNIT_COUNT:
	case UNIT_CALLS:
	case UNIT_TID:
	case UNIT_CPU:
	case UNIT_PRIO:
	case UNIT_ID:
	case UNIT_OFFSET:
	case UNIT_ERRNO:
	case UNIT_FD:
	case UNIT_INO:
	case UNIT_IRQ:
	case UNIT_PERCENT:
		return true;
	default:
		return false;
	}
}

static void add_key(struct str *s, const char *name)
{
	str__add_n(s, ", \"", 3);
	str__add(s, name);
	str__add_n(s, "\": ", 3);
}

static void add_field(struct str *s, const struct ev_hdr *rec, const struct ev_field *f)
{
	const char *at = (const char *)rec + f->offset;
	char text[128];
	s64 v;

	add_key(s, f->name);
	if (f->unit == UNIT_TEXT) {
		json__string(s, at, strnlen(at, f->size));
		return;
	}
	if (!is_number(f->unit)) {
		ev__format(rec, f, text, sizeof(text));
		json__string(s, text, strlen(text));
		return;
	}
	v = ev__value(rec, f);
	if (f->is_signed && v < 0)
		str__fmt(s, "%lld", (long long)v);
	else if (v == -1 && (f->unit == UNIT_OFFSET || f->unit == UNIT_COUNT))
		str__add(s, "null"); /* FILE_NO_OFFSET, FRAME_NO_NUMBER */
	else
		str__dec(s, (u64)v);
}

/* The text of a record; of PATH the path that it says, of a command line the words. */
static void add_text(struct str *s, const struct model *m, const struct ev_hdr *rec, const char *name)
{
	char text[EV_MAX_BYTES];
	size_t n = ev__text(rec, text, sizeof(text)), i;

	add_key(s, name);
	if (rec->kind == EV_PATH) {
		const struct ev_path *p = (const struct ev_path *)rec;
		const char *path = model__path(m, p->dev, p->ino);

		json__string(s, path ? path : "", path ? strlen(path) : 0);
		return;
	}
	for (i = 0; i < n; i++)
		if (!text[i])
			text[i] = ' ';
	json__string(s, text, n);
}

static void add_header(struct str *s, const struct ev_hdr *rec, const char *kind)
{
	str__add(s, "{\"ts\": ");
	str__dec(s, rec->ts);
	str__add(s, ", \"tid\": ");
	str__dec(s, rec->tid);
	str__add(s, ", \"cpu\": ");
	str__dec(s, rec->cpu);
	str__add(s, ", \"kind\": \"");
	str__add(s, kind);
	str__add_n(s, "\"", 1);
}

static int json_event(struct exporter *e, const struct model *m, const struct ev_hdr *rec)
{
	const struct ev_desc *d = ev__desc(rec->kind);
	struct lines *j = (struct lines *)e;
	char what[1024];
	int i;

	if (!d)
		return 0;
	add_header(&j->line, rec, d->name);
	for (i = 0; i < d->n_fields; i++)
		add_field(&j->line, rec, &d->fields[i]);
	if (d->has_text)
		add_text(&j->line, m, rec, d->text_name);
	model__what(m, rec, what, sizeof(what));
	if (what[0] && d->shape != SHAPE_META) {
		str__add(&j->line, ", \"what\": ");
		json__string(&j->line, what, strlen(what));
	}
	str__add_n(&j->line, "}", 1);
	return lines__write(j);
}

static int json_frame(struct exporter *e, const struct model *m, const struct verdict *v)
{
	struct lines *j = (struct lines *)e;
	const struct frame *f = &v->frame;

	str__fmt(&j->line,
		"{\"ts\": %llu, \"tid\": %u, \"kind\": \"verdict\", \"frame\": %llu, \"stream\": %u, \"dur\": %llu, "
		"\"slow\": %s, \"lost\": %llu",
		(unsigned long long)f->end, f->tid, (unsigned long long)f->number, f->stream->id,
		(unsigned long long)(f->end - f->start), v->slow ? "true" : "false", (unsigned long long)f->lost);
	if (f->scene[0]) {
		str__add(&j->line, ", \"scene\": ");
		json__string(&j->line, f->scene, strlen(f->scene));
	}
	if (v->sentence) {
		str__add(&j->line, ", \"verdict\": ");
		json__string(&j->line, v->sentence, strlen(v->sentence));
	}
	str__add_n(&j->line, "}", 1);
	return lines__write(j);
}

const struct exporter_ops exporter_json = {.name = "json",
	.suffix = ".json",
	.open = json_open,
	.event = json_event,
	.frame = json_frame,
	.end = lines__end,
	.close = lines__close};
