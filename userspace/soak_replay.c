// SPDX-License-Identifier: GPL-2.0-only
/* A recording in place of a game. */
#include <errno.h>

#include "log.h"
#include "model.h"
#include "replay.h"
#include "soak_run.h"

static s64 wall_clock_ms(struct recording *r)
{
	const struct ev_hdr *rec;
	s64 ms = 0;

	while (!ms && recording__next(r, &rec) == 1)
		if (rec->kind == EV_CLOCK)
			ms = (s64)(((const struct ev_clock *)rec)->realtime / NSEC_PER_MSEC);
	return recording__rewind(r) ? 0 : ms;
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
	int err = recording__open(&r, k->o->replay), status;

	if (err) {
		log_err("%s: %s", k->o->replay, recording__strerror(err));
		return EXIT_USAGE;
	}
	status = soak__begin(k, NULL, wall_clock_ms(&r), r.hdr.start);
	if (!status) {
		k->err = feed(k, &r);
		k->start = r.hdr.start;
		k->stop = max(engine__stats(k->engine)->last, k->start);
	}
	recording__close(&r);
	return status;
}

int soak__copy_names(const char *recording, struct recording_writer *w)
{
	const struct ev_hdr *rec;
	struct recording r;
	int err = recording__open(&r, recording), got = 0;

	if (err)
		return err;
	while (!err && (got = recording__next(&r, &rec)) == 1)
		if (rec->kind == EV_SYMBOL || rec->kind == EV_CALL || rec->kind == EV_SOURCE || rec->kind == EV_IMAGE)
			err = recording__append(w, rec, rec->words * 8u);
	recording__close(&r);
	return err ?: got;
}
