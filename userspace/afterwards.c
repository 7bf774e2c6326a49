// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "afterwards.h"
#include "events_desc.h"
#include "explain_view.h"
#include "exporter.h"
#include "log.h"
#include "model.h"
#include "recording.h"
#include "replay.h"
#include "session.h"
#include "slices.h"
#include "strings.h"
#include "time_index.h"

static int reopen(struct recording *r, int fd)
{
	char path[64];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDONLY | O_CLOEXEC); /* a position of its own */
	return again < 0 ? -errno : recording__open_fd(r, again);
}

static void sum_up(const struct session *s, const struct model *m, const char *recording, const char *trace)
{
	const struct model_stats *st = model__stats(m);
	char size[32];

	log_info("%.1f s, %llu frames, %llu events (%s), own CPU %.1f %%, probes cost the game about %.2f %%",
		model__seconds(m), (unsigned long long)st->frames, (unsigned long long)st->events,
		fmt__bytes(size, sizeof(size), s->out.bytes), session__cpu_percent(s), session__effect_percent(s));
	for (int i = 0; i < CLASS_COUNT; i++)
		if (st->lost[i])
			log_warn("lost: %llu %s events; frames in which that happened are marked unsure; a larger "
				 "--buffer "
				 "may help",
				(unsigned long long)st->lost[i], class_names[i]);
	if (!st->frames && strcmp(s->o->frame, "none"))
		log_warn("no frames were seen: not measured (frame source: %s)",
			s->source[0] ? s->source : "none found");
	if (s->verified[0])
		log_info("measured: %s", s->verified);
	if (recording[0])
		log_info("recording: %s", recording);
	if (trace[0])
		log_info("trace:     %s (open it at ui.perfetto.dev)", trace);
}

/* Everything that one pass over the recording feeds. */
struct pass {
	struct recording r;
	struct model *m;
	struct explain *x;
	struct view *view;
	struct exporter *trace; /* NULL: none is wanted, or it could not be made */
	struct exporter *index; /* NULL: the recording is not long enough for one, or not whole */
};

static int begin(struct pass *p, int fd, const char *recording, const char *trace, const struct record_options *o)
{
	struct view_options v = {.worst = 5, .colour = isatty(STDOUT_FILENO)};
	struct slices_options slices = {
		.format = &exporter_perfetto, .path = trace, .force = o->force, .split_bytes = PERFETTO_SPLIT_BYTES};
	struct explain_options xo = {};
	int err;

	p->m = model__new();
	err = p->m ? reopen(&p->r, fd) : -ENOMEM;
	if (!err)
		err = replay__prepare(&p->r, p->m);
	if (err)
		return err;
	replay__explain_options(p->m, &xo);
	p->x = explain__new(&xo);
	p->view = view__new(&v);
	if (trace[0] && slices__open(&p->trace, &slices) == -ENOMEM)
		return -ENOMEM;
	if (recording[0] && !p->r.truncated && p->r.size >= INDEX_LEAST_BYTES) {
		p->index = time_index__writer(fd, p->r.end, &p->r);
		if (!p->index)
			return -ENOMEM;
	}
	return p->x && p->view ? 0 : -ENOMEM;
}

static void end(struct pass *p)
{
	if (p->trace)
		p->trace->ops->close(p->trace);
	if (p->index)
		p->index->ops->close(p->index);
	view__free(p->view);
	explain__free(p->x);
	recording__close(&p->r);
	model__free(p->m);
}

static int run(struct pass *p, struct replay *opts)
{
	struct exporter *e[2];
	int n = 0;

	if (p->trace)
		e[n++] = p->trace;
	if (p->index)
		e[n++] = p->index;
	return replay__run(&p->r, p->m, p->x, e, n, opts);
}

int afterwards(
	int fd, const char *recording, const char *trace, const struct record_options *o, const struct session *s)
{
	struct pass p = {.r = {.fd = -1}};
	struct replay opts = {.verdict = view__verdict};
	int err = begin(&p, fd, recording, trace, o);

	opts.arg = p.view;
	if (!err)
		err = run(&p, &opts);
	if (err)
		log_err("%s: %s", recording[0] ? recording : trace, errstr(err));
	else if (!o->quiet)
		err = view__print(p.view, stdout, p.m, explain__report(p.x, p.m), &p.r);
	fflush(stdout);
	if (p.m)
		sum_up(s, p.m, recording, p.trace ? trace : "");
	if (p.trace && slices__files(p.trace) > 1)
		log_info("           and %u further files, for what the UI can hold", slices__files(p.trace) - 1);
	if (!err && trace[0] && !p.trace)
		err = -EIO; /* said already: the trace could not be created */
	end(&p);
	return err;
}
