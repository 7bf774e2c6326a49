/* SPDX-License-Identifier: GPL-2.0-only
 *
 * explain --json, schema 1. Times are milliseconds with six decimals, so that what sums in nanoseconds sums here.
 */
#include <string.h>

#include "alloc_sites.h"
#include "events_desc.h"
#include "explain_view.h"
#include "kernel_wait.h"
#include "maps.h"
#include "names.h"
#include "recording.h"

#define ALLOC_SITES 100u /* the rest is in the sum only */

static void add_ms(struct str *s, const char *key, u64 ns)
{
	str__fmt(s, "\"%s\": %llu.%06llu", key, (unsigned long long)(ns / 1000000), (unsigned long long)(ns % 1000000));
}

static void add_signed_ms(struct str *s, const char *key, s64 ns)
{
	u64 abs = ns < 0 ? 0 - (u64)ns : (u64)ns;

	str__fmt(s, "\"%s\": %s%llu.%06llu", key, ns < 0 ? "-" : "", (unsigned long long)(abs / 1000000),
		(unsigned long long)(abs % 1000000));
}

static void add_u64(struct str *s, const char *key, u64 v)
{
	str__fmt(s, "\"%s\": %llu", key, (unsigned long long)v);
}

/* ", " and a member, where there is something to say */
static void maybe_u64(struct str *s, const char *key, u64 v)
{
	if (!v)
		return;
	str__add(s, ", ");
	add_u64(s, key, v);
}

static void maybe_text(struct str *s, const char *key, const char *text)
{
	if (!text)
		return;
	str__add(s, ", ");
	json__member(s, key, text);
}

static void maybe_ms(struct str *s, const char *key, u64 ns)
{
	if (!ns)
		return;
	str__add(s, ", ");
	add_ms(s, key, ns);
}

/* ---- a frame ---- */

static void add_thread(struct str *s, const char *key, const struct model *m, u32 tid)
{
	const struct thread *t = model__find_thread(m, tid);
	const struct process *p = t && !t->game && t->tgid ? model__find_process(m, t->tgid) : NULL;

	str__fmt(s, "\"%s\": {\"tid\": %u, ", key, tid);
	json__member(s, "name", t ? t->name : "");
	if (p) {
		str__fmt(s, ", \"process\": {\"pid\": %u, ", p->tgid);
		json__member(s, "name", p->name);
		str__add(s, "}");
	}
	str__add(s, "}");
}

static void add_size(struct str *s, const struct part *p)
{
	bool file = p->cause == CAUSE_FILE_READ || p->cause == CAUSE_FILE_WRITE;

	if (p->bytes || file) {
		str__add(s, ", ");
		add_u64(s, "bytes", p->bytes);
	}
	if (p->cold_bytes || p->cause == CAUSE_FILE_READ) {
		str__add(s, ", ");
		add_u64(s, "cold_bytes", p->cold_bytes);
	}
	if (p->from < p->to) {
		str__fmt(s, ", \"offsets\": [%llu, %llu]", (unsigned long long)p->from, (unsigned long long)p->to);
	}
}

static void add_places(struct str *s, const char *key, const struct place *at, u32 n)
{
	str__fmt(s, ", \"%s\": [", key);
	for (u32 i = 0; i < n; i++, at++) {
		str__add(s, i ? ", {" : "{");
		json__member(s, "func", at->func);
		maybe_text(s, "file", at->file ? path__base(at->file) : NULL);
		maybe_u64(s, "line", at->line);
		maybe_text(s, "path", at->file);
		maybe_text(s, "object", at->object);
		str__add(s, "}");
	}
	str__add(s, "]");
}

/* innermost first, from the game's own code on; what that called of the system's libraries stands apart */
static void add_where(struct str *s, const struct part *p)
{
	struct place only = {.func = p->where};

	if (!p->where && !p->n_places)
		return;
	if (!p->n_places) {
		add_places(s, "where", &only, 1);
		return;
	}
	add_places(s, "where", p->places + p->n_system, p->n_places - p->n_system);
	if (p->n_system)
		add_places(s, "where_system", p->places, p->n_system);
	if (p->where_cut)
		str__add(s, ", \"where_truncated\": true");
}

static void add_kernel(struct str *s, const struct part *p, const struct model *m)
{
	u32 chain = p->kernel_chain, n = 0;
	const char *name;

	if (!p->kernel)
		return;
	str__add(s, ", \"kernel\": [");
	while ((name = kernel_wait__function(m, &chain))) {
		str__add(s, n++ ? ", " : "");
		json__string(s, name, strlen(name));
	}
	str__add(s, "]");
}

static void add_parts(struct str *s, const struct part *parts, u32 n, const struct model *m);

static void add_part(struct str *s, const struct part *p, const struct model *m)
{
	str__fmt(s, "{\"cause\": \"%s\", ", cause_names[p->cause]);
	add_ms(s, "ms", p->ns);
	str__add(s, ", ");
	add_signed_ms(s, "excess_ms", p->excess_ns);
	str__add(s, ", ");
	add_u64(s, "count", p->count);
	maybe_text(s, "what", p->what);
	if (p->lock)
		maybe_text(s, "kind", lock__word(p->lock));
	add_size(s, p);
	maybe_u64(s, "major_faults", p->major);
	maybe_u64(s, "minor_faults", p->minor);
	maybe_u64(s, "copied_pages", p->copied);
	maybe_u64(s, "huge_faults", p->huge);
	maybe_u64(s, "samples", p->samples);
	maybe_ms(s, "off_cpu_ms", p->blocked_ns);
	maybe_ms(s, "latency_ms", p->latency_ns);
	maybe_ms(s, "other_cpu_idle_ms", p->idle_elsewhere_ns);
	maybe_ms(s, "late_ms", p->late_ns);
	maybe_text(s, "detail", p->detail);
	add_where(s, p);
	add_kernel(s, p, m);
	if (p->who_tid) {
		str__add(s, ", ");
		add_thread(s, "who", m, p->who_tid);
	}
	if (p->through_tid) {
		str__add(s, ", ");
		add_thread(s, "through", m, p->through_tid);
	}
	if (p->who_prio && p->who_prio < 100)
		str__fmt(s, ", \"who_realtime\": %d", 99 - p->who_prio);
	else if (p->who_prio)
		str__fmt(s, ", \"who_nice\": %d", p->who_prio - 120);
	maybe_text(s, "who_cgroup", p->who_cgroup);
	maybe_u64(s, "who_others", p->who_others);
	if (p->cycle)
		str__add(s, ", \"cycle\": true");
	if (p->n_because) {
		str__add(s, ", \"because\": [");
		add_parts(s, p->because, p->n_because, m); /* at most BECAUSE_DEPTH down */
		str__add(s, "]");
	}
	str__add(s, "}");
}

static void add_parts(struct str *s, const struct part *parts, u32 n, const struct model *m)
{
	for (u32 i = 0; i < n; i++) {
		if (i)
			str__add(s, ", ");
		add_part(s, &parts[i], m);
	}
}

/* the classes of which redframe left something out, to cost the game less */
static void add_thinned(struct str *s, const struct frame *f)
{
	const char *comma = "";

	if (!f->thinned)
		return;
	str__add(s, ", \"thinned\": [");
	for (int c = 0; c < CLASS_COUNT; c++) {
		if (!(f->thinned >> c & 1))
			continue;
		str__fmt(s, "%s\"%s\"", comma, class_names[c]);
		comma = ", ";
	}
	str__add(s, "]");
}

static void add_lost(struct str *s, const struct frame *f)
{
	const char *comma = "";

	if (!f->lost)
		return;
	str__add(s, ", \"lost\": {");
	for (int c = 0; c < CLASS_COUNT; c++) {
		if (!f->lost_class[c])
			continue;
		str__fmt(s, "%s\"%s\": %llu", comma, class_names[c], (unsigned long long)f->lost_class[c]);
		comma = ", ";
	}
	str__add(s, "}");
}

/* what was free is not known of every allocator */
static void add_heap(struct str *s, const struct verdict *v)
{
	if (!v->heap_grown)
		return;
	str__add(s, ", \"heap\": {");
	add_u64(s, "grown_bytes", v->heap_grown);
	if (v->heap_size) {
		maybe_u64(s, "size_bytes", v->heap_size);
		str__fmt(s, ", \"free_bytes\": %llu, \"free_pieces\": %u", (unsigned long long)v->heap_free,
			v->heap_pieces);
		maybe_u64(s, "largest_free_bytes", v->heap_largest);
		str__fmt(s, ", \"all_counted\": %s, \"fragmented\": %s", v->heap_cut ? "false" : "true",
			v->fragmented ? "true" : "false");
	}
	str__add(s, "}");
}

void json__frame(struct str *s, const struct verdict *v, const struct model *m)
{
	const struct frame *f = &v->frame;

	str__add(s, "{\"frame\": ");
	str__fmt(s, "%llu, \"index\": %u, \"stream\": %u, ", (unsigned long long)f->number, f->index, f->stream->id);
	add_thread(s, "thread", m, f->tid);
	str__fmt(s, ", \"start_ns\": %llu, ", (unsigned long long)f->start);
	add_ms(s, "duration_ms", f->end - f->start);
	str__add(s, ", ");
	add_ms(s, "budget_ms", v->budget_ns);
	str__add(s, ", ");
	add_ms(s, "typical_ms", v->warm_up ? v->budget_ns : v->typical_ns);
	str__fmt(s, ", \"typical_from\": \"%s\", ", v->warm_up ? "budget" : "median");
	add_u64(s, "lost_events", f->lost);
	add_lost(s, f);
	add_thinned(s, f);
	str__fmt(s, ", \"unsure\": %s, \"slow\": %s", v->unsure ? "true" : "false", v->slow ? "true" : "false");
	maybe_text(s, "scene", f->scene[0] ? f->scene : NULL);
	maybe_u64(s, "allocations", v->allocs);
	maybe_u64(s, "allocated_bytes", v->alloc_bytes);
	add_heap(s, v);
	if (v->alloc_most_where) {
		str__add(s, ", \"allocated_most\": {");
		json__member(s, "where", v->alloc_most_where);
		maybe_u64(s, "estimated_bytes", v->alloc_most_bytes);
		maybe_u64(s, "samples", v->alloc_most_samples);
		maybe_u64(s, "of_samples", v->alloc_samples);
		str__add(s, "}");
	}
	maybe_u64(s, "waits_not_followed", v->not_followed);
	str__add(s, ", ");
	json__member(s, "verdict", v->sentence);
	str__add(s, ", \"causes\": [");
	add_parts(s, v->parts, v->n_parts, m);
	str__add(s, "]}");
}

/* ---- around the frames ---- */

static void add_game(struct str *s, const struct model *m)
{
	const char *key, *value, *comma = "";

	str__add(s, "\"game\": {");
	json__member(s, "name", model__info(m, "game.name"));
	str__fmt(s, ", \"pid\": %u, ", model__game(m));
	json__member(s, "exe", model__info(m, "game.exe"));
	str__add(s, "}, ");
	json__member(s, "frame_source", model__info(m, "frame.source"));
	if (model__info(m, "frame.left")) {
		str__add(s, ", ");
		json__member(s, "frame_source_left", model__info(m, "frame.left"));
	}
	str__add(s, ", ");
	json__member(s, "kernel", model__info(m, "kernel.release"));
	str__add(s, ", \"meta\": {");
	for (int i = 0; i < model__info_count(m); i++) {
		model__info_at(m, i, &key, &value);
		if (strncmp(key, "meta.", 5))
			continue;
		str__add(s, comma);
		json__string(s, key + 5, strlen(key + 5));
		str__add(s, ": ");
		json__string(s, value, strlen(value));
		comma = ", ";
	}
	str__add(s, "}");
}

static void add_recording(struct str *s, const struct model *m, const struct recording *rec)
{
	const struct model_stats *st = model__stats(m);
	u64 lost = 0;

	for (int c = 0; c < CLASS_COUNT; c++)
		lost += st->lost[c];
	str__add(s, "\"recording\": {");
	add_game(s, m);
	str__fmt(s, ", \"duration_s\": %.6f, \"events\": %llu, \"lost_events\": %llu, \"truncated\": %s}",
		model__seconds(m), (unsigned long long)st->events, (unsigned long long)lost,
		rec && rec->truncated ? "true" : "false");
}

static void add_frames(struct str *s, const struct report *r)
{
	static const struct {
		const char *key;
		size_t offset;
	} ranks[] = {{"p50_ms", offsetof(struct report, p50)}, {"p95_ms", offsetof(struct report, p95)},
		{"p99_ms", offsetof(struct report, p99)}, {"p999_ms", offsetof(struct report, p999)},
		{"max_ms", offsetof(struct report, max)}};

	str__fmt(s, "\"frames\": {\"count\": %llu, \"slow\": %llu, \"unsure\": %llu, ", (unsigned long long)r->frames,
		(unsigned long long)r->slow, (unsigned long long)r->unsure);
	add_ms(s, "budget_ms", r->budget_ns);
	str__add(s, ", ");
	json__member(s, "budget_from", r->budget_from);
	str__fmt(s, ", \"mean_ms\": %.6f", r->mean_ns / 1e6);
	for (size_t i = 0; i < ARRAY_SIZE(ranks); i++) {
		str__add(s, ", ");
		add_ms(s, ranks[i].key, *(const u64 *)((const char *)r + ranks[i].offset));
	}
	str__fmt(s, ", \"low1_fps\": %.3f, \"low01_fps\": %.3f, ", r->low1_fps, r->low01_fps);
	add_ms(s, "over_budget_ms", r->over_budget_ns);
	str__fmt(s, ", \"percentiles_exact\": %s, \"excess_ms\": {", r->exact ? "true" : "false");
	for (int c = 0, n = 0; c < CAUSE_COUNT; c++) {
		if (r->excess_ns[c] <= 0)
			continue;
		str__add(s, n++ ? ", " : "");
		add_ms(s, cause_names[c], r->excess_ns[c]);
	}
	str__add(s, "}}");
}

void json__head(struct str *s, const struct report *r, const struct model *m, const struct recording *rec)
{
	str__add(s, "{\"schema\": 1,\n ");
	add_recording(s, m, rec);
	str__add(s, ",\n ");
	add_frames(s, r);
	str__add(s, ",\n \"slow_frames\": [");
}

static void add_pattern(struct str *s, const struct pattern *p)
{
	str__add(s, "{");
	json__member(s, "text", p->text);
	str__fmt(s, ", \"cause\": \"%s\", \"count\": %llu, ", cause_names[p->cause], (unsigned long long)p->count);
	add_ms(s, "excess_ms", max(p->excess_ns, (s64)0));
	str__add(s, ", ");
	add_u64(s, "worst_frame", p->worst_frame);
	str__add(s, ", ");
	add_ms(s, "worst_ms", p->worst_ns);
	maybe_ms(s, "period_ms", p->period_ns);
	maybe_u64(s, "first_visits", p->first_visits);
	str__add(s, "}");
}

static void add_alloc_sites(struct str *s, const struct report *r)
{
	if (!r->n_alloc_sites)
		return;
	str__fmt(s,
		",\n \"allocations\": {\"sampled_every_bytes\": %llu, \"samples\": %llu, \"bytes\": %llu, \"sites\": [",
		(unsigned long long)r->alloc_period, (unsigned long long)r->alloc_samples,
		(unsigned long long)r->alloc_bytes);
	for (u32 i = 0; i < r->n_alloc_sites && i < ALLOC_SITES; i++) {
		const struct alloc_site *a = &r->alloc_sites[i];

		str__add(s, i ? ",\n  {" : "\n  {");
		json__member(s, "where", a->where);
		str__fmt(s, ", \"bytes\": %llu, \"samples\": %llu, \"large\": %llu}", (unsigned long long)a->bytes,
			(unsigned long long)a->samples, (unsigned long long)a->large);
	}
	str__add(s, "]}");
}

void json__tail(struct str *s, const struct report *r)
{
	str__add(s, "],\n \"patterns\": [");
	for (u32 i = 0; i < r->n_patterns; i++) {
		str__add(s, i ? ",\n  " : "\n  ");
		add_pattern(s, &r->patterns[i]);
	}
	str__add(s, "]");
	add_alloc_sites(s, r);
	str__add(s, "}\n");
}
