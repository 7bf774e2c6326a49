/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#include "events_desc.h"
#include "info_facts.h"

/* the INFO keys that begin with `prefix`, without it, as members */
static void add_infos(struct str *s, const struct model *m, const char *prefix)
{
	const char *key, *value, *comma = "";
	size_t n = strlen(prefix);
	int i;

	for (i = 0; i < model__info_count(m); i++) {
		model__info_at(m, i, &key, &value);
		if (strncmp(key, prefix, n))
			continue;
		str__add(s, comma);
		json__string(s, key + n, strlen(key + n));
		str__add(s, ": ");
		json__string(s, value, strlen(value));
		comma = ", ";
	}
}

/* the game's command line with spaces between the words; null where it is not known */
static void add_cmdline(struct str *s, const struct model *m)
{
	const struct process *p = model__find_process(m, model__game(m));
	struct str words = {0};
	size_t i;

	if (model__info(m, "game.cmdline"))
		str__add(&words, model__info(m, "game.cmdline"));
	else if (p && p->cmdline)
		for (i = 0; i < p->cmdline_len; i++)
			str__add_n(&words, p->cmdline[i] ? &p->cmdline[i] : " ", 1);
	json__member(s, "cmdline", words.s);
	str__free(&words);
}

static void add_game(struct str *s, const struct model *m)
{
	str__fmt(s, "\"game\": {\"pid\": %u, ", model__game(m));
	json__member(s, "name", model__info(m, "game.name"));
	str__add(s, ", ");
	json__member(s, "exe", model__info(m, "game.exe"));
	str__add(s, ", ");
	add_cmdline(s, m);
	str__add(s, "}, ");
	json__member(s, "frame_source", model__info(m, "frame.source"));
	str__add(s, ", ");
	json__member(s, "frame_source_left", model__info(m, "frame.left"));
	str__add(s, ", ");
	json__member(s, "kernel", model__info(m, "kernel.release"));
	str__add(s, ", \"meta\": {");
	add_infos(s, m, "meta.");
	str__add(s, "}");
}

static void add_classes(struct str *s, const char *name, const u64 *values)
{
	int c;

	str__fmt(s, ", \"%s\": {", name);
	for (c = CLASS_FRAME; c < CLASS_COUNT; c++)
		str__fmt(s, "%s\"%s\": %llu", c == CLASS_FRAME ? "" : ", ", class_names[c],
			(unsigned long long)values[c]);
	str__add(s, "}");
}

static void add_kinds(struct str *s, const struct model_stats *stats)
{
	const char *comma = "";
	int k;

	str__add(s, ", \"kinds\": [");
	for (k = 0; k < 256; k++) {
		if (!stats->kinds[k])
			continue;
		str__fmt(s, "%s{\"kind\": \"%s\", \"count\": %llu}", comma, ev__desc((u8)k)->name,
			(unsigned long long)stats->kinds[k]);
		comma = ", ";
	}
	str__add(s, "]");
}

/* what the probes cost the game, estimated: by class, and for a frame where there are any */
static void add_effect(struct str *s, const struct look *l, const struct model *m)
{
	u64 frames = model__stats(m)->frames;
	const char *comma = "";
	struct others others;

	str__fmt(s, ", \"left_out\": %u, \"probe_ns\": %.0f, \"classes\": {", l->sheds,
		facts__figure(m, "cost.probe_ns"));
	for (int c = 0; c < CLASS_COUNT; c++) {
		const struct ev_effect *e = &l->effect[c];

		if (!e->hdr.kind)
			continue;
		str__fmt(s, "%s\"%s\": {\"hits\": %llu, \"ms\": %.3f, \"us_per_frame\": ", comma, class_names[c],
			(unsigned long long)e->hits, (double)e->ns / 1e6);
		if (frames)
			str__fmt(s, "%.3f}", (double)e->ns / 1e3 / (double)frames);
		else
			str__add(s, "null}");
		comma = ", ";
	}
	str__add(s, "}, \"programs\": {");
	add_infos(s, m, "cost.program.");
	str__add(s, "}, ");
	if (facts__others(m, &others))
		str__fmt(s,
			"\"others\": {\"user_faults\": %llu, \"kernel_faults\": %llu, \"calls\": %llu, \"ms\": %.3f}, ",
			others.user_faults, others.kernel_faults, others.calls, (double)others.ns / 1e6);
	json__member(s, "measured", model__info(m, "cost.measured"));
}

static void add_cost(struct str *s, const struct look *l, const struct model *m)
{
	const struct ev_cost *c = &l->cost;

	if (!c->hdr.kind) {
		str__add(s, ", \"cost\": null");
		return;
	}
	str__fmt(s,
		", \"cost\": {\"cpu_ms\": %.3f, \"bytes\": %llu, \"records\": %llu, \"wakeups\": %llu, "
		"\"ring_used_max\": %llu, \"rss_max\": %llu, \"attach_ms\": %.1f, \"detach_ms\": %.1f",
		(double)c->cpu_ns / 1e6, (unsigned long long)c->bytes, (unsigned long long)c->records,
		(unsigned long long)c->wakeups, (unsigned long long)l->ring_used_max, (unsigned long long)l->rss_max,
		facts__figure(m, "session.attach_ms"), facts__figure(m, "session.detach_ms"));
	add_effect(s, l, m);
	str__add(s, "}");
}

static void add_notes(struct str *s, const struct model *m)
{
	u32 i, severity, class;
	const char *text;
	u64 ts;

	str__add(s, ", \"notes\": [");
	for (i = 0; (text = model__note(m, i, &severity, &class, &ts)); i++) {
		str__fmt(s, "%s{\"ts\": %llu, \"severity\": \"%s\", \"class\": \"%s\", ", i ? ", " : "",
			(unsigned long long)ts, facts__severity(severity),
			class < CLASS_COUNT ? class_names[class] : "meta");
		json__member(s, "text", text);
		str__add(s, "}");
	}
	str__add(s, "]");
}

static void add_streams(struct str *s, const struct model *m)
{
	const struct frame_stream *f;
	u32 i;

	str__add(s, ", \"streams\": [");
	for (i = 0; (f = model__stream(m, i)); i++)
		str__fmt(s,
			"%s{\"stream\": %u, \"tid\": %u, \"frames\": %u, \"doubled\": %llu, \"moves\": %u, "
			"\"silences\": %u, \"silent_ms\": %.1f, \"steady_fps\": %.3f}",
			i ? ", " : "", i, f->tid, f->count, (unsigned long long)f->doubled, f->moves, f->silences,
			f->silent_ns / 1e6, f->steady_ns ? 1e9 / f->steady_ns : 0);
	str__add(s, "]");
}

void facts__json(struct str *s, const struct facts *f)
{
	const struct model_stats *stats = model__stats(f->m);

	str__add(s, "{\"schema\": 1, ");
	add_game(s, f->m);
	str__fmt(s, ", \"duration_s\": %.6f, \"complete\": %s, \"frames\": %llu", model__seconds(f->m),
		f->r->truncated ? "false" : "true", (unsigned long long)stats->frames);
	add_classes(s, "counts", stats->counts);
	add_classes(s, "lost", stats->lost);
	add_kinds(s, stats);
	add_streams(s, f->m);
	add_notes(s, f->m);
	add_cost(s, f->look, f->m);
	str__fmt(s,
		", \"file\": {\"record_bytes\": %llu, \"cut_bytes\": %llu, \"unknown_records\": %llu, "
		"\"malformed_records\": "
		"%llu, "
		"\"late_records\": %llu}}\n",
		(unsigned long long)(min(f->r->size, f->r->end) - f->r->hdr.header_bytes),
		(unsigned long long)f->r->cut_bytes, (unsigned long long)f->r->unknown,
		(unsigned long long)f->r->malformed, (unsigned long long)f->late);
}
