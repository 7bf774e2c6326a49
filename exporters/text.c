/* SPDX-License-Identifier: GPL-2.0-only
 *
 * One line a record, as ev__dump has it, then what it is about; frames as lines of their own. For eyes and grep.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "events_desc.h"
#include "explain.h"
#include "exporter.h"
#include "model.h"
#include "output.h"
#include "strings.h"

struct text {
	struct exporter base;
	struct output out;
	struct str line;
};

static struct exporter *text_open(int fd)
{
	struct text *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->base = (struct exporter){.ops = &exporter_text, .fd = fd};
	t->out.fd = fd;
	return &t->base;
}

static int text_event(struct exporter *e, const struct model *m, const struct ev_hdr *rec)
{
	const struct ev_desc *d = ev__desc(rec->kind);
	struct text *t = (struct text *)e;
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
	struct text *t = (struct text *)e;
	const struct frame *f = &v->frame;
	char safe[2048];

	str__clear(&t->line);
	str__fmt(&t->line, "# frame %llu of stream %u: thread %u, %llu to %llu, %.3f ms%s",
		(unsigned long long)f->number, f->stream->id, f->tid, (unsigned long long)f->start,
		(unsigned long long)f->end, (double)(f->end - f->start) / 1e6, v->slow ? ", slow" : "");
	if (f->lost)
		str__fmt(&t->line, ", %llu records lost", (unsigned long long)f->lost);
	if (v->sentence) {
		term__escape(safe, sizeof(safe), v->sentence, strlen(v->sentence));
		str__fmt(&t->line, ": %s", safe);
	}
	str__add(&t->line, "\n");
	return t->line.oom ? -ENOMEM : output__write(&t->out, t->line.s, t->line.len);
}

static int text_end(struct exporter *e, const struct model *m, const struct report *r)
{
	return output__flush(&((struct text *)e)->out);
}

static void text_close(struct exporter *e)
{
	str__free(&((struct text *)e)->line);
	free(e);
}

const struct exporter_ops exporter_text = {.name = "txt",
	.suffix = ".txt",
	.open = text_open,
	.event = text_event,
	.frame = text_frame,
	.end = text_end,
	.close = text_close};
