// SPDX-License-Identifier: GPL-2.0-only
/* The reports of a run that still goes on, or of one that has ended. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "log.h"
#include "run_report.h"
#include "soak_run.h"

/* Whole or not at all: whoever reads it while it is written sees the one before. */
static void write_file(struct soak *k, const char *path, int (*report)(struct store *s, const char *run, FILE *to))
{
	char tmp[4096];
	FILE *f;
	int fd, err;

	if (!path)
		return;
	snprintf(tmp, sizeof(tmp), "%s.part", path);
	fd = output__open(tmp, true);
	f = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!f) {
		if (fd >= 0)
			close(fd);
		return; /* said already */
	}
	err = report(k->store, k->run, f);
	if (fclose(f) && !err)
		err = -errno;
	if (!err && rename(tmp, path))
		err = -errno;
	if (!err)
		return;
	unlink(tmp);
	log_err("%s: %s", path, errstr(err));
}

void soak__report(struct soak *k)
{
	const struct engine_stats *s = engine__stats(k->engine);

	ledger__tend(k->ledger, ~0ULL);
	store__flush(k->store);
	write_file(k, k->o->junit, run_report__junit);
	write_file(k, k->o->openmetrics, run_report__openmetrics);
	write_file(k, k->o->html, run_report__html);
	log_info("%llu frames, %llu slow so far; run %s", (unsigned long long)s->frames, (unsigned long long)s->slow,
		k->run);
	if (log_level >= LOG_NORMAL)
		run_report__text(k->store, k->run, stdout);
	fflush(stdout);
}
