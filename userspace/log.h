/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_LOG_H
#define REDFRAME_LOG_H

enum log_level { LOG_QUIET = -1, LOG_NORMAL = 0, LOG_VERBOSE = 1 };
extern enum log_level log_level;

/* "redframe: attach glXSwapBuffers: no such file": what, on what, why. stderr. */
void log_err(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));  /* not with -q */
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));  /* not with -q */
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* with -v */
const char *errstr(int err);                                                /* takes errno or -errno */

#endif
