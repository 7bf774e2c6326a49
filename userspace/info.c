/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"
#include "info_facts.h"
#include "log.h"
#include "options.h"
#include "replay.h"

struct info_options {
	bool json;
};

#define ROW(name, letter, type, field, value, help)                                                                    \
	{                                                                                                              \
		name, letter, type, offsetof(struct info_options, field), value, help                                  \
	}
static const struct option_row rows[] = {ROW("json", 0, OPT_FLAG, json, NULL, "for programs"), {}};

static const struct verb info = {.name = "info",
	.synopsis = "RECORDING [--json]",
	.about = "Says what is in a recording: the game, how long, how many events of which class, and what was lost.",
	.rows = rows,
	.examples = "  redframe info run.redframe\n"
		    "  redframe info run.redframe --json | jq .counts\n"};

static int look_event(struct exporter *e, const struct model *m, const struct ev_hdr *rec)
{
	struct look *l = (struct look *)e;

	l->sheds += rec->kind == EV_SHED && ((const struct ev_shed *)rec)->out;
	if (rec->kind == EV_EFFECT && ((const struct ev_effect *)rec)->class < CLASS_COUNT)
		memcpy(&l->effect[((const struct ev_effect *)rec)->class], rec, sizeof(l->effect[0]));
	if (rec->kind != EV_COST)
		return 0;
	memcpy(&l->cost, rec, sizeof(l->cost));
	l->ring_used_max = max(l->ring_used_max, (u64)l->cost.ring_used);
	l->rss_max = max(l->rss_max, (u64)l->cost.rss);
	return 0;
}

static int look_end(struct exporter *e, const struct model *m, const struct report *r)
{
	return 0;
}

static const struct exporter_ops look_ops = {.name = "info", .event = look_event, .end = look_end};

double facts__figure(const struct model *m, const char *key)
{
	return strtod(model__info(m, key) ?: "0", NULL);
}

bool facts__others(const struct model *m, struct others *out)
{
	const char *value = model__info(m, "cost.others");

	out->calls = 0; /* not counted by a redframe before */
	return value && sscanf(value, "user_faults=%llu kernel_faults=%llu ns=%llu calls=%llu", &out->user_faults,
				&out->kernel_faults, &out->ns, &out->calls) >= 3;
}

const char *facts__severity(u32 severity)
{
	return severity == 0 ? "note" : severity == 1 ? "warning" : "error";
}

static int tell(struct recording *r, bool json)
{
	struct look look = {.base = {.ops = &look_ops, .fd = -1}};
	struct exporter *e = &look.base;
	struct facts f = {.r = r, .m = model__new(), .look = &look};
	struct replay replay = {0};
	struct str s = {0};
	int err;

	err = f.m ? replay__prepare(r, f.m) : -ENOMEM;
	if (!err)
		err = replay__run(r, f.m, NULL, &e, 1, &replay);
	if (err)
		goto cleanup;
	f.late = replay.late;
	(json ? facts__json : facts__text)(&s, &f);
	err = s.oom ? -ENOMEM : 0;
	if (!err && (fwrite(s.s, 1, s.len, stdout) != s.len || fflush(stdout)))
		err = errno == EPIPE ? 0 : -errno;
cleanup:
	str__free(&s);
	model__free(f.m);
	return err;
}

int verb__info(int argc, char **argv)
{
	struct info_options o = {0};
	struct recording r;
	int n, command, err;

	err = options__parse(&info, argc, argv, &o, &n, &command);
	if (err)
		return err > 0 ? EXIT_OK : EXIT_USAGE;
	if (n != 1) {
		log_err("info: name one recording: redframe info RECORDING");
		return EXIT_USAGE;
	}
	err = recording__open(&r, argv[0]);
	if (err) {
		log_err("%s: %s", argv[0], recording__strerror(err));
		return EXIT_USAGE;
	}
	err = tell(&r, o.json);
	if (err)
		log_err("%s: %s", argv[0], errstr(err));
	recording__close(&r);
	return err ? EXIT_NOT_MEASURED : EXIT_OK;
}
