/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>
#include <string.h>

#include "alloc_sites.h"
#include "events_desc.h"
#include "explain_view.h"
#include "names.h"
#include "recording.h"

#define BOLD  "\x1b[1m"
#define RED   "\x1b[31m"
#define DIM   "\x1b[2m"
#define RESET "\x1b[0m"

#define TEXT_PARTS    8u /* rows of a frame; the rest is summed */
#define TEXT_REASONS  3u
#define TEXT_PART_NS  100000u /* what is shorter is summed too … */
#define TEXT_SHARE    50u     /* … or below 1/50 of the whole */
#define TEXT_PATTERNS 10u
#define TEXT_SITES    5u
#define TIMELINE_ROWS 120u /* beyond, stretches below 1/1000 of the frame are summed */

static void on(struct str *s, bool colour, const char *code)
{
	if (colour)
		str__add(s, code);
}

static void add_escaped(struct str *s, const char *text)
{
	char buf[1024]; /* escaped, a byte takes at most four */
	size_t n = strlen(text);

	while (n) {
		size_t k = min(n, (size_t)240);

		while (k < n && k > 200 && ((u8)text[k] & 0xc0) == 0x80)
			k--; /* not in the middle of a character */
		str__add_n(s, buf, term__escape(buf, sizeof(buf), text, k));
		text += k;
		n -= k;
	}
}

static void add_ms(struct str *s, u64 ns)
{
	str__fmt(s, "%.2f ms", ns / 1e6);
}

/* ---- parts ---- */

static void add_figures(struct str *s, const struct part *p)
{
	char a[32];

	if (p->count > 1 && p->cause != CAUSE_CODE)
		str__fmt(s, "  %u×", p->count);
	if (p->bytes)
		str__fmt(s, "  %s", fmt__bytes(a, sizeof(a), p->bytes));
	if (p->cold_bytes)
		str__fmt(s, "  %s cold", fmt__bytes(a, sizeof(a), p->cold_bytes));
	if (p->from < p->to)
		str__fmt(s, "  at 0x%llx…0x%llx", (unsigned long long)p->from, (unsigned long long)p->to);
	if (p->major)
		str__fmt(s, "  %u major", p->major);
	if (p->copied)
		str__fmt(s, "  %u copied", p->copied);
	if (p->huge)
		str__fmt(s, "  %u huge", p->huge);
	if (p->cause == CAUSE_FILE_READ || p->cause == CAUSE_PAGE_FAULT)
		if (p->blocked_ns)
			str__fmt(s, "  device %s", fmt__ns(a, sizeof(a), p->blocked_ns));
}

void text__part(struct str *s, const struct part *p)
{
	if (p->what)
		add_escaped(s, p->what);
	else if (p->cause == CAUSE_CODE && p->share)
		str__add(s, "other functions");
	add_figures(s, p);
	if (p->who && (!p->what || strcmp(p->who, p->what))) {
		str__add(s, p->cause == CAUSE_LOCK_WAIT ? "  held by " : "  ");
		add_escaped(s, p->who);
	}
	if (p->through) {
		str__add(s, "  through ");
		add_escaped(s, p->through);
	}
	if (p->detail) {
		str__add(s, "  (");
		add_escaped(s, p->detail);
		str__add(s, ")");
	}
}

static void add_part(struct str *s, const struct part *p, int depth)
{
	str__fmt(s, "     %*s%-12s %9.2f ms", depth * 2, "", cause_names[p->cause], p->ns / 1e6);
	str__fmt(s, " %+9.2f  ", p->excess_ns / 1e6);
	text__part(s, p);
	str__add(s, "\n");
}

static void add_parts(struct str *s, const struct part *parts, u32 n, int depth)
{
	u64 rest = 0, least = 0;
	u32 left = 0;

	for (u32 i = 0; i < n; i++)
		least += parts[i].ns;
	least = max(least / TEXT_SHARE, (u64)TEXT_PART_NS);
	for (u32 i = 0; i < n; i++) {
		if (i >= (depth ? TEXT_REASONS : TEXT_PARTS) || (i && parts[i].ns < least)) {
			rest += parts[i].ns;
			left++;
			continue;
		}
		add_part(s, &parts[i], depth);
		if (parts[i].n_because)
			add_parts(s, parts[i].because, parts[i].n_because, depth + 1);
	}
	if (left)
		str__fmt(s, "     %*s…            %9.2f ms            %u more\n", depth * 2, "", rest / 1e6, left);
}

static void add_title(struct str *s, const struct verdict *v, const struct model *m, bool colour)
{
	const struct frame *f = &v->frame;
	char name[160];

	thread__name(m, f->tid, name, sizeof(name));
	on(s, colour, BOLD);
	str__fmt(s, "frame %llu", (unsigned long long)f->number);
	on(s, colour, RESET);
	if (model__stream(m, 1)) /* each counts its frames from 0 */
		str__fmt(s, " of %#llx", (unsigned long long)f->stream->stream);
	str__add(s, "  ");
	on(s, colour, v->slow ? RED : "");
	add_ms(s, f->end - f->start);
	on(s, colour, RESET);
	str__fmt(s, "  (%s %.2f ms)  ", v->warm_up ? "budget" : "typical",
		(v->warm_up ? v->budget_ns : v->typical_ns) / 1e6);
	add_escaped(s, name);
	if (f->scene[0]) {
		str__add(s, "  scene ");
		add_escaped(s, f->scene);
	}
	str__add(s, "\n  ");
	add_escaped(s, v->sentence ? v->sentence : "");
	str__add(s, "\n");
}

static void add_thinned(struct str *s, u32 classes)
{
	const char *comma = "";

	str__add(s, "     not recorded whole, to cost the game less: ");
	for (int c = 0; c < CLASS_COUNT; c++) {
		if (!(classes >> c & 1))
			continue;
		str__fmt(s, "%s%s", comma, class_names[c]);
		comma = ", ";
	}
	str__add(s, "\n");
}

void text__frame(struct str *s, const struct verdict *v, const struct model *m, bool colour)
{
	add_title(s, v, m, colour);
	on(s, colour, DIM);
	add_parts(s, v->parts, v->n_parts, 0);
	on(s, colour, RESET);
	if (v->frame.thinned)
		add_thinned(s, v->frame.thinned);
	if (v->not_followed)
		str__fmt(s, "     %u waits were too many to follow\n", v->not_followed);
}

/* ---- one frame in time order ---- */

static void add_stretch(struct str *s, const struct verdict *v, const struct stretch *t, const struct model *m)
{
	const struct part *p = &v->parts[t->part];
	char name[160];

	str__fmt(s, "  %10.3f  %-12s %10.3f  ", (t->start - v->frame.start) / 1e6, cause_names[p->cause],
		(t->end - t->start) / 1e6);
	if (t->what)
		add_escaped(s, t->what);
	if (p->where && p->cause != CAUSE_CODE) {
		str__add(s, "  in ");
		add_escaped(s, p->where);
	}
	if (p->kernel && p->cause != CAUSE_UNEXPLAINED) { /* of that it stands in the row's own words */
		str__add(s, "  kernel: ");
		add_escaped(s, p->kernel);
	}
	if (t->who_tid) {
		thread__name(m, t->who_tid, name, sizeof(name));
		str__add(s, t->what ? "  " : "");
		add_escaped(s, name);
	}
	if (t->waker_tid && t->waker_tid != t->who_tid) {
		thread__name(m, t->waker_tid, name, sizeof(name));
		str__fmt(s, "  woken at %.3f by ", (t->waker_ts - min(v->frame.start, t->waker_ts)) / 1e6);
		add_escaped(s, name);
	}
	str__add(s, "\n");
}

void text__timeline(struct str *s, const struct verdict *v, const struct model *m, bool colour)
{
	u64 least = v->n_stretches > TIMELINE_ROWS ? (v->frame.end - v->frame.start) / 1000 : 0, rest = 0;
	u32 left = 0;

	on(s, colour, BOLD);
	str__fmt(s, "  %10s  %-12s %10s  %s\n", "at ms", "event", "for ms", "what, where");
	on(s, colour, RESET);
	for (u32 i = 0; i < v->n_stretches; i++) {
		const struct stretch *t = &v->stretches[i];

		if (t->end - t->start < least) {
			rest += t->end - t->start;
			left++;
			continue;
		}
		add_stretch(s, v, t, m);
	}
	if (left)
		str__fmt(s, "  %u shorter stretches, %.3f ms in all, are left out\n", left, rest / 1e6);
}

/* ---- the whole recording ---- */

static void add_shares(struct str *s, const struct report *r)
{
	u64 total = 0;
	int order[CAUSE_COUNT], n = 0;

	for (int c = 0; c < CAUSE_COUNT; c++) {
		int i = n;

		if (r->excess_ns[c] <= 0)
			continue;
		total += r->excess_ns[c];
		for (; i && r->excess_ns[order[i - 1]] < r->excess_ns[c]; i--)
			order[i] = order[i - 1];
		order[i] = c;
		n++;
	}
	if (!n)
		return;
	str__add(s, "excess of slow frames:");
	for (int i = 0; i < n; i++)
		if (r->excess_ns[order[i]] * 100 >= (s64)total)
			str__fmt(s, "%s %s %.0f %%", i ? "," : "", cause_names[order[i]],
				100.0 * r->excess_ns[order[i]] / total);
	str__add(s, "\n");
}

static void add_recording(struct str *s, const struct model *m, const struct recording *rec)
{
	const struct model_stats *st = model__stats(m);
	u64 lost = 0;

	for (int c = 0; c < CLASS_COUNT; c++)
		lost += st->lost[c];
	add_escaped(s, model__info(m, "game.name") ?: "a game without a name");
	str__fmt(
		s, " (pid %u), %.1f s, %llu events", model__game(m), model__seconds(m), (unsigned long long)st->events);
	if (lost)
		str__fmt(s, ", %llu LOST", (unsigned long long)lost);
	if (rec && rec->truncated)
		str__add(s, ", cut short");
	if (model__info(m, "frame.source")) {
		str__add(s, ", frames from ");
		add_escaped(s, model__info(m, "frame.source"));
	}
	if (model__info(m, "frame.left")) {
		str__add(s, ", ");
		add_escaped(s, model__info(m, "frame.left"));
	}
	str__add(s, "\n");
}

static void add_frames(struct str *s, const struct report *r)
{
	str__fmt(s, "%llu frames, %llu slow", (unsigned long long)r->frames, (unsigned long long)r->slow);
	if (r->unsure)
		str__fmt(s, " (%llu unsure: records were lost in them)", (unsigned long long)r->unsure);
	str__fmt(s, ", budget %.2f ms (%s), %.1f ms over it\n", r->budget_ns / 1e6, r->budget_from,
		r->over_budget_ns / 1e6);
	str__fmt(s, "ms: mean %.2f, median %.2f, p95 %.2f, p99 %.2f, p99.9 %.2f, max %.2f%s\n", r->mean_ns / 1e6,
		r->p50 / 1e6, r->p95 / 1e6, r->p99 / 1e6, r->p999 / 1e6, r->max / 1e6,
		r->exact ? "" : " (percentiles within 0.1 %)");
	str__fmt(s, "fps: average %.1f, 1 %% low %.1f, 0.1 %% low %.1f\n", r->mean_ns > 0 ? 1e9 / r->mean_ns : 0.0,
		r->low1_fps, r->low01_fps);
}

void text__summary(
	struct str *s, const struct report *r, const struct model *m, const struct recording *rec, bool colour)
{
	on(s, colour, BOLD);
	add_recording(s, m, rec);
	on(s, colour, RESET);
	if (r->frames)
		add_frames(s, r);
	else
		str__add(s, "no frames\n");
	add_shares(s, r);
	if (r->late)
		str__fmt(s, "%llu records came too far out of order to be used\n", (unsigned long long)r->late);
}

void text__pattern(struct str *s, const struct pattern *p)
{
	add_escaped(s, p->text);
	if (p->period_ns)
		str__fmt(s, ", every %.1f s", p->period_ns / 1e9);
	if (p->first_visits == p->count)
		str__add(s, ", only when a scene is entered for the first time");
	str__fmt(s, "; worst frame %llu, %.1f ms", (unsigned long long)p->worst_frame, p->worst_ns / 1e6);
}

static void add_pattern(struct str *s, const struct pattern *p)
{
	str__fmt(s, "  %4llu×  %9.1f ms in all  ", (unsigned long long)p->count, p->excess_ns / 1e6);
	text__pattern(s, p);
	str__add(s, "\n");
}

void text__patterns(struct str *s, const struct report *r)
{
	u32 shown = 0, more = 0;
	u64 once = r->other_patterns;

	for (u32 i = 0; i < r->n_patterns; i++) {
		if (r->patterns[i].count < 2) {
			once++;
		} else if (shown == TEXT_PATTERNS) {
			more++;
		} else {
			str__add(s, shown++ ? "" : "\nthey repeat:\n");
			add_pattern(s, &r->patterns[i]);
		}
	}
	if (more)
		str__fmt(s, "  … and %u more\n", more);
	if (shown && once)
		str__fmt(s, "  %llu other%s came once\n", (unsigned long long)once, once == 1 ? "" : "s");
}

void text__alloc_sites(struct str *s, const struct report *r)
{
	char bytes[32], period[32];

	if (!r->n_alloc_sites || !r->alloc_bytes)
		return;
	str__fmt(s, "\nallocated%s: %s", r->alloc_period ? "" : " in blocks of 1 MiB and more",
		fmt__bytes(bytes, sizeof(bytes), r->alloc_bytes));
	if (r->alloc_period)
		str__fmt(s, ", of the small ones estimated from %llu sample%s, one in %s",
			(unsigned long long)r->alloc_samples, r->alloc_samples == 1 ? "" : "s",
			fmt__bytes(period, sizeof(period), r->alloc_period));
	str__add(s, "\n");
	for (u32 i = 0; i < r->n_alloc_sites && i < TEXT_SITES; i++) {
		const struct alloc_site *a = &r->alloc_sites[i];

		str__fmt(s, "  %4.1f %%  %9s  ", 100.0 * a->bytes / r->alloc_bytes,
			fmt__bytes(bytes, sizeof(bytes), a->bytes));
		add_escaped(s, a->where);
		if (a->samples)
			str__fmt(s, "  %llu sample%s", (unsigned long long)a->samples, a->samples == 1 ? "" : "s");
		if (a->large)
			str__fmt(s, "  %llu large", (unsigned long long)a->large);
		str__add(s, "\n");
	}
}
