/* SPDX-License-Identifier: GPL-2.0-only
 *
 * OpenMetrics 1.0 text: https://openmetrics.io. Every sample of a family stands together, under its one TYPE line.
 */
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

static void by_cause(struct str *s, const struct run_facts *f)
{
	family(s, "hitches", "counter", NULL, "Slow frames by main cause.");
	for (int i = 0; i < f->n_causes; i++) {
		str__add(s, "redframe_hitches_total");
		add_labels(s, f, f->causes[i].scene);
		str__fmt(s, ",cause=\"%s\"} %llu\n", f->causes[i].cause, (unsigned long long)f->causes[i].hitches);
	}
	family(s, "excess_seconds", "counter", "seconds", "Time that slow frames took over what is typical, by cause.");
	for (int i = 0; i < f->n_causes; i++) {
		str__add(s, "redframe_excess_seconds_total");
		add_labels(s, f, f->causes[i].scene);
		str__fmt(s, ",cause=\"%s\"} %.9f\n", f->causes[i].cause, (double)f->causes[i].excess_ns / 1e9);
	}
}

static void by_scene(struct str *s, const struct run_facts *f)
{
	static const struct {
		const char *name, *sample, *type, *unit, *help;
		size_t offset;
	} rows[] = {
		{"cold_read_bytes", "cold_read_bytes_total", "counter", "bytes", "Bytes that came from the disk.",
			offsetof(struct run_scene, cold_bytes)},
		{"allocations", "allocations_total", "counter", NULL, "Allocation calls of the frame thread.",
			offsetof(struct run_scene, allocs)},
		{"page_faults", "page_faults_total", "counter", NULL, "Page faults of the frame thread.",
			offsetof(struct run_scene, faults)},
		{"lost_events", "lost_events_total", "counter", NULL, "Records that could not be kept.",
			offsetof(struct run_scene, lost)},
		{"peak_resident_bytes", "peak_resident_bytes", "gauge", "bytes",
			"Largest resident memory; 0: not measured.", offsetof(struct run_scene, peak_rss)},
	};

	for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
		family(s, rows[k].name, rows[k].type, rows[k].unit, rows[k].help);
		for (int i = 0; i < f->n_scenes; i++) {
			str__fmt(s, "redframe_%s", rows[k].sample);
			add_labels(s, f, f->scenes[i].name);
			str__fmt(s, "} %llu\n",
				(unsigned long long)*(const u64 *)((const char *)&f->scenes[i] + rows[k].offset));
		}
	}
}

void run_report__make_openmetrics(struct str *s, const struct run_facts *f)
{
	family(s, "measured", "gauge", NULL, "1: frames were measured; 0: nothing below means anything.");
	str__fmt(s, "redframe_measured{run=\"%s\"} %d\n", f->id, strcmp(run_facts__result(f), "not measured") != 0);
	frame_times(s, f);
	by_cause(s, f);
	by_scene(s, f);
	str__add(s, "# EOF\n");
}
