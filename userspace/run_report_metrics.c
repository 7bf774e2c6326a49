/* SPDX-License-Identifier: GPL-2.0-only
 *
 * OpenMetrics 1.0 text: https://openmetrics.io. Every sample of a family stands together, under its one TYPE line.
 * Prometheus' older format reads the same of it.
 */
#include <stdio.h>
#include <string.h>

#include "run_report_html.h"

static void add_label_value(struct str *s, const char *text)
{
	str__add(s, "\"");
	for (; *text; text++) {
		if (*text == '\n') {
			str__add(s, "\\n");
			continue;
		}
		if (*text == '"' || *text == '\\')
			str__add(s, "\\");
		str__add_n(s, text, 1);
	}
	str__add(s, "\"");
}

static void add_labels(struct str *s, const struct run_facts *f, const char *scene)
{
	str__add(s, "{game=");
	add_label_value(s, f->game);
	str__add(s, ",scene=");
	add_label_value(s, scene);
}

static void family(struct str *s, const char *name, const char *type, const char *unit, const char *help)
{
	str__fmt(s, "# TYPE redframe_%s %s\n", name, type);
	if (unit)
		str__fmt(s, "# UNIT redframe_%s %s\n", name, unit);
	str__fmt(s, "# HELP redframe_%s %s\n", name, help);
}

static void frame_times(struct str *s, const struct run_facts *f)
{
	static const u64 bounds[RUN_BOUNDS] = RUN_BOUNDS_NS;

	family(s, "frame_time_seconds", "histogram", "seconds", "Frame durations by scene, without warm-up.");
	for (int i = 0; i < f->n_scenes; i++) {
		const struct run_scene *sc = &f->scenes[i];

		for (int k = 0; k < RUN_BOUNDS; k++) {
			str__add(s, "redframe_frame_time_seconds_bucket");
			add_labels(s, f, sc->name);
			str__fmt(s, ",le=\"%.9g\"} %llu\n", (double)bounds[k] / 1e9, (unsigned long long)sc->below[k]);
		}
		str__add(s, "redframe_frame_time_seconds_bucket");
		add_labels(s, f, sc->name);
		str__fmt(s, ",le=\"+Inf\"} %llu\nredframe_frame_time_seconds_count", (unsigned long long)sc->frames);
		add_labels(s, f, sc->name);
		str__fmt(s, "} %llu\nredframe_frame_time_seconds_sum", (unsigned long long)sc->frames);
		add_labels(s, f, sc->name);
		str__fmt(s, "} %.9f\n", (double)sc->dur_ns / 1e9);
	}
}

/* A summary's _count and _sum are counters under one name, in OpenMetrics as in the older format, where a counter's own
 * name differs (with or without _total): so both readers understand the file. */
static void summary(struct str *s, const struct run_facts *f, const char *name, const char *scene, const char *cause,
	u64 count, const char *sum)
{
	for (int i = 0; i < 2; i++) {
		str__fmt(s, "redframe_%s_%s", name, i ? "sum" : "count");
		add_labels(s, f, scene);
		if (cause)
			str__fmt(s, ",cause=\"%s\"", cause);
		if (i)
			str__fmt(s, "} %s\n", sum);
		else
			str__fmt(s, "} %llu\n", (unsigned long long)count);
	}
}

static void by_cause(struct str *s, const struct run_facts *f)
{
	static const char name[] = "hitch_excess_seconds";
	char sum[32];

	family(s, name, "summary", "seconds", "Slow frames by main cause, and their time over what is typical.");
	for (int i = 0; i < f->n_causes; i++) {
		snprintf(sum, sizeof(sum), "%.9f", (double)f->causes[i].excess_ns / 1e9);
		summary(s, f, name, f->causes[i].scene, f->causes[i].cause, f->causes[i].hitches, sum);
	}
}

/* of which there are so many in all frames of a scene */
static void by_frame(struct str *s, const struct run_facts *f)
{
	static const struct {
		const char *name, *unit, *help;
		size_t offset;
	} rows[] = {
		{"frame_cold_read_bytes", "bytes", "Frames, and bytes that came from the disk in them.",
			offsetof(struct run_scene, cold_bytes)},
		{"frame_allocations", NULL, "Frames, and allocation calls of the frame thread in them.",
			offsetof(struct run_scene, allocs)},
		{"frame_page_faults", NULL, "Frames, and page faults of the frame thread in them.",
			offsetof(struct run_scene, faults)},
		{"frame_lost_events", NULL, "Frames, and records that could not be kept in them.",
			offsetof(struct run_scene, lost)},
	};
	char sum[32];

	for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
		family(s, rows[k].name, "summary", rows[k].unit, rows[k].help);
		for (int i = 0; i < f->n_scenes; i++) {
			const struct run_scene *sc = &f->scenes[i];

			snprintf(sum, sizeof(sum), "%llu",
				(unsigned long long)*(const u64 *)((const char *)sc + rows[k].offset));
			summary(s, f, rows[k].name, sc->name, NULL, sc->frames, sum);
		}
	}
}

static void memory(struct str *s, const struct run_facts *f)
{
	static const char name[] = "peak_resident_bytes";

	family(s, name, "gauge", "bytes", "Largest resident memory; a scene without: not measured.");
	for (int i = 0; i < f->n_scenes; i++) {
		if (!f->scenes[i].peak_rss)
			continue;
		str__fmt(s, "redframe_%s", name);
		add_labels(s, f, f->scenes[i].name);
		str__fmt(s, "} %llu\n", (unsigned long long)f->scenes[i].peak_rss);
	}
}

void run_report__make_openmetrics(struct str *s, const struct run_facts *f)
{
	family(s, "measured", "gauge", NULL, "1: frames were measured; 0: nothing below means anything.");
	str__fmt(s, "redframe_measured{run=\"%s\"} %d\n", f->id, strcmp(run_facts__result(f), "not measured") != 0);
	frame_times(s, f);
	by_cause(s, f);
	by_frame(s, f);
	memory(s, f);
	str__add(s, "# EOF\n");
}
