// SPDX-License-Identifier: GPL-2.0-only
/* A recording in place of a game. */
#include <errno.h>
#include <string.h>

#include "events_desc.h"
#include "log.h"
#include "model.h"
#include "replay.h"
#include "soak_run.h"
#include "strings.h"

struct head {
	s64 started_ms;
	char game[64]; /* "" where it does not say */
};

/* What the run must know before the first record goes into it. */
static int read_head(struct recording *r, struct head *h)
{
	static const char key[] = "game.name=";
	const struct ev_hdr *rec;
	char text[256];
	int got = 0;

	*h = (struct head){};
	while ((!h->started_ms || !h->game[0]) && (got = recording__next(r, &rec)) == 1) {
		if (rec->kind == EV_CLOCK)
			h->started_ms = (s64)(((const struct ev_clock *)rec)->realtime / NSEC_PER_MSEC);
		if (rec->kind == EV_INFO && ev__text(rec, text, sizeof(text)) && !strncmp(text, key, strlen(key)))
			utf8__sanitize(h->game, sizeof(h->game), text + strlen(key), strlen(text + strlen(key)));
	}
	return got < 0 ? got : recording__rewind(r);
}

static int feed(struct soak *k, struct recording *r)
{
	const struct ev_hdr *rec;
	int got, err = 0;

	while (!err && (got = recording__next(r, &rec)) == 1)
		err = engine__foretell(k->engine, rec);
	err = err ?: got ?: recording__rewind(r);
	while (!err && (got = recording__next(r, &rec)) == 1)
		err = engine__record(k->engine, rec);
	return err ?: got;
}

int soak__replay(struct soak *k)
{
	struct recording r;
	struct head head;
	int err = recording__open(&r, k->o->replay), status;

	if (!err)
		err = read_head(&r, &head);
	if (err) {
		log_err("%s: %s", k->o->replay, recording__strerror(err));
		return EXIT_USAGE;
	}
	status = soak__begin(k, head.game[0] ? head.game : NULL, head.started_ms, r.hdr.start);
	if (!status) {
		k->err = feed(k, &r);
		k->start = r.hdr.start;
		k->stop = max(engine__stats(k->engine)->last, k->start);
	}
	recording__close(&r);
	return status;
}

/* Once in a child: the recording may be long. */
static int read_names(struct soak *k)
{
	const struct ev_hdr *rec;
	struct recording r;
	int err = recording__open(&r, k->o->replay), got = 0;

	if (err)
		return err;
	while (!k->names.oom && (got = recording__next(&r, &rec)) == 1)
		if (model__is_of_code(rec->kind))
			str__add_n(&k->names, (const char *)rec, rec->words * 8u);
	recording__close(&r);
	return k->names.oom ? -ENOMEM : got;
}

int soak__copy_names(struct soak *k, struct recording_writer *w)
{
	int err = k->names.len ? 0 : read_names(k);

	for (size_t at = 0; at < k->names.len && !err;) {
		const struct ev_hdr *rec = (const struct ev_hdr *)(k->names.s + at);

		err = recording__append(w, rec, ev__bytes(rec));
		at += ev__bytes(rec);
	}
	return err;
}
