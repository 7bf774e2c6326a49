/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_AFTERWARDS_H
#define REDFRAME_AFTERWARDS_H

struct record_options;
struct session;

/* What record does with a finished recording (open as fd): explain it on stdout, export the trace, sum up on stderr.
 * trace: "" for none. 0 or -errno after a message. */
int afterwards(
	int fd, const char *recording, const char *trace, const struct record_options *o, const struct session *s);

#endif
