/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#include "events_desc.h"
#include "info_facts.h"

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
	str__fmt(&line, "%.1f s on Linux %s by redframe %s", model__seconds(m), release ? release : "?",
		version ? version : "?");
	row(s, "recorded", line.s);
	row(s, "frames by", model__info(m, "frame.source"));
	row(s, "", model__info(m, "frame.left"));
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

	str__fmt(&line, "%u frames by %s (%u)", f->count, t && t->name[0] ? t->name : "thread", f->tid);
	if (f->stream) /* a window or a swapchain */
		str__fmt(&line, " to %#llx", (unsigned long long)f->stream);
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
	double secs = model__seconds(f->m);
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

/* where it is worth a line: a tenth of a percent */
static void say_others(struct str *s, const struct facts *f)
{
	double secs = model__seconds(f->m);
	struct others o;

	if (!facts__others(f->m, &o) || secs <= 0 || (double)o.ns < 1e6 * secs)
		return;
	str__fmt(s,
		"to others  %.2f %% of one CPU by estimate, by %llu system calls and %llu page faults of other "
		"processes, %llu of them within system calls; what the game waits for is late by as much\n",
		(double)o.ns / 1e7 / secs, o.calls, o.user_faults + o.kernel_faults, o.kernel_faults);
}

static void say_cost(struct str *s, const struct facts *f)
{
	const struct ev_cost *c = &f->look->cost;
	double secs = model__seconds(f->m);
	char bytes[32], ring[32], rss[32];

	if (!c->hdr.kind)
		return;
	str__fmt(s,
		"\ncost       %.1f %% of one CPU, %s written, ring at most %s full, %s of memory; attached in %.0f ms, "
		"detached in %.0f ms\n",
		secs > 0 ? (double)c->cpu_ns / 1e7 / secs : 0, fmt__bytes(bytes, sizeof(bytes), c->bytes),
		fmt__bytes(ring, sizeof(ring), f->look->ring_used_max), fmt__bytes(rss, sizeof(rss), f->look->rss_max),
		facts__figure(f->m, "session.attach_ms"), facts__figure(f->m, "session.detach_ms"));
	if (model__info(f->m, "sample.hz"))
		str__fmt(s,
			"samples    %s a second of each CPU; a tick of their timer takes %.1f us from what runs "
			"there\n",
			model__info(f->m, "sample.hz"), facts__figure(f->m, "cost.tick_ns") / 1e3);
}

void facts__text(struct str *s, const struct facts *f)
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
	say_others(s, f);
	for (i = 0; (text = model__note(f->m, i, &severity, &class, &ts)); i++) {
		if (!i)
			str__add(s, "\n");
		row(s, facts__severity(severity), text);
	}
}
