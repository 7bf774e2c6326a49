/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "strings.h"

enum log_level log_level = LOG_NORMAL;

/* Messages carry the game's words (paths, names), so the whole line is escaped. One write per line: lines of two
 * processes on one terminal do not mix. */
static void say(const char *prefix, const char *fmt, va_list ap)
{
	char text[2048], line[4096];
	size_t len, n;
	int made;

	made = vsnprintf(text, sizeof(text), fmt, ap);
	if (made < 0)
		return;
	len = min((size_t)made, sizeof(text) - 1);
	while (len && text[len - 1] == '\n')
		len--;
	n = (size_t)snprintf(line, sizeof(line), "redframe: %s", prefix);
	n += term__escape(line + n, sizeof(line) - n - 1, text, len);
	line[n++] = '\n';
	fwrite(line, 1, n, stderr);
	fflush(stderr);
}

#define LOG(name, least, prefix)                                                                                       \
	void name(const char *fmt, ...)                                                                                \
	{                                                                                                              \
		va_list ap;                                                                                            \
                                                                                                                       \
		if (log_level < (least))                                                                               \
			return;                                                                                        \
		va_start(ap, fmt);                                                                                     \
		say(prefix, fmt, ap);                                                                                  \
		va_end(ap);                                                                                            \
	}

LOG(log_err, LOG_QUIET, "")
LOG(log_warn, LOG_NORMAL, "warning: ")
LOG(log_info, LOG_NORMAL, "")
LOG(log_debug, LOG_VERBOSE, "")

const char *errstr(int err)
{
	return strerror(abs(err));
}
