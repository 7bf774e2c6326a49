/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <string.h>

#include "run_query.h"
#include "run_report.h"
#include "run_report_html.h"

static double ms(u64 ns)
{
	return (double)ns / 1e6;
}

static double per_minute(u64 n, u64 ns)
{
	return ns ? (double)n / ((double)ns / 60e9) : 0;
}

/* ---- JSON ---- */

static void json_pairs(struct str *s, const char *key, const struct run_pair *p, int n, bool numbers)
{
	str__fmt(s, ",\n \"%s\": {", key);
	for (int i = 0; i < n; i++) {
		str__add(s, i ? ", " : "");
		json__string(s, p[i].name, strlen(p[i].name));
		str__add(s, ": ");
		if (numbers)
			str__add(s, p[i].value);
		else
			json__string(s, p[i].value, strlen(p[i].value));
	}
	str__add(s, "}");
}

static void json_scene(struct str *s, const struct run_scene *sc)
{
	str__add(s, "{");
	json__member(s, "scene", sc->name);
	str__fmt(s,
		", \"measured\": %s, \"frames\": %llu, \"warm_up_frames\": %llu, \"warm_up_slow\": %llu, \"slow\": "
		"%llu, \"unsure\": %llu, "
		"\"lost_events\": "
		"%llu, "
		"\"p50_ms\": %.6f, \"p95_ms\": %.6f, \"p99_ms\": %.6f, \"max_ms\": %.6f, \"hitches_per_min\": %.6f, ",
		sc->frames ? "true" : "false", (unsigned long long)sc->frames, (unsigned long long)sc->warm_up_frames,
		(unsigned long long)sc->warm_up_slow, (unsigned long long)sc->slow, (unsigned long long)sc->unsure,
		(unsigned long long)sc->lost, ms(sc->p50_ns), ms(sc->p95_ns), ms(sc->p99_ns), ms(sc->max_ns),
		per_minute(sc->slow, sc->dur_ns));
	str__fmt(s,
		"\"over_budget_ms\": %.6f, \"cold_bytes\": %llu, \"allocations\": %llu, \"allocated_bytes\": %llu, "
		"\"faults\": %llu, \"peak_rss_bytes\": %llu}",
		ms(sc->over_budget_ns), (unsigned long long)sc->cold_bytes, (unsigned long long)sc->allocs,
		(unsigned long long)sc->alloc_bytes, (unsigned long long)sc->faults, (unsigned long long)sc->peak_rss);
}

static void json_hitch(struct str *s, const struct run_hitch *h)
{
	str__add(s, "{");
	json__member(s, "fingerprint", h->key);
	str__add(s, ", ");
	json__member(s, "cause", h->cause);
	str__add(s, ", ");
	json__member(s, "text", h->text);
	str__add(s, ", ");
	json__member(s, "scene", h->scene);
	str__fmt(s,
		", \"count\": %llu, \"excess_ms\": %.6f, \"worst_ms\": %.6f, \"worst_frame\": %llu, \"worst_at_s\": "
		"%.3f, ",
		(unsigned long long)h->hitches, ms(h->excess_ns), ms(h->worst_ns), (unsigned long long)h->worst_frame,
		(double)h->worst_ms / 1e3);
	json__member(s, "verdict", h->sentence);
	str__add(s, ", ");
	json__member(s, "recording", h->trace);
	str__add(s, "}");
}

static void make_json(struct str *s, const struct run_facts *f)
{
	str__fmt(s, "{\"schema\": 1, \"run\": \"%s\", ", f->id);
	json__member(s, "result", run_facts__result(f));
	str__add(s, ", ");
	json__member(s, "reason", f->reason);
	str__add(s, ", ");
	json__member(s, "game", f->game);
	str__fmt(s, ", \"started_ms\": %lld, \"frames\": %llu, \"slow_without_cause\": %llu", (long long)f->started_ms,
		(unsigned long long)f->frames, (unsigned long long)f->without_cause);
	json_pairs(s, "meta", f->meta, f->n_meta, false);
	json_pairs(s, "counters", f->counters, f->n_counters, true);
	str__add(s, ",\n \"scenes\": [");
	for (int i = 0; i < f->n_scenes; i++) {
		str__add(s, i ? ",\n  " : "\n  ");
		json_scene(s, &f->scenes[i]);
	}
	str__add(s, "],\n \"causes\": [");
	for (int i = 0; i < f->n_causes; i++) {
		const struct run_cause *c = &f->causes[i];

		str__add(s, i ? ",\n  {" : "\n  {");
		json__member(s, "scene", c->scene);
		str__fmt(s, ", \"cause\": \"%s\", \"ms\": %.6f, \"excess_ms\": %.6f, \"hitches\": %llu}", c->cause,
			ms(c->total_ns), ms(c->excess_ns), (unsigned long long)c->hitches);
	}
	str__add(s, "],\n \"hitches\": [");
	for (int i = 0; i < f->n_hitches; i++) {
		str__add(s, i ? ",\n  " : "\n  ");
		json_hitch(s, &f->hitches[i]);
	}
	str__add(s, "]}\n");
}

/* ---- text ---- */

static void add_escaped(struct str *s, const char *text)
{
	char buf[2048];

	str__add_n(s, buf, term__escape(buf, sizeof(buf), text, strlen(text)));
}

static void make_text(struct str *s, const struct run_facts *f)
{
	u64 warm_up = 0, warm_slow = 0;

	add_escaped(s, f->game);
	str__fmt(s, ", run %s: %s", f->id, run_facts__result(f));
	if (f->reason[0]) {
		str__add(s, ": ");
		add_escaped(s, f->reason);
	}
	str__fmt(s, "\n\n  %-24s %9s %7s %9s %9s %9s %9s %12s\n", "scene", "frames", "slow", "p50 ms", "p95 ms",
		"p99 ms", "max ms", "hitches/min");
	for (int i = 0; i < f->n_scenes; i++) {
		const struct run_scene *sc = &f->scenes[i];
		char name[64];

		warm_up += sc->warm_up_frames;
		warm_slow += sc->warm_up_slow;
		term__escape(name, sizeof(name), sc->name[0] ? sc->name : "-", strlen(sc->name[0] ? sc->name : "-"));
		if (!sc->frames) {
			str__fmt(s, "  %-24s not measured: %llu frames of warm-up only\n", name,
				(unsigned long long)sc->warm_up_frames);
			continue;
		}
		str__fmt(s, "  %-24s %9llu %7llu %9.2f %9.2f %9.2f %9.2f %12.2f\n", name,
			(unsigned long long)sc->frames, (unsigned long long)sc->slow, ms(sc->p50_ns), ms(sc->p95_ns),
			ms(sc->p99_ns), ms(sc->max_ns), per_minute(sc->slow, sc->dur_ns));
	}
	if (warm_up)
		str__fmt(s,
			"  %llu more frames (%llu of them slow), of each scene's warm-up, are in no figure and no "
			"hitch here\n",
			(unsigned long long)warm_up, (unsigned long long)warm_slow);
	for (int i = 0; i < f->n_hitches && i < 10; i++) {
		str__fmt(s, "%s  %llu×, worst %.1f ms: ", i ? "" : "\n", (unsigned long long)f->hitches[i].hitches,
			ms(f->hitches[i].worst_ns));
		add_escaped(s, f->hitches[i].sentence);
		str__add(s, "\n");
	}
	if (f->without_cause)
		str__fmt(s, "  %llu slow frames have no cause here: they were not kept, or not explained in time\n",
			(unsigned long long)f->without_cause);
}

/* ---- JUnit ---- */

static void junit_case(struct str *s, const struct run_facts *f, const char *scene, const char *name)
{
	str__add(s, "  <testcase classname=\"");
	str__xml(s, f->game);
	if (scene[0]) {
		str__add(s, ".");
		str__xml(s, scene);
	}
	str__add(s, "\" name=\"");
	str__xml(s, name);
	str__add(s, "\">");
}

static void junit_check(struct str *s, const struct run_facts *f, const struct run_check *c)
{
	junit_case(s, f, c->scene, c->limit);
	if (c->failed) {
		str__add(s, "<failure message=\"");
		str__xml(s, c->found);
		str__add(s, "\"/>");
	}
	str__add(s, "</testcase>\n");
}

static void junit_scene(struct str *s, const struct run_facts *f, const struct run_scene *sc)
{
	junit_case(s, f, sc->name, "frames");
	if (!sc->frames)
		str__fmt(s, "<skipped message=\"not measured: %llu frames of warm-up only\"/>",
			(unsigned long long)sc->warm_up_frames);
	str__add(s, "</testcase>\n");
}

/* One more case says whether anything was measured: a run without frames must not be green for want of cases. */
static void make_junit(struct str *s, const struct run_facts *f)
{
	bool measured = strcmp(run_facts__result(f), "not measured");
	int failures = 0, skipped = 0;

	for (int i = 0; i < f->n_checks; i++)
		failures += f->checks[i].failed;
	for (int i = 0; i < f->n_scenes; i++)
		skipped += !f->scenes[i].frames;
	str__add(s, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n <testsuite name=\"redframe\" ");
	str__fmt(s, "tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"%d\">\n", 1 + f->n_scenes + f->n_checks,
		failures, !measured, skipped);
	str__add(s, "  <properties>\n");
	for (int i = 0; i < f->n_meta; i++) {
		str__add(s, "   <property name=\"");
		str__xml(s, f->meta[i].name);
		str__add(s, "\" value=\"");
		str__xml(s, f->meta[i].value);
		str__add(s, "\"/>\n");
	}
	str__add(s, "  </properties>\n");
	junit_case(s, f, "", "measured");
	if (!measured) {
		str__add(s, "<error message=\"not measured: ");
		str__xml(s, f->reason[0] ? f->reason : "no frames");
		str__add(s, "\"/>");
	}
	str__add(s, "</testcase>\n");
	for (int i = 0; i < f->n_scenes; i++)
		junit_scene(s, f, &f->scenes[i]);
	for (int i = 0; i < f->n_checks; i++)
		junit_check(s, f, &f->checks[i]);
	str__add(s, " </testsuite>\n</testsuites>\n");
}

/* ---- all ---- */

static int report(struct store *s, const char *run, FILE *to, void (*make)(struct str *, const struct run_facts *))
{
	struct run_facts f;
	struct str out = {0};
	int err = run_facts__load(s, run, &f);

	if (!err) {
		make(&out, &f);
		err = out.oom ? -ENOMEM : 0;
		if (!err && (fwrite(out.s, 1, out.len, to) != out.len || fflush(to)))
			err = errno == EPIPE ? 0 : -errno;
	}
	run_facts__free(&f);
	str__free(&out);
	return err;
}

int run_report__text(struct store *s, const char *run, FILE *to)
{
	return report(s, run, to, make_text);
}

int run_report__json(struct store *s, const char *run, FILE *to)
{
	return report(s, run, to, make_json);
}

int run_report__junit(struct store *s, const char *run, FILE *to)
{
	return report(s, run, to, make_junit);
}

int run_report__openmetrics(struct store *s, const char *run, FILE *to)
{
	return report(s, run, to, run_report__make_openmetrics);
}

int run_report__html(struct store *s, const char *run, FILE *to)
{
	return report(s, run, to, run_report__make_html);
}
