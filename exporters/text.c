/* SPDX-License-Identifier: GPL-2.0-only
 *
 * One line a record, as ev__dump has it, then what it is about; frames as lines of their own. For eyes and grep.
 */
#include <string.h>

#include "events_desc.h"
#include "explain.h"
#include "lines.h"
#include "model.h"

static struct exporter *text_open(int fd)
{
	return lines__open(&exporter_text, fd);
}

static int text_event(struct exporter *e, const struct model *m, const struct ev_hdr *rec)
{
	const struct ev_desc *d = ev__desc(rec->kind);
	struct lines *t = (struct lines *)e;
	char line[4 * EV_MAX_BYTES + 1024], what[1024], safe[4096];
	size_t len = ev__dump(rec, line, sizeof(line));

	output__write(&t->out, line, len);
	model__what(m, rec, what, sizeof(what));
	/* a record's text has been said; only PATH's needs to be put together */
	if (what[0] && d && (!d->has_text || rec->kind == EV_PATH)) {
		output__write(&t->out, "  # ", 4);
		len = term__escape(safe, sizeof(safe), what, strlen(what));
		output__write(&t->out, safe, len);
	}
	return output__write(&t->out, "\n", 1);
}

static int text_frame(struct exporter *e, const struct model *m, const struct verdict *v)
{
	struct lines *t = (struct lines *)e;
	const struct frame *f = &v->frame;
	char safe[2048];

	str__fmt(&t->line, "# frame %llu of stream %u: thread %u, %llu to %llu, %.3f ms%s",
		(unsigned long long)f->number, f->stream->id, f->tid, (unsigned long long)f->start,
		(unsigned long long)f->end, (double)(f->end - f->start) / 1e6, v->slow ? ", slow" : "");
	if (f->lost)
		str__fmt(&t->line, ", %llu records lost", (unsigned long long)f->lost);
	if (v->sentence) {
		term__escape(safe, sizeof(safe), v->sentence, strlen(v->sentence));
		str__fmt(&t->line, ": %s", safe);
	}
	return lines__write(t);
}

const struct exporter_ops exporter_text = {.name = "txt",
	.suffix = ".txt",
	.open = text_open,
	.event = text_event,
	.frame = text_frame,
	.end = lines__end,
	.close = lines__close};
