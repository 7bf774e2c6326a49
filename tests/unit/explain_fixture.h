/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A recording, given as text or as a fd, through merge, model and explain.
 */
#ifndef REDFRAME_EXPLAIN_FIXTURE_H
#define REDFRAME_EXPLAIN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "explain.h"
#include "explain_view.h"
#include "model.h"
#include "recfile.h"
#include "recording.h"
#include "replay.h"

typedef void (*verdict_fn)(const struct verdict *v, const struct model *m, void *arg);

/* Each verdict goes to fn; afterwards, where they are not NULL, to_model and report get what is left. */
struct explained {
	struct recording r;
	struct model *m;
	struct explain *x;
	const struct report *report;
};

static inline void explained__free(struct explained *e)
{
	explain__free(e->x);
	model__free(e->m);
	recording__close(&e->r);
}

/* Takes over fd. */
static inline void explain_fd(struct explained *e, int fd, const struct explain_options *o, verdict_fn fn, void *arg)
{
	struct explain_options options;
	struct replay replay = {.verdict = fn, .arg = arg};

	assert_true(fd >= 0);
	e->m = model__new();
	assert_non_null(e->m);
	assert_int_equal(recording__open_fd(&e->r, fd), 0);
	assert_int_equal(replay__prepare(&e->r, e->m), 0);
	replay__explain_options(e->m, &options);
	if (o) {
		options.every_frame = o->every_frame;
		if (o->from == BUDGET_OPTION) {
			options.from = o->from;
			options.budget_ns = o->budget_ns;
		}
	}
	e->x = explain__new(&options);
	assert_non_null(e->x);
	assert_int_equal(replay__run(&e->r, e->m, e->x, NULL, 0, &replay), 0);
	e->report = explain__report(e->x, e->m);
}

static inline void explain_string(
	struct explained *e, const char *text, const struct explain_options *o, verdict_fn fn, void *arg)
{
	explain_fd(e, recfile__from_string(text), o, fn, arg);
}

#endif
