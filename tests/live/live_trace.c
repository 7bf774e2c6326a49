// SPDX-License-Identifier: GPL-2.0-only
/* Asking the real Perfetto trace processor. */
#include <stdlib.h>
#include <unistd.h>

#include "live.h"

static const char *tp_dir(void)
{
	const char *dir = getenv("REDFRAME_TP");

	return dir ? dir : "build/tp";
}

long long live__query(struct live *l, const char *trace, const char *sql)
{
	char program[PATH_MAX], get[PATH_MAX + 32], *argv[] = {program, (char *)trace, "-Q", (char *)sql, NULL};
	char *out, *line;
	long long v;
	int status;

	if (access("tests/tp/get", X_OK)) /* in the machine of tests/vm */
		live__skip("the trace processor is not here, what follows on it");
	snprintf(get, sizeof(get), "tests/tp/get '%s'", tp_dir());
	if (system(get))
		fail_msg("no trace processor: %s failed", get);
	snprintf(program, sizeof(program), "%s/tp_query", tp_dir());
	out = live__output(l, &status, argv);
	line = strchr(out, '\n');
	if (status || !line)
		fail_msg("%s: %s", sql, out);
	v = strtoll(line + (line[1] == '"' ? 2 : 1), NULL, 10);
	free(out);
	return v;
}
