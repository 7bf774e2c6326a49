/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_SOAK_H
#define REDFRAME_SOAK_H

#include "record.h"
#include "thresholds.h"

/* What the user asked of `soak`. */
struct soak_options {
	struct record_options r; /* first: it shares record's rows; r.output is the directory, r.seconds the duration */
	const char *store, *keep, *fail, *scene_file, *junit, *openmetrics, *html, *replay;
	bool until_exit;
	u64 max_bytes, segment_bytes, before_frames, after_frames;
	double before_seconds, warm_up_seconds;
	/* as understood */
	struct amounts keep_at, fail_at;
};

/* 0, 1 after --help, -EINVAL with a message. */
int soak_options__parse(struct soak_options *o, int argc, char **argv);

int verb__soak(int argc, char **argv);
int verb__mark(int argc, char **argv);

#endif
