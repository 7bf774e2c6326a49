// SPDX-License-Identifier: GPL-2.0-only
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "session.h"

static bool shown;

void progress__show(const struct session *s)
{
	static u64 records_before, ts_before, cpu_before;
	u64 ts = clock_boot_ns(), cpu;
	struct timespec t;
	double seconds;

	if (log_level < LOG_NORMAL || !isatty(STDERR_FILENO) || ts - ts_before < 500 * NSEC_PER_MSEC)
		return;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	cpu = t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
	seconds = ts_before ? (ts - ts_before) / 1e9 : 0;
	if (seconds)
		fprintf(stderr,
			"\r\033[K%5.0f s  %llu frames  %.1f ms (worst %.1f)  %.0f events/s  %llu lost  %.1f %% CPU",
			(ts - s->start) / 1e9, (unsigned long long)s->drain.marks, s->drain.mark_ns / 1e6,
			s->drain.worst_ns / 1e6, (s->drain.records - records_before) / seconds,
			(unsigned long long)s->drain.lost, (cpu - cpu_before) / 1e7 / seconds);
	shown = seconds > 0;
	records_before = s->drain.records;
	ts_before = ts;
	cpu_before = cpu;
}

void progress__clear(void)
{
	if (shown)
		fprintf(stderr, "\r\033[K");
	shown = false;
}
