/* SPDX-License-Identifier: GPL-2.0-only */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compare.h"

const char *const metric_words[METRIC_CAUSES] = {[METRIC_P50] = "p50_ms",
	[METRIC_P95] = "p95_ms",
	[METRIC_P99] = "p99_ms",
	[METRIC_LOW1] = "low1_ms",
	[METRIC_HITCHES] = "hitches_per_min",
	[METRIC_COLD] = "cold_bytes_per_frame",
	[METRIC_ALLOCS] = "allocations_per_frame",
	[METRIC_MEMORY] = "peak_rss_bytes"};

static const char *const labels[METRIC_CAUSES] = {[METRIC_P50] = "p50",
	[METRIC_P95] = "p95",
	[METRIC_P99] = "p99",
	[METRIC_LOW1] = "1% low",
	[METRIC_HITCHES] = "hitches",
	[METRIC_COLD] = "cold reads a frame",
	[METRIC_ALLOCS] = "allocations a frame",
	[METRIC_MEMORY] = "peak memory"};

const char *metric__label(enum metric_id id, char *buf, size_t size)
{
	if (id < METRIC_CAUSES)
		snprintf(buf, size, "%s", labels[id]);
	else
		snprintf(buf, size, "%s hitches", cause_names[id - METRIC_CAUSES]);
	return buf;
}

void metric__value(struct str *s, enum metric_id id, double v, bool sign)
{
	const char *plus = !sign ? "" : v < 0 ? "-" : "+";
	double abs = sign ? fabs(v) : v;
	char bytes[32];

	if (id <= METRIC_LOW1)
		str__fmt(s, "%s%.2f ms", plus, abs);
	else if (id == METRIC_HITCHES || id >= METRIC_CAUSES)
		str__fmt(s, "%s%.2f/min", plus, abs);
	else if (id == METRIC_ALLOCS)
		str__fmt(s, "%s%.1f", plus, abs);
	else
		str__fmt(s, "%s%s", plus, fmt__bytes(bytes, sizeof(bytes), (u64)fabs(abs)));
}

static const char *change_word(const struct fingerprint_change *f)
{
	return (const char *const[]){"", "new", "gone", "more", "less"}[f->change];
}

static const char *metric_word(const struct metric *m)
{
	return m->worse ? "worse" : m->better ? "better" : "";
}

static void add_escaped(struct str *s, const char *text)
{
	char buf[1024];

	str__add_n(s, buf, term__escape(buf, sizeof(buf), text, strlen(text)));
}

static void conclusion(struct str *s, const struct comparison *c)
{
	int measured = 0;

	for (int i = 0; i < c->n_scenes; i++)
		measured += !c->scenes[i].why_not;
	add_escaped(s, c->new_name);
	if (!measured || c->disturbed)
		str__add(s, " could not be compared with ");
	else
		str__add(s, c->worse ? " is worse than " : c->better ? " is better than " : " is no worse than ");
	add_escaped(s, c->base_name);
	if (c->base.n > 1 || c->new.n > 1)
		str__fmt(s, " (%d and %d runs)", c->new.n, c->base.n);
	if (c->refuted)
		str__add(s, ": what seemed worse was not confirmed");
	else if (c->confirming && c->worse)
		str__add(s, ", confirmed");
}

/* What others took of the machine, where that matters; in one sentence. */
static void machine(struct str *s, const struct comparison *c, const char *begin)
{
	double more = c->new_others - c->base_others;
	const char *so = !c->disturbed ? ""
			 : c->worse    ? " What got worse is waiting, for a CPU too, and may be due to that."
				       : " What got worse may be hidden by that.";

	if (c->base_others < 0 || c->new_others < 0 || (!c->disturbed && fabs(more) < COMPARE_BUSIER))
		return;
	str__fmt(s,
		"%sThe machine was busy: others had %.0f %% of its CPU time in the new runs, in the base %.0f %%.%s\n",
		begin, c->new_others, c->base_others, so);
}

/* ---- text ---- */

static void text_metric(struct str *s, enum metric_id id, const struct metric *m)
{
	struct str cells[4] = {0};
	char label[64];

	metric__value(&cells[0], id, m->base, false);
	metric__value(&cells[1], id, m->new, false);
	metric__value(&cells[2], id, m->new - m->base, true);
	if (id == METRIC_MEMORY) {
		str__add(&cells[3], "");
	} else {
		str__add(&cells[3], "[");
		metric__value(&cells[3], id, m->low, true);
		str__add(&cells[3], ", ");
		metric__value(&cells[3], id, m->high, true);
		str__add(&cells[3], "]");
	}
	str__fmt(s, "  %-24s %12s %12s %12s  %-28s %s\n", metric__label(id, label, sizeof(label)), cells[0].s,
		cells[1].s, cells[2].s, cells[3].s, metric_word(m));
	for (int i = 0; i < 4; i++)
		str__free(&cells[i]);
}

static void text_change(struct str *s, const struct fingerprint_change *f)
{
	str__fmt(s, "  %-5s %.2f/min, was %.2f/min: ", change_word(f), f->new_rate, f->base_rate);
	add_escaped(s, f->text);
	if (f->first[0]) {
		str__add(s, ", first seen in ");
		add_escaped(s, f->first);
	}
	str__add(s, "\n");
}

static void text_scene(struct str *s, const struct scene_comparison *sc)
{
	str__add(s, "\n");
	add_escaped(s, sc->name[0] ? sc->name : "(no scene)");
	if (sc->why_not) {
		str__fmt(s, ": not measured: %s\n", sc->why_not);
		return;
	}
	str__fmt(s, ": %llu frames, base %llu\n", (unsigned long long)sc->new_frames,
		(unsigned long long)sc->base_frames);
	str__fmt(s, "  %-24s %12s %12s %12s  %s\n", "", "base", "new", "change", "95 % interval");
	for (int id = 0; id < METRIC_COUNT; id++)
		if (sc->stats.metrics[id].measured)
			text_metric(s, (enum metric_id)id, &sc->stats.metrics[id]);
	for (int i = 0; i < sc->n_changes; i++)
		if (sc->changes[i].change)
			text_change(s, &sc->changes[i]);
}

void compare__text(struct str *s, const struct comparison *c)
{
	conclusion(s, c);
	str__add(s, "\n");
	machine(s, c, "  ");
	for (int i = 0; i < c->n_scenes; i++) {
		if (!c->scenes[i].answer)
			continue;
		str__add(s, "  ");
		add_escaped(s, c->scenes[i].answer);
		str__add(s, "\n");
	}
	for (int i = 0; i < c->n_scenes; i++)
		text_scene(s, &c->scenes[i]);
}

/* ---- Markdown: what a game named is text, never markup ---- */

static void add_plain(struct str *s, const char *text)
{
	for (; *text; text++) {
		if (strchr("\\`*_{}[]<>()#+-!|~&@", *text))
			str__add(s, "\\");
		str__add_n(s, (unsigned char)*text < ' ' ? " " : text, 1);
	}
}

static void markdown_scene(struct str *s, const struct scene_comparison *sc)
{
	char label[64];

	str__add(s, "\n### ");
	add_plain(s, sc->name[0] ? sc->name : "no scene");
	if (sc->why_not) {
		str__fmt(s, "\n\nNot measured: %s.\n", sc->why_not);
		return;
	}
	str__add(s, "\n\n| metric | base | new | change | |\n|---|---:|---:|---:|---|\n");
	for (int id = 0; id < METRIC_COUNT; id++) {
		const struct metric *m = &sc->stats.metrics[id];

		if (!m->measured)
			continue;
		str__fmt(s, "| %s | ", metric__label((enum metric_id)id, label, sizeof(label)));
		metric__value(s, (enum metric_id)id, m->base, false);
		str__add(s, " | ");
		metric__value(s, (enum metric_id)id, m->new, false);
		str__add(s, " | ");
		metric__value(s, (enum metric_id)id, m->new - m->base, true);
		str__fmt(s, " | %s |\n", m->worse ? "**worse**" : metric_word(m));
	}
	str__add(s, "\n");
	for (int i = 0; i < sc->n_changes; i++) {
		const struct fingerprint_change *f = &sc->changes[i];

		if (!f->change)
			continue;
		str__fmt(s, "- %s, %.2f/min after %.2f/min: ", change_word(f), f->new_rate, f->base_rate);
		add_plain(s, f->text);
		if (f->first[0]) {
			str__add(s, ", first seen in ");
			add_plain(s, f->first);
		}
		str__add(s, "\n");
	}
}

void compare__markdown(struct str *s, const struct comparison *c)
{
	struct str line = {0};

	conclusion(&line, c);
	str__add(s, "## ");
	add_plain(s, line.s ?: "");
	str__add(s, "\n\n");
	str__free(&line);
	machine(s, c, "- ");
	for (int i = 0; i < c->n_scenes; i++) {
		if (!c->scenes[i].answer)
			continue;
		str__add(s, "- ");
		add_plain(s, c->scenes[i].answer);
		str__add(s, "\n");
	}
	for (int i = 0; i < c->n_scenes; i++)
		markdown_scene(s, &c->scenes[i]);
}

/* ---- JSON ---- */

static void json_side(struct str *s, const char *key, const char *name, const struct run_set *set)
{
	str__fmt(s, "\"%s\": {", key);
	json__member(s, "name", name);
	str__add(s, ", \"runs\": [");
	for (int i = 0; i < set->n; i++)
		str__fmt(s, "%s\"%s\"", i ? ", " : "", set->ids[i]);
	str__add(s, "]}");
}

static void json_metric(struct str *s, int id, const struct metric *m)
{
	if (id < METRIC_CAUSES)
		str__fmt(s, "{\"metric\": \"%s\"", metric_words[id]);
	else
		str__fmt(s, "{\"metric\": \"hitches_per_min\", \"cause\": \"%s\"", cause_names[id - METRIC_CAUSES]);
	str__fmt(s, ", \"base\": %.6f, \"new\": %.6f, \"change\": %.6f", m->base, m->new, m->new - m->base);
	if (id != METRIC_MEMORY)
		str__fmt(s, ", \"interval95\": [%.6f, %.6f], \"p\": %.6f", m->low, m->high, m->p);
	str__fmt(s, ", \"needed\": %.6f, \"noise\": %.6f, \"worse\": %s, \"better\": %s}", m->needed, m->noise,
		m->worse ? "true" : "false", m->better ? "true" : "false");
}

static void json_change(struct str *s, const struct fingerprint_change *f)
{
	str__fmt(s, "{\"fingerprint\": \"%s\", \"change\": \"%s\", ", f->key, f->change ? change_word(f) : "none");
	json__member(s, "cause", f->cause);
	str__add(s, ", ");
	json__member(s, "text", f->text);
	str__fmt(s, ", \"base_per_min\": %.6f, \"new_per_min\": %.6f, \"worst_ms\": %.6f", f->base_rate, f->new_rate,
		(double)f->worst_ns / 1e6);
	if (f->first[0]) {
		str__add(s, ", ");
		json__member(s, "first_seen", f->first);
	}
	str__add(s, "}");
}

static void json_scene(struct str *s, const struct scene_comparison *sc)
{
	int n = 0;

	str__add(s, "{");
	json__member(s, "scene", sc->name);
	str__fmt(s, ", \"base_frames\": %llu, \"new_frames\": %llu, ", (unsigned long long)sc->base_frames,
		(unsigned long long)sc->new_frames);
	json__member(s, "not_measured", sc->why_not);
	str__add(s, ", ");
	json__member(s, "answer", sc->answer);
	str__add(s, ",\n   \"metrics\": [");
	for (int id = 0; id < METRIC_COUNT && !sc->why_not; id++) {
		if (!sc->stats.metrics[id].measured)
			continue;
		str__add(s, n++ ? ",\n    " : "\n    ");
		json_metric(s, id, &sc->stats.metrics[id]);
	}
	str__add(s, "],\n   \"hitches\": [");
	for (int i = 0; i < sc->n_changes; i++) {
		str__add(s, i ? ",\n    " : "\n    ");
		json_change(s, &sc->changes[i]);
	}
	str__add(s, "]}");
}

static void maybe_percent(struct str *s, const char *key, double percent)
{
	if (percent < 0)
		str__fmt(s, "\"%s\": null", key);
	else
		str__fmt(s, "\"%s\": %.3f", key, percent);
}

static void json_machine(struct str *s, const struct comparison *c)
{
	str__add(s, "\"machine\": {");
	maybe_percent(s, "base_others_percent", c->base_others);
	str__add(s, ", ");
	maybe_percent(s, "new_others_percent", c->new_others);
	str__fmt(s, ", \"disturbed\": %s}", c->disturbed ? "true" : "false");
}

void compare__json(struct str *s, const struct comparison *c)
{
	str__add(s, "{\"schema\": 1,\n ");
	json_side(s, "base", c->base_name, &c->base);
	str__add(s, ",\n ");
	json_side(s, "new", c->new_name, &c->new);
	str__add(s, ",\n ");
	json_machine(s, c);
	str__fmt(s, ",\n \"worse\": %s, \"better\": %s, \"confirmed\": %s,\n \"scenes\": [",
		c->worse ? "true" : "false", c->better ? "true" : "false",
		!c->confirming ? "null"
		: c->worse     ? "true"
			       : "false");
	for (int i = 0; i < c->n_scenes; i++) {
		str__add(s, i ? ",\n  " : "\n  ");
		json_scene(s, &c->scenes[i]);
	}
	str__add(s, "]}\n");
}
