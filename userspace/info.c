/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events_desc.h"
#include "exporter.h"
#include "info.h"
#include "log.h"
#include "model.h"
#include "options.h"
#include "recording.h"
#include "replay.h"
#include "strings.h"

struct info_options {
	bool json;
};

#define ROW(name, letter, type, field, value, help)                                                                    \
	{                                                                                                              \
		name, letter, type, offsetof(struct info_options, field), value, help                                  \
	}
static const struct option_row rows[] = {ROW("json", 0, OPT_FLAG, json, NULL, "for programs"), {}};

static const struct verb info = {.name = "info",
	.synopsis = "RECORDING [--json]",
	.about = "Says what is in a recording: the game, how long, how many events of which class, and what was lost.",
	.rows = rows,
	.examples = "  redframe info run.redframe\n"
		    "  redframe info run.redframe --json | jq .counts\n"};

/* An exporter that keeps what the model does not: redframe's own cost. */
struct look {
	struct exporter base;
	struct ev_cost cost; /* the last; kind 0: none */
	u64 ring_used_max, rss_max;
	struct ev_effect effect[CLASS_COUNT]; /* the last of each */
	u32 sheds;
};

static int look_event(struct exporter *e, const struct model *m, const struct ev_hdr *rec)
{
	struct look *l = (struct look *)e;

	l->sheds += rec->kind == EV_SHED && ((const struct ev_shed *)rec)->out;
	if (rec->kind == EV_EFFECT && ((const struct ev_effect *)rec)->class < CLASS_COUNT)
		memcpy(&l->effect[((const struct ev_effect *)rec)->class], rec, sizeof(l->effect[0]));
	if (rec->kind != EV_COST)
		return 0;
	memcpy(&l->cost, rec, sizeof(l->cost));
	l->ring_used_max = max(l->ring_used_max, (u64)l->cost.ring_used);
	l->rss_max = max(l->rss_max, (u64)l->cost.rss);
	return 0;
}

static int look_end(struct exporter *e, const struct model *m, const struct report *r)
{
	return 0;
}

static const struct exporter_ops look_ops = {.name = "info", .event = look_event, .end = look_end};

struct facts {
	const struct recording *r;
	struct model *m;
	const struct look *look;
	u64 late;
};

static double seconds(const struct model *m)
{
	const struct model_stats *s = model__stats(m);

	return s->events ? (double)(s->last - s->first) / 1e9 : 0;
}

/* ---- JSON ---- */

static void add_text(struct str *s, const char *key, const char *value)
{
	str__fmt(s, "\"%s\": ", key);
	if (value)
		json__string(s, value, strlen(value));
	else
		str__add(s, "null");
}

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
	add_text(s, "cmdline", words.s);
	str__free(&words);
}

static void add_game(struct str *s, const struct model *m)
{
	str__fmt(s, "\"game\": {\"pid\": %u, ", model__game(m));
	add_text(s, "name", model__info(m, "game.name"));
	str__add(s, ", ");
	add_text(s, "exe", model__info(m, "game.exe"));
	str__add(s, ", ");
	add_cmdline(s, m);
	str__add(s, "}, ");
	add_text(s, "frame_source", model__info(m, "frame.source"));
	str__add(s, ", ");
	add_text(s, "kernel", model__info(m, "kernel.release"));
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

/* ms that the session measured of itself; 0 in a recording that does not have it */
static double figure(const struct model *m, const char *key)
{
	return strtod(model__info(m, key) ?: "0", NULL);
}

/* what the probes cost the game, estimated: by class, and for a frame where there are any */
static void add_effect(struct str *s, const struct look *l, const struct model *m)
{
	u64 frames = model__stats(m)->frames;
	const char *comma = "";

	str__fmt(s, ", \"left_out\": %u, \"probe_ns\": %.0f, \"classes\": {", l->sheds, figure(m, "cost.probe_ns"));
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
	str__add(s, "}");
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
		figure(m, "session.attach_ms"), figure(m, "session.detach_ms"));
	add_effect(s, l, m);
	str__add(s, "}");
}

static const char *severity_name(u32 severity)
{
	return severity == 0 ? "note" : severity == 1 ? "warning" : "error";
}

static void add_notes(struct str *s, const struct model *m)
{
	u32 i, severity, class;
	const char *text;
	u64 ts;

	str__add(s, ", \"notes\": [");
	for (i = 0; (text = model__note(m, i, &severity, &class, &ts)); i++) {
		str__fmt(s, "%s{\"ts\": %llu, \"severity\": \"%s\", \"class\": \"%s\", ", i ? ", " : "",
			(unsigned long long)ts, severity_name(severity),
			class < CLASS_COUNT ? class_names[class] : "meta");
		add_text(s, "text", text);
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

static void make_json(struct str *s, const struct facts *f)
{
	const struct model_stats *stats = model__stats(f->m);

	str__add(s, "{\"schema\": 1, ");
	add_game(s, f->m);
	str__fmt(s, ", \"duration_s\": %.6f, \"complete\": %s, \"frames\": %llu", seconds(f->m),
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
		(unsigned long long)(f->r->size - f->r->hdr.header_bytes), (unsigned long long)f->r->cut_bytes,
		(unsigned long long)f->r->unknown, (unsigned long long)f->r->malformed, (unsigned long long)f->late);
}

/* ---- text ---- */

/* "label     value", the value escaped; nothing where there is none */
static void row(struct str *s, const char *label, const char *value)
{
	char safe[4096];

	if (!value || !value[0])
		return;
	term__escape(safe, sizeof(safe), value, strlen(value));
	str__fmt(s, "%-10s %s\n", label, safe);
}

static void say_origin(struct str *s, const struct facts *f)
{
	const struct model *m = f->m;
	const char *name = model__info(m, "game.name"), *release = model__info(m, "kernel.release");
	const char *version = model__info(m, "redframe.version"), *key, *value;
	struct str line = {0};
	int i;

	str__fmt(&line, "%s (pid %u)", name ? name : "not known", model__game(m));
	row(s, "game", line.s);
	row(s, "program", model__info(m, "game.exe"));
	str__clear(&line);
	str__fmt(&line, "%.1f s on Linux %s by redframe %s", seconds(m), release ? release : "?",
		version ? version : "?");
	row(s, "recorded", line.s);
	row(s, "frames by", model__info(m, "frame.source"));
	for (i = 0; i < model__info_count(m); i++) {
		model__info_at(m, i, &key, &value);
		if (strncmp(key, "meta.", 5))
			continue;
		str__clear(&line);
		str__fmt(&line, "%s=%s", key + 5, value);
		row(s, "meta", line.s);
	}
	str__free(&line);
}

static void say_stream(struct str *s, const struct model *m, const struct frame_stream *f)
{
	const struct thread *t = model__find_thread(m, f->tid);
	struct str line = {0};

	str__fmt(&line, "%u frames of %#llx by %s (%u)", f->count, (unsigned long long)f->stream,
		t && t->name[0] ? t->name : "thread", f->tid);
	if (f->moves)
		str__fmt(&line, ", %u times by another thread than before", f->moves);
	if (f->steady_ns)
		str__fmt(&line, ", steady at %.1f fps", 1e9 / f->steady_ns);
	if (f->silences)
		str__fmt(&line, ", nothing shown for a second or more %u times, %.1f s in all", f->silences,
			f->silent_ns / 1e9);
	if (f->doubled)
		str__fmt(&line, ", %llu presents were the one before, seen again", (unsigned long long)f->doubled);
	row(s, f->id ? "" : "streams", line.s);
	str__free(&line);
}

#define STREAMS_SAID 8

static void say_streams(struct str *s, const struct model *m)
{
	const struct frame_stream *f;
	u32 i;

	for (i = 0; (f = model__stream(m, i)); i++)
		if (i < STREAMS_SAID)
			say_stream(s, m, f);
	if (i > STREAMS_SAID)
		str__fmt(s, "           and %u more\n", i - STREAMS_SAID);
}

static void say_completeness(struct str *s, const struct facts *f)
{
	const struct recording *r = f->r;

	if (!r->truncated)
		str__add(s, "complete   yes\n");
	else if (r->cut_bytes)
		str__fmt(s, "complete   no: it was cut short, and its last %llu bytes are no whole record\n",
			(unsigned long long)r->cut_bytes);
	else if (!(r->hdr.flags & RECORDING_INCOMPLETE))
		str__fmt(s, "complete   no: the last %llu bytes of the file are missing\n",
			(unsigned long long)(r->hdr.bytes - r->size));
	else
		str__add(s,
			"complete   no: redframe did not come to end it; what is here is good up to the last flush\n");
	if (r->unknown)
		str__fmt(s, "           %llu records of kinds that this redframe does not know were skipped\n",
			(unsigned long long)r->unknown);
	if (r->malformed)
		str__fmt(s, "           %llu records were too short for their kind and skipped\n",
			(unsigned long long)r->malformed);
	if (f->late)
		str__fmt(s, "           %llu records came too late to be put in order\n", (unsigned long long)f->late);
}

static void say_counts(struct str *s, const struct model *m)
{
	const struct model_stats *stats = model__stats(m);
	int i;

	str__fmt(s, "\n%-12s %12s %12s\n", "class", "events", "lost");
	for (i = CLASS_FRAME; i < CLASS_COUNT; i++)
		if (stats->counts[i] || stats->lost[i] || i <= CLASS_ALLOC)
			str__fmt(s, "%-12s %12llu %12llu\n", class_names[i], (unsigned long long)stats->counts[i],
				(unsigned long long)stats->lost[i]);
	str__fmt(s, "\n%-12s %12s\n", "kind", "records");
	for (i = 0; i < 256; i++)
		if (stats->kinds[i])
			str__fmt(s, "%-12s %12llu\n", ev__desc((u8)i)->name, (unsigned long long)stats->kinds[i]);
}

static void say_effect(struct str *s, const struct facts *f)
{
	u64 frames = model__stats(f->m)->frames, ns = 0;
	double secs = seconds(f->m);
	const char *comma = "";
	char text[32];

	for (int c = 0; c < CLASS_COUNT; c++)
		ns += f->look->effect[c].ns;
	if (!ns || secs <= 0)
		return;
	str__fmt(s, "to the game %.2f %% of one CPU by estimate (", (double)ns / 1e7 / secs);
	for (int c = 0; c < CLASS_COUNT; c++) {
		const struct ev_effect *e = &f->look->effect[c];

		if (!e->ns)
			continue;
		str__fmt(s, "%s%s %s", comma, class_names[c],
			fmt__ns(text, sizeof(text), frames ? e->ns / frames : (u64)((double)e->ns / secs)));
		comma = ", ";
	}
	str__fmt(s, " a %s)%s\n", frames ? "frame" : "second",
		f->look->sheds ? "; some was left out for a while: see left_out in --json" : "");
}

static void say_cost(struct str *s, const struct facts *f)
{
	const struct ev_cost *c = &f->look->cost;
	double secs = seconds(f->m);
	char bytes[32], ring[32], rss[32];

	if (!c->hdr.kind)
		return;
	str__fmt(s,
		"\ncost       %.1f %% of one CPU, %s written, ring at most %s full, %s of memory; attached in %.0f ms, "
		"detached in %.0f ms\n",
		secs > 0 ? (double)c->cpu_ns / 1e7 / secs : 0, fmt__bytes(bytes, sizeof(bytes), c->bytes),
		fmt__bytes(ring, sizeof(ring), f->look->ring_used_max), fmt__bytes(rss, sizeof(rss), f->look->rss_max),
		figure(f->m, "session.attach_ms"), figure(f->m, "session.detach_ms"));
}

static void make_text(struct str *s, const struct facts *f)
{
	u32 i, severity, class;
	const char *text;
	u64 ts;

	say_origin(s, f);
	say_streams(s, f->m);
	say_completeness(s, f);
	say_counts(s, f->m);
	say_cost(s, f);
	say_effect(s, f);
	for (i = 0; (text = model__note(f->m, i, &severity, &class, &ts)); i++) {
		if (!i)
			str__add(s, "\n");
		row(s, severity_name(severity), text);
	}
}

static int tell(struct recording *r, bool json)
{
	struct look look = {.base = {.ops = &look_ops, .fd = -1}};
	struct exporter *e = &look.base;
	struct facts f = {.r = r, .m = model__new(), .look = &look};
	struct replay replay = {0};
	struct str s = {0};
	int err;

	err = f.m ? replay__prepare(r, f.m) : -ENOMEM;
	if (!err)
		err = replay__run(r, f.m, NULL, &e, 1, &replay);
	if (err)
		goto cleanup;
	f.late = replay.late;
	(json ? make_json : make_text)(&s, &f);
	err = s.oom ? -ENOMEM : 0;
	if (!err && (fwrite(s.s, 1, s.len, stdout) != s.len || fflush(stdout)))
		err = errno == EPIPE ? 0 : -errno;
cleanup:
	str__free(&s);
	model__free(f.m);
	return err;
}

int verb__info(int argc, char **argv)
{
	struct info_options o = {0};
	struct recording r;
	int n, command, err;

	err = options__parse(&info, argc, argv, &o, &n, &command);
	if (err)
		return err > 0 ? EXIT_OK : EXIT_USAGE;
	if (n != 1) {
		log_err("info: name one recording: redframe info RECORDING");
		return EXIT_USAGE;
	}
	err = recording__open(&r, argv[0]);
	if (err) {
		log_err("%s: %s", argv[0], recording__strerror(err));
		return EXIT_USAGE;
	}
	err = tell(&r, o.json);
	if (err)
		log_err("%s: %s", argv[0], errstr(err));
	recording__close(&r);
	return err ? EXIT_NOT_MEASURED : EXIT_OK;
}
