// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine.h"
#include "ledger.h"
#include "log.h"
#include "soak.h"

#define ROW(name, letter, type, field, value, help)                                                                    \
	{                                                                                                              \
		name, letter, type, offsetof(struct soak_options, field), value, help                                  \
	}

static const struct option_row rows[] = {
	ROW("output", 'o', OPT_TEXT, r.output, "DIR", "where recordings of slow frames go; default soak-DATE-TIME"),
	ROW("store", 0, OPT_TEXT, store, "FILE.db|URL",
		"where the run goes: a file or postgresql://…; default runs.db"),
	ROW("duration", 'd', OPT_SECONDS, r.seconds, "SECONDS", "stop after this time; less is not measured"),
	ROW("until-exit", 0, OPT_FLAG, until_exit, NULL,
		"stop when the game ends, instead of waiting for its next start"),
	ROW("keep", 0, OPT_TEXT, keep, "LIMIT,…",
		"keep frames beyond frame=MS, alloc=BYTES, allocs=N, faults=N, cold=BYTES, lock=MS; default slow ones"),
	ROW("fail", 0, OPT_TEXT, fail, "LIMIT,…",
		"the same; and a frame beyond it, after warm-up, ends in exit status 4"),
	ROW("before", 0, OPT_SECONDS, before_seconds, "SECONDS", "context kept before a frame; default 0.5"),
	ROW("before-frames", 0, OPT_UINT, before_frames, "N", "and at least so many frames; default 30"),
	ROW("after-frames", 0, OPT_UINT, after_frames, "N", "context kept after it; default 10 frames"),
	ROW("warm-up", 0, OPT_SECONDS_0, warm_up_seconds, "SECONDS",
		"of each visit to a scene, in no figure or limit; default 5, 0 none; all of it: not measured"),
	ROW("max-size", 0, OPT_BYTES, max_bytes, "SIZE",
		"of all recordings; the least interesting make room; default 1.5G"),
	ROW("segment", 0, OPT_BYTES, segment_bytes, "SIZE", "of one recording; default 256M"),
	ROW("scene-file", 0, OPT_TEXT, scene_file, "FILE", "its first line names the scene, whenever it changes"),
	ROW("junit", 0, OPT_TEXT, junit, "FILE", "a report for CI: a test case for each scene and limit"),
	ROW("openmetrics", 0, OPT_TEXT, openmetrics, "FILE", "a report for Prometheus"),
	ROW("html", 0, OPT_TEXT, html, "FILE", "a report for people: one page"),
	ROW("replay", 0, OPT_TEXT, replay, "RECORDING", "a recording in place of a game"),
	{},
};

static const struct verb soak = {
	.name = "soak",
	.synopsis = "[-p PID | -n NAME | -- CMD ARGS…] [options]",
	.about = "Watches a game for hours, keeps only what surrounds slow frames, and sums up all of it in a store.",
	.rows = rows,
	.more = record_capture_rows,
	.examples = "  redframe soak -n doom --duration 3600 --budget 60fps --meta commit=1a2b3c\n"
		    "  redframe soak --fail frame=100 --junit soak.xml -o soak -- ./game --demo tour\n"
		    "  redframe soak --replay run.redframe --store runs.db\n",
};

static int check_sizes(const struct soak_options *o)
{
	if (o->segment_bytes < 1 << 20 || o->max_bytes < 4 * (1 << 20) || o->segment_bytes > o->max_bytes) {
		log_err("--segment: at least 1M, and --max-size at least 4M and no less than that");
		return -EINVAL;
	}
	if (o->before_frames > 100 || o->after_frames > 10000 || o->before_seconds > 60) {
		log_err("--before-frames: at most 100; --after-frames: at most 10000; --before: at most 60 s");
		return -EINVAL;
	}
	return 0;
}

int soak_options__parse(struct soak_options *o, int argc, char **argv)
{
	int n, command, err;

	*o = (struct soak_options){.store = STORE_DEFAULT,
		.max_bytes = ENGINE_MAX_BYTES,
		.segment_bytes = ENGINE_SEGMENT_BYTES,
		.before_seconds = (double)ENGINE_BEFORE_NS / 1e9,
		.warm_up_seconds = (double)LEDGER_WARM_NS / 1e9,
		.before_frames = ENGINE_BEFORE_FRAMES - 1,
		.after_frames = ENGINE_AFTER_FRAMES};
	record_options__defaults(&o->r);
	err = options__parse(&soak, argc, argv, o, &n, &command);
	if (err)
		return err;
	o->r.soak = true;
	if (o->replay && (o->r.pid || o->r.name || command < n)) {
		log_err("--replay takes a recording in place of a game");
		return -EINVAL;
	}
	if (o->replay)
		o->r.name = o->replay; /* a target, for the check */
	err = record_options__check(&o->r, argv, n, command);
	if (!err && o->keep)
		err = limits__parse("keep", o->keep, &o->keep_at);
	if (!err && o->fail)
		err = limits__parse("fail", o->fail, &o->fail_at);
	return err ?: check_sizes(o);
}
