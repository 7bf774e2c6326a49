/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_EXPLAIN_VERB_H
#define REDFRAME_EXPLAIN_VERB_H

#include "explain.h"

/* `redframe explain`; returns enum exit_status */
int verb__explain(int argc, char **argv);
/* "16.7" (ms), "60fps", "auto": 0 or -EINVAL */
int budget__parse(const char *text, struct explain_options *o);

#endif
