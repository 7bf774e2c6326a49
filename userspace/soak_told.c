// SPDX-License-Identifier: GPL-2.0-only
/* What the engine tells of a run, into the store and to the user. */
#include <errno.h>
#include <stdio.h>

#include "log.h"
#include "model.h"
#include "soak_run.h"

void soak__note(struct soak *k, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_warn("%s", text);
	if (k->ledger)
		ledger__note(k->ledger, k->o->replay ? engine__stats(k->engine)->last : clock_boot_ns(), text);
}

static void on_note(void *arg, const char *text)
{
	soak__note(arg, "%s", text);
}

/* Only what is not the default, which runs had before there was a choice: by this runs can be compared, or not. */
static void describe_warm_up(struct soak *k)
{
	char seconds[32];

	if ((u64)(k->o->warm_up_seconds * 1e9) == LEDGER_WARM_NS)
		return;
	snprintf(seconds, sizeof(seconds), "%g", k->o->warm_up_seconds);
	ledger__meta(k->ledger, "option.warm-up", seconds);
}

static void on_frame(void *arg, const struct soak_frame *f, const struct model *m)
{
	struct soak *k = arg;

	if (!k->described) {
		k->described = true;
		ledger__describe(k->ledger, m);
		describe_warm_up(k);
	}
	if (f->suspended) {
		k->suspended++;
		return;
	}
	ledger__verdict(k->ledger, f->v, m, NULL, NULL);
	if (!ledger__is_warm_up(k->ledger))
		soak_limits__frame(&k->limits, f->v->frame.scene, &f->did, f->failed);
}

static void on_hitch(void *arg, const struct finding *f)
{
	struct soak *k = arg;
	char trace[32];
	struct ledger_hitch h = {.fingerprint = f->fingerprint,
		.cause = f->cause,
		.excess_ns = f->excess_ns,
		.start = f->start,
		.end = f->end,
		.number = f->number,
		.text = f->text,
		.what = f->what[0] ? f->what : NULL,
		.who = f->who[0] ? f->who : NULL,
		.where = f->where[0] ? f->where : NULL,
		.sentence = f->sentence,
		.trace = f->segment ? trace : NULL};

	snprintf(trace, sizeof(trace), "segment-%06u.redframe", f->segment);
	if (f->slow)
		ledger__hitch(k->ledger, &h);
	log_debug("frame %llu: %s (%s)", (unsigned long long)f->number, f->sentence, trace);
}

static void on_record(void *arg, const struct ev_hdr *rec)
{
	struct soak *k = arg;
	const struct ev_memory *mem = (const struct ev_memory *)rec;

	growth__record(&k->growth, engine__model(k->engine), rec);
	if (rec->kind == EV_MEMORY)
		ledger__add_memory(k->ledger, rec->ts, mem->rss, mem->heap, mem->mapped, mem->mappings);
	if (rec->kind == EV_COST)
		k->rss_max = max(k->rss_max, (u64)((const struct ev_cost *)rec)->rss);
	if (rec->kind == EV_LOST)
		k->lost += ((const struct ev_lost *)rec)->count;
}

int soak__name_segment(void *arg, struct recording_writer *w, struct stacks *stacks)
{
	struct soak *k = arg;

	return k->o->replay ? soak__copy_names(k, w) : session__name_segment(&k->s, w, stacks);
}

static void begin_engine(struct soak *k)
{
	struct engine_options eo = {.explain = k->o->r.explain,
		.keep = k->o->keep_at,
		.fail = k->o->fail_at,
		.dir = k->dir,
		.segment_bytes = k->o->segment_bytes,
		.max_bytes = k->o->max_bytes,
		.before_ns = (u64)(k->o->before_seconds * 1e9),
		.before_frames = (u32)k->o->before_frames + 1,
		.after_frames = (u32)k->o->after_frames,
		.patient = k->o->replay,
		.name = soak__name_segment,
		.frame = on_frame,
		.hitch = on_hitch,
		.note = on_note,
		.record = on_record,
		.arg = k};

	k->engine = engine__new(&eo);
}

int soak__begin(struct soak *k, const char *game, s64 started_ms, u64 start_ns)
{
	const struct ledger_options lo = {
		.start_ns = start_ns, .warm_ns = (u64)(k->o->warm_up_seconds * 1e9), .hitches_told = true};
	struct store_run run = {.started_ms = started_ms, .kind = "soak", .game = game, .path = k->dir};

	if (store__open(k->o->store, &k->store))
		return EXIT_USAGE;
	run_id__new(k->run);
	begin_engine(k);
	k->ledger = ledger__new(k->store, k->run, &run, &lo);
	if (k->engine && k->ledger)
		return EXIT_OK;
	log_err("soak cannot begin: %s", errstr(errno ?: ENOMEM));
	return EXIT_NOT_MEASURED;
}
