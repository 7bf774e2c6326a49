/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A run as a page.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "page.h"
#include "run_report_html.h"

/* of a path: what has a meaning in a URL is escaped, so that a path never becomes a scheme or a script */
static void add_link(struct str *s, const char *path)
{
	str__add(s, path[0] == '/' ? "file://" : "./");
	for (; *path; path++) {
		bool plain = (*path >= 'a' && *path <= 'z') || (*path >= 'A' && *path <= 'Z') ||
			     (*path >= '0' && *path <= '9') || strchr("/._-", *path);

		if (plain)
			str__add_n(s, path, 1);
		else
			str__fmt(s, "%%%02X", (unsigned char)*path);
	}
}

/* ---- head ---- */

static void add_head(struct str *s, const struct run_facts *f)
{
	const char *result = run_facts__result(f);
	time_t at = (time_t)(f->started_ms / 1000);
	struct tm tm;
	char when[32] = "";

	if (gmtime_r(&at, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M UTC", &tm);
	page__begin(s, f->game, result);
	str__add(s, "<h1>");
	str__xml(s, f->game);
	str__fmt(s, ": <span class=\"%s\">%s</span></h1>\n<p>", strcmp(result, "passed") ? "bad" : "good", result);
	if (f->reason[0]) {
		str__xml(s, f->reason);
		str__add(s, ". ");
	}
	str__fmt(s, "%llu frames, begun %s. <span class=\"dim\">Run %s, redframe ", (unsigned long long)f->frames, when,
		f->id);
	str__xml(s, f->version);
	str__add(s, "</span></p>\n");
}

/* ---- the plot ---- */

static void add_line(struct str *s, const struct run_facts *f, size_t offset, const char *colour, double top, u64 end)
{
	str__fmt(s, "<polyline fill=\"none\" stroke=\"var(--%s)\" stroke-width=\"1.5\" points=\"", colour);
	for (int i = 0; i < f->n_columns; i++) {
		const struct run_column *c = &f->columns[i];

		str__fmt(s, "%.1f,%.1f ", plot__x(c->start_ms, end),
			plot__y(*(const u64 *)((const char *)c + offset), top));
	}
	str__add(s, "\"/>");
}

static double top_of(const struct run_facts *f)
{
	u64 p99 = 0;

	for (int i = 0; i < f->n_columns; i++)
		p99 = max(p99, f->columns[i].p99_ns);
	return fmin(fmax((double)p99 / 1e6 * 1.1, 20), 1000);
}

static void add_plot(struct str *s, const struct run_facts *f)
{
	double top = top_of(f);
	u64 end = f->n_columns ? f->columns[f->n_columns - 1].start_ms : 0;

	if (f->n_columns < 2)
		return;
	str__add(s, "<h2>Frame time</h2>\n");
	page__begin_plot(s, "Frame time over the run: median, 99th percentile and maximum", top);
	add_line(s, f, offsetof(struct run_column, max_ns), "max", top, end);
	add_line(s, f, offsetof(struct run_column, p99_ns), "p99", top, end);
	add_line(s, f, offsetof(struct run_column, p50_ns), "p50", top, end);
	page__end_plot(s, 0, (double)end / 1e3);
	str__fmt(s,
		"<p class=\"dim\">ms over time: <span style=\"color:var(--p50)\">median</span>, <span "
		"style=\"color:var(--p99)\">99th percentile</span>, <span style=\"color:var(--max)\">maximum</span> of "
		"each stretch; cut at %.0f ms.</p>\n",
		top);
}

/* ---- tables ---- */

static void add_scenes(struct str *s, const struct run_facts *f)
{
	str__add(s, "<h2>Scenes</h2>\n<table><thead><tr><th>scene</th><th>frames</th><th>p50 "
		    "ms</th><th>p95</th><th>p99</th>"
		    "<th>max</th><th>hitches/min</th><th>cold</th><th>peak memory</th></tr></thead><tbody>\n");
	for (int i = 0; i < f->n_scenes; i++) {
		const struct run_scene *sc = &f->scenes[i];
		char cold[32], rss[32];

		str__add(s, "<tr><td>");
		str__xml(s, sc->name[0] ? sc->name : "(no scene)");
		if (!sc->frames) {
			str__fmt(s, "</td><td colspan=\"8\">not measured: %llu frames of warm-up only</td></tr>\n",
				(unsigned long long)sc->warm_up_frames);
			continue;
		}
		str__fmt(s, "</td><td>%llu</td>", (unsigned long long)sc->frames);
		page__cell_ms(s, sc->p50_ns);
		page__cell_ms(s, sc->p95_ns);
		page__cell_ms(s, sc->p99_ns);
		page__cell_ms(s, sc->max_ns);
		str__fmt(s, "<td>%.2f</td><td>%s</td><td>%s</td></tr>\n",
			sc->dur_ns ? (double)sc->slow / ((double)sc->dur_ns / 60e9) : 0.0,
			fmt__bytes(cold, sizeof(cold), sc->cold_bytes),
			sc->peak_rss ? fmt__bytes(rss, sizeof(rss), sc->peak_rss) : "not measured");
	}
	str__add(s, "</tbody></table>\n<p class=\"dim\">Without each scene's warm-up.</p>\n");
}

static void add_causes(struct str *s, const struct run_facts *f)
{
	u64 most = 1;

	for (int i = 0; i < f->n_causes; i++)
		most = max(most, f->causes[i].excess_ns);
	str__add(s, "<h2>Causes</h2>\n<table><thead><tr><th>cause</th><th "
		    "class=\"t\">scene</th><th>hitches</th><th>excess ms"
		    "</th><th class=\"t\" style=\"width:40%\"></th></tr></thead><tbody>\n");
	for (int i = 0; i < f->n_causes; i++) {
		const struct run_cause *c = &f->causes[i];

		if (!c->excess_ns && !c->hitches)
			continue;
		str__fmt(s, "<tr><td>%s</td><td class=\"t\">", c->cause);
		str__xml(s, c->scene);
		str__fmt(s, "</td><td>%llu</td>", (unsigned long long)c->hitches);
		page__cell_ms(s, c->excess_ns);
		page__cell_bar(s, (double)c->excess_ns, (double)most, "p99");
		str__add(s, "</tr>\n");
	}
	str__add(s, "</tbody></table>\n");
}

static void add_hitches(struct str *s, const struct run_facts *f)
{
	str__add(s, f->n_hitches ? "<h2>Worst hitches</h2>\n" : "<h2>No hitches</h2>\n");
	for (int i = 0; i < f->n_hitches; i++) {
		const struct run_hitch *h = &f->hitches[i];

		str__fmt(s, "<details%s><summary><b>", i < 5 ? " open" : "");
		page__ms(s, h->worst_ns);
		str__fmt(s, " ms</b>, %llu×: ", (unsigned long long)h->hitches);
		str__xml(s, h->text[0] ? h->text : h->cause);
		str__add(s, "</summary><p>");
		str__xml(s, h->sentence);
		str__fmt(s, "</p><p class=\"dim\">frame %llu at %.1f s", (unsigned long long)h->worst_frame,
			(double)h->worst_ms / 1e3);
		if (h->scene[0]) {
			str__add(s, " in ");
			str__xml(s, h->scene);
		}
		str__add(s, ", excess in all ");
		page__ms(s, h->excess_ns);
		str__add(s, " ms");
		if (h->trace[0]) {
			str__add(s, ": <a href=\"");
			add_link(s, h->trace);
			str__add(s, "\">");
			str__xml(s, h->trace);
			str__add(s, "</a>");
		}
		str__add(s, "</p></details>\n");
	}
}

static void add_without_cause(struct str *s, const struct run_facts *f)
{
	if (f->without_cause)
		str__fmt(s,
			"<p class=\"dim\">%llu slow frames have no cause here: they were not kept, or not explained in "
			"time.</p>\n",
			(unsigned long long)f->without_cause);
}

static void add_past(struct str *s, const struct run_facts *f)
{
	u64 most = 1;

	for (int i = 0; i < f->n_past; i++)
		most = max(most, f->past[i].p99_ns);
	if (f->n_past < 2)
		return;
	str__add(s, "<h2>Builds before</h2>\n<table><thead><tr><th>build</th><th class=\"t\">run</th><th>p50 "
		    "ms</th><th>p99</th>"
		    "<th class=\"t\" style=\"width:40%\"></th></tr></thead><tbody>\n");
	for (int i = 0; i < f->n_past; i++) {
		const struct run_past *p = &f->past[i];

		str__add(s, "<tr><td>");
		str__xml(s, p->build);
		str__fmt(s, "</td><td class=\"t\">%.8s%s</td>", p->id, strcmp(p->id, f->id) ? "" : " (this)");
		page__cell_ms(s, p->p50_ns);
		page__cell_ms(s, p->p99_ns);
		str__fmt(s,
			"<td class=\"t\"><svg viewBox=\"0 0 100 4\" aria-hidden=\"true\"><rect width=\"%.1f\" "
			"height=\"4\" "
			"fill=\"var(--p99)\"/><rect width=\"%.1f\" height=\"4\" "
			"fill=\"var(--p50)\"/></svg></td></tr>\n",
			100.0 * (double)p->p99_ns / (double)most, 100.0 * (double)p->p50_ns / (double)most);
	}
	str__add(s, "</tbody></table>\n<p class=\"dim\">Runs of this game with equal device and options, all scenes "
		    "together.</p>\n");
}

static void add_checks(struct str *s, const struct run_facts *f)
{
	if (!f->n_checks)
		return;
	str__add(s, "<h2>Limits</h2>\n<table><thead><tr><th>limit</th><th class=\"t\">scene</th><th "
		    "class=\"t\">found</th><th>"
		    "</th></tr></thead><tbody>\n");
	for (int i = 0; i < f->n_checks; i++) {
		const struct run_check *c = &f->checks[i];

		str__add(s, "<tr><td>");
		str__xml(s, c->limit);
		str__add(s, "</td><td class=\"t\">");
		str__xml(s, c->scene);
		str__add(s, "</td><td class=\"t\">");
		str__xml(s, c->found);
		str__fmt(s, "</td><td class=\"%s\">%s</td></tr>\n", c->failed ? "bad" : "good",
			c->failed ? "failed" : "kept");
	}
	str__add(s, "</tbody></table>\n");
}

static void add_pairs(struct str *s, const char *title, const struct run_pair *p, int n)
{
	if (!n)
		return;
	str__fmt(s, "<details><summary>%s</summary><table><tbody>\n", title);
	for (int i = 0; i < n; i++) {
		str__add(s, "<tr><td>");
		str__xml(s, p[i].name);
		str__add(s, "</td><td class=\"t\"><code>");
		str__xml(s, p[i].value);
		str__add(s, "</code></td></tr>\n");
	}
	str__add(s, "</tbody></table></details>\n");
}

void run_report__make_html(struct str *s, const struct run_facts *f)
{
	add_head(s, f);
	add_plot(s, f);
	add_scenes(s, f);
	add_checks(s, f);
	add_causes(s, f);
	add_hitches(s, f);
	add_without_cause(s, f);
	add_past(s, f);
	str__add(s, "<h2>About this run</h2>\n");
	add_pairs(s, "Metadata", f->meta, f->n_meta);
	add_pairs(s, "Counters", f->counters, f->n_counters);
	add_pairs(s, "Notes, with their ms since the start", f->notes, f->n_notes);
	page__end(s);
}
