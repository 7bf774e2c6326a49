/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A page for a person: frame time over the recording, what slow frames cost by cause, and the worst of them with their
 * sentences. It tells of the frames that it was given: where only a part of a recording is exported, of that part.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "events_desc.h"
#include "explain_view.h"
#include "exporter.h"
#include "histogram.h"
#include "model.h"
#include "names.h"
#include "output.h"
#include "page.h"

#define COLUMNS       800 /* of the plot; beyond, two neighbours become one */
#define WORST         25
#define OPEN          3 /* of them: the others open by a key or a click */
#define PATTERNS      10
#define DEEPEST       2 /* "because" below a cause */
#define CLOSE_UP      8 /* budgets high: what is longer is cut off in the plot */
#define LEAST_PART_NS 100000

/* One or several frames, in order of their ends. */
struct column {
	u64 start, longest;
	bool slow;
};

struct html {
	struct exporter base;
	struct output out;
	struct str page;
	struct view *view;
	struct histogram times;
	struct column columns[COLUMNS];
	u32 n, per, in_last; /* frames a column, and in the last of them */
	u64 slow, unsure, end;
	s64 excess_ns[CAUSE_COUNT];
	u64 budget_ns; /* the last */
};

/* ---- one frame ---- */

/* Frees them. */
static void add_words(struct str *s, struct str *words)
{
	str__xml(s, words->s ?: "");
	s->oom |= words->oom;
	str__free(words);
}

static void add_part(struct str *s, const struct part *p, int depth)
{
	static const char *const indents[] = {"", " class=\"deep\"", " class=\"deeper\""};
	struct str words = {};

	str__fmt(s, "<tr><td%s>%s</td><td>%.2f</td><td>%+.2f</td><td class=\"t\">", indents[depth],
		cause_names[p->cause], (double)p->ns / 1e6, (double)p->excess_ns / 1e6);
	text__part(&words, p);
	add_words(s, &words);
	str__add(s, "</td></tr>\n");
	for (u32 i = 0; i < p->n_because && depth < DEEPEST; i++)
		if (p->because[i].ns >= LEAST_PART_NS)
			add_part(s, &p->because[i], depth + 1);
}

static void add_frame(struct str *s, const struct verdict *v, const struct model *m)
{
	const struct frame *f = &v->frame;
	char name[160];
	u64 rest = 0;

	str__add(s, "<details><summary><b>");
	page__ms(s, f->end - f->start);
	str__fmt(s, " ms</b>, frame %llu: ", (unsigned long long)f->number);
	str__xml(s, v->sentence ?: "");
	str__fmt(s, "</summary><p class=\"dim\">%s %.2f ms, ", v->warm_up ? "budget" : "typical",
		(double)(v->warm_up ? v->budget_ns : v->typical_ns) / 1e6);
	thread__name(m, f->tid, name, sizeof(name));
	str__xml(s, name);
	if (model__stream(m, 1))
		str__fmt(s, ", stream %u", f->stream->id);
	if (f->scene[0]) {
		str__add(s, ", scene ");
		str__xml(s, f->scene);
	}
	if (f->lost)
		str__fmt(s, ", <span class=\"bad\">%llu events lost in it</span>", (unsigned long long)f->lost);
	str__add(s, "</p><table><thead><tr><th>cause</th><th>ms</th><th>over typical</th><th class=\"t\">what</th></tr>"
		    "</thead><tbody>\n");
	for (u32 i = 0; i < v->n_parts; i++) {
		if (v->parts[i].ns >= LEAST_PART_NS)
			add_part(s, &v->parts[i], 0);
		else
			rest += v->parts[i].ns;
	}
	if (rest)
		str__fmt(s, "<tr><td>…</td><td>%.2f</td><td></td><td class=\"t\">the rest</td></tr>\n",
			(double)rest / 1e6);
	str__add(s, "</tbody></table></details>\n");
}

/* ---- as an exporter ---- */

static void html_close(struct exporter *e)
{
	struct html *h = (struct html *)e;

	view__free(h->view);
	histogram__free(&h->times);
	str__free(&h->page);
	free(h);
}

static struct exporter *html_open(int fd)
{
	struct view_options o = {.worst = WORST, .write = add_frame};
	struct html *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->base = (struct exporter){.ops = &exporter_html, .fd = fd};
	h->out.fd = fd;
	h->per = 1;
	h->view = view__new(&o);
	if (h->view)
		return &h->base;
	html_close(&h->base);
	return NULL;
}

static int html_event(struct exporter *e, const struct model *m, const struct ev_hdr *rec)
{
	return 0;
}

static void halve(struct html *h)
{
	for (u32 i = 0; i < COLUMNS / 2; i++) {
		const struct column *a = &h->columns[2 * i], *b = a + 1;

		h->columns[i] =
			(struct column){min(a->start, b->start), max(a->longest, b->longest), a->slow || b->slow};
	}
	h->n = COLUMNS / 2;
	h->per *= 2;
	h->in_last = h->per;
}

static void add_to_plot(struct html *h, const struct verdict *v)
{
	const struct frame *f = &v->frame;
	struct column *c;

	if (h->n == COLUMNS && h->in_last == h->per)
		halve(h);
	if (!h->n || h->in_last == h->per) {
		h->columns[h->n++] = (struct column){.start = f->start};
		h->in_last = 0;
	}
	c = &h->columns[h->n - 1];
	c->longest = max(c->longest, f->end - f->start);
	c->slow |= v->slow;
	h->in_last++;
	h->end = max(h->end, f->end);
}

static int html_frame(struct exporter *e, const struct model *m, const struct verdict *v)
{
	struct html *h = (struct html *)e;

	view__verdict(v, m, h->view);
	add_to_plot(h, v);
	h->budget_ns = v->budget_ns ?: h->budget_ns;
	h->slow += v->slow;
	h->unsure += v->slow && v->unsure;
	for (u32 i = 0; v->slow && i < v->n_parts; i++)
		if (__builtin_add_overflow(h->excess_ns[v->parts[i].cause], max(v->parts[i].excess_ns, (s64)0),
			    &h->excess_ns[v->parts[i].cause]))
			h->excess_ns[v->parts[i].cause] = INT64_MAX; /* centuries: only a damaged file has them */
	return histogram__add(&h->times, v->frame.end - v->frame.start);
}

/* ---- the page ---- */

static const char *game_of(const struct model *m)
{
	const char *name = model__info(m, "game.name");

	return name && *name ? name : "a game without a name";
}

/* r tells of the frames that were given, and of no others */
static bool is_whole(const struct html *h, const struct report *r)
{
	return r && r->frames == h->times.n;
}

static void add_head(struct html *h, const struct model *m, const struct report *r)
{
	struct str *s = &h->page;
	double mean = h->times.n ? (double)h->times.sum / (double)h->times.n : 0;

	page__begin(s, game_of(m), "slow frames");
	str__add(s, "<h1>");
	str__xml(s, game_of(m));
	str__fmt(s, ": <span class=\"%s\">%llu of %llu frames slow</span></h1>\n<p>", h->slow ? "bad" : "good",
		(unsigned long long)h->slow, (unsigned long long)h->times.n);
	if (!is_whole(h, r))
		str__add(s, "Only a part of the recording. ");
	str__fmt(s, "Budget %.2f ms, mean %.2f (%.1f fps).", (double)h->budget_ns / 1e6, mean / 1e6,
		mean > 0 ? 1e9 / mean : 0);
	if (h->unsure)
		str__fmt(s,
			" <span class=\"bad\">Of %llu slow frames the reasons are unsure: events were lost in "
			"them.</span>",
			(unsigned long long)h->unsure);
	str__add(s, "</p>\n<table><thead><tr><th>frames</th><th>median ms</th><th>p95</th><th>p99</th><th>p99.9</th>"
		    "<th>max</th></tr></thead><tbody>\n");
	str__fmt(s, "<tr><td>%llu</td>", (unsigned long long)h->times.n);
	page__cell_ms(s, histogram__rank(&h->times, 500));
	page__cell_ms(s, histogram__rank(&h->times, 950));
	page__cell_ms(s, histogram__rank(&h->times, 990));
	page__cell_ms(s, histogram__rank(&h->times, 999));
	page__cell_ms(s, h->times.max);
	str__add(s, "</tr></tbody></table>\n");
}

static void add_bars(struct html *h, bool slow, double top)
{
	u64 zero = h->columns[0].start;

	str__fmt(&h->page, "<path fill=\"none\" stroke=\"var(--%s)\" stroke-width=\"%s\" d=\"", slow ? "bad" : "p50",
		slow ? "2" : "1");
	for (u32 i = 0; i < h->n; i++) {
		const struct column *c = &h->columns[i];

		if (c->slow == slow)
			str__fmt(&h->page, "M%.1f,%dV%.1f", plot__x(c->start - min(zero, c->start), h->end - zero),
				PLOT_BASE, plot__y(c->longest, top));
	}
	str__add(&h->page, "\"/>");
}

static void add_plot(struct html *h)
{
	double top = (double)h->times.max * 1.05 / 1e6, budget = (double)h->budget_ns / 1e6, from;
	double close_up = fmax(budget, (double)histogram__rank(&h->times, 500) / 1e6) * CLOSE_UP;
	struct str *s = &h->page;

	if (!h->n)
		return;
	top = fmax(fmin(top, close_up), 1);
	from = (double)(s64)(h->columns[0].start - h->base.zero) / 1e9;
	str__add(s, "<h2>Frame time</h2>\n");
	page__begin_plot(s, "Duration of the frames over time, slow ones in another colour", top);
	add_bars(h, false, top);
	add_bars(h, true, top);
	if (h->budget_ns)
		str__fmt(s,
			"<line x1=\"40\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"var(--max)\" "
			"stroke-dasharray=\"4\"/>",
			PLOT_W - 10, plot__y(h->budget_ns, top), plot__y(h->budget_ns, top));
	page__end_plot(s, from, from + (double)(h->end - h->columns[0].start) / 1e9);
	str__add(s, "<p class=\"dim\">ms over time: ");
	if (h->per > 1)
		str__fmt(s, "the longest of each %u frames; ", h->per);
	str__add(s, "<span style=\"color:var(--bad)\">slow</span> and <span style=\"color:var(--p50)\">other</span> "
		    "frames; dashed: the budget");
	if ((double)h->times.max / 1e6 > top)
		str__fmt(s, "; cut at %.0f ms", top);
	str__add(s, ".</p>\n");
}

static void add_causes(struct html *h)
{
	s64 most = 0;

	for (int i = 0; i < CAUSE_COUNT; i++)
		most = max(most, h->excess_ns[i]);
	if (!most)
		return;
	str__add(&h->page, "<h2>What slow frames spent more than typical ones</h2>\n<table><thead><tr><th>cause</th>"
			   "<th>ms in all</th><th class=\"t\" style=\"width:50%\"></th></tr></thead><tbody>\n");
	for (int n = 0; n < CAUSE_COUNT; n++) {
		int c = 0;

		for (int i = 1; i < CAUSE_COUNT; i++)
			c = h->excess_ns[i] > h->excess_ns[c] ? i : c;
		if (h->excess_ns[c] <= 0)
			break;
		str__fmt(&h->page, "<tr><td>%s</td>", cause_names[c]);
		page__cell_ms(&h->page, (u64)h->excess_ns[c]);
		page__cell_bar(&h->page, (double)h->excess_ns[c], (double)most, "p99");
		str__add(&h->page, "</tr>\n");
		h->excess_ns[c] = 0;
	}
	str__add(&h->page, "</tbody></table>\n");
}

static int add_worst(struct html *h)
{
	struct str frames = {};
	int err = view__worst(h->view, &frames), open = 0;
	u64 shown = min(h->slow, (u64)WORST);

	if (!h->slow)
		str__add(&h->page, h->times.n ? "<h2>No slow frames</h2>\n" : "<h2>No frames: not measured</h2>\n");
	else
		str__fmt(&h->page, "<h2>The worst %llu of %llu slow frames</h2>\n", (unsigned long long)shown,
			(unsigned long long)h->slow);
	for (const char *p = frames.s, *end; p && *p; p = end) {
		end = strstr(p + 1, "<details>");
		end = end ?: p + strlen(p);
		str__add(&h->page, open++ < OPEN ? "<details open>" : "<details>");
		p += strlen("<details>");
		str__add_n(&h->page, p, (size_t)(end - p));
	}
	h->page.oom |= frames.oom;
	str__free(&frames);
	return err;
}

static void add_patterns(struct str *s, const struct report *r)
{
	u32 shown = 0;

	for (u32 i = 0; i < r->n_patterns && shown < PATTERNS; i++) {
		const struct pattern *p = &r->patterns[i];
		struct str words = {};

		if (p->count < 2)
			continue;
		if (!shown++)
			str__add(s, "<h2>They repeat</h2>\n<table><thead><tr><th>slow frames</th><th>ms in all</th><th "
				    "class=\"t\">what</th></tr></thead><tbody>\n");
		str__fmt(s, "<tr><td>%llu</td>", (unsigned long long)p->count);
		page__cell_ms(s, (u64)max(p->excess_ns, (s64)0));
		str__add(s, "<td class=\"t\">");
		text__pattern(&words, p);
		add_words(s, &words);
		str__add(s, "</td></tr>\n");
	}
	if (shown)
		str__add(s, "</tbody></table>\n");
}

static void add_losses(struct html *h, const struct model *m)
{
	const struct model_stats *stats = model__stats(m);
	struct str *s = &h->page;
	u32 severity, class;
	const char *text;
	u64 ts;

	str__add(s, "<h2>About this recording</h2>\n<p>");
	str__fmt(s, "%.1f s, %llu events", model__seconds(m), (unsigned long long)stats->events);
	for (int i = 0; i < CLASS_COUNT; i++)
		if (stats->lost[i])
			str__fmt(s, ", <span class=\"bad\">%llu of %s lost</span>", (unsigned long long)stats->lost[i],
				class_names[i]);
	if (model__info(m, "frame.source")) {
		str__add(s, ", frames from ");
		str__xml(s, model__info(m, "frame.source"));
	}
	str__add(s, ".</p>\n");
	for (u32 i = 0; (text = model__note(m, i, &severity, &class, &ts)); i++) {
		str__add(s, i ? "<li>" : "<details><summary>What could not be done</summary><ul>\n<li>");
		str__xml(s, text);
		str__add(s, "</li>\n");
	}
	if (stats->notes)
		str__add(s, "</ul></details>\n");
}

static int html_end(struct exporter *e, const struct model *m, const struct report *r)
{
	struct html *h = (struct html *)e;
	int err;

	add_head(h, m, r);
	add_plot(h);
	add_causes(h);
	if (is_whole(h, r))
		add_patterns(&h->page, r);
	err = add_worst(h);
	add_losses(h, m);
	page__end(&h->page);
	if (err || h->page.oom)
		return err ?: -ENOMEM;
	output__write(&h->out, h->page.s, h->page.len);
	return output__flush(&h->out);
}

const struct exporter_ops exporter_html = {.name = "html",
	.suffix = ".html",
	.frames_only = true,
	.open = html_open,
	.event = html_event,
	.frame = html_frame,
	.end = html_end,
	.close = html_close};
