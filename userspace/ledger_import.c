/* SPDX-License-Identifier: GPL-2.0-only
 *
 * From a recording's INFO to a run's metadata; and a whole recording as a run.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events_desc.h"
#include "explain.h"
#include "ledger.h"
#include "log.h"
#include "model.h"
#include "recording.h"
#include "replay.h"

#define IMPORT_BLOCK_NS NSEC_PER_SEC /* recordings are short: many small blocks tell more of how a figure varies */

/* by what runs can be compared; and of session.options the words that change what recording costs */
static const struct {
	const char *info, *meta;
} renamed[] = {
	{"cpu.model", "device.cpu"},
	{"cpu.count", "device.cpus"},
	{"cpu.governor", "device.governor"},
	{"gpu.name", "device.gpu"},
	{"kernel.machine", "device.machine"},
	{"budget.ms", "option.budget"},
	{"frame.source", "option.frames"},
};
static const char *const option_words[] = {"events", "alloc", "sample"};

static const char *meta_key(const char *info)
{
	for (size_t i = 0; i < ARRAY_SIZE(renamed); i++)
		if (!strcmp(info, renamed[i].info))
			return renamed[i].meta;
	return info;
}

/* behind "sample=", and not behind "alloc_sample="; NULL: it is not there */
static const char *option_value(const char *options, const char *word)
{
	for (const char *at = options; (at = strstr(at, word)); at++)
		if (at == options || at[-1] == ' ')
			return at + strlen(word);
	return NULL;
}

/* "events=sched,lock alloc=large …" */
static int add_options(struct ledger *l, const char *options)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(option_words) && !err; i++) {
		char name[32], word[256];
		const char *at;

		snprintf(word, sizeof(word), "%s=", option_words[i]);
		at = option_value(options, word);
		if (!at)
			continue;
		snprintf(word, sizeof(word), "%.*s", (int)min(strcspn(at, " "), sizeof(word) - 1), at);
		snprintf(name, sizeof(name), "option.%s", option_words[i]);
		err = ledger__meta(l, name, word);
	}
	return err;
}

int ledger__describe(struct ledger *l, const struct model *m)
{
	const char *key, *value;
	int err = 0;

	for (int i = 0; i < model__info_count(m) && !err; i++) {
		model__info_at(m, i, &key, &value);
		if (!strncmp(key, "probe.", 6) || !strncmp(key, "stacks.", 7) || !strncmp(key, "cost.", 5))
			continue; /* of this one recording */
		err = !strcmp(key, "session.options") ? add_options(l, value) : ledger__meta(l, meta_key(key), value);
	}
	return err;
}

/* ---- a recording ---- */

static s64 wall_clock_ms(struct recording *r)
{
	const struct ev_hdr *rec;
	s64 ms = 0;

	while (!ms && recording__next(r, &rec) == 1)
		if (rec->kind == EV_CLOCK)
			ms = (s64)(((const struct ev_clock *)rec)->realtime / NSEC_PER_MSEC);
	return recording__rewind(r) ? 0 : ms;
}

struct import {
	struct ledger *ledger;
	const char *path;
	int err;
};

static void take_verdict(const struct verdict *v, const struct model *m, void *arg)
{
	struct import *i = arg;

	if (!i->err)
		i->err = ledger__verdict(i->ledger, v, m, NULL, i->path);
}

static int add_lost(struct store *s, const char *run, const struct model *m)
{
	const struct model_stats *st = model__stats(m);
	char name[64];
	int err = 0;

	for (int c = 0; c < CLASS_COUNT && !err; c++) {
		if (!st->lost[c])
			continue;
		snprintf(name, sizeof(name), "lost.%s", class_names[c]);
		err = store__add_counter(s, run, name, st->lost[c]);
	}
	return err;
}

/* into `i->ledger`: 0 or -errno */
static int replay_into(struct import *i, struct recording *r, struct model *m)
{
	struct replay replay = {.verdict = take_verdict, .arg = i};
	struct explain_options options;
	struct explain *x;
	int err;

	replay__explain_options(m, &options);
	x = explain__new(&options);
	err = x ? ledger__describe(i->ledger, m) : -ENOMEM;
	if (!err)
		err = replay__run(r, m, x, NULL, 0, &replay);
	explain__free(x);
	return err ?: i->err;
}

static int import(struct store *s, struct recording *r, const char *path, const char *run)
{
	const struct ledger_options o = {.block_ns = IMPORT_BLOCK_NS, .warm_ns = LEDGER_WARM_NS, .no_warm = true};
	struct import i = {.path = path};
	struct model *m = model__new();
	struct store_run what = {.started_ms = wall_clock_ms(r), .kind = "recording", .path = path};
	int err = m ? replay__prepare(r, m) : -ENOMEM;
	const char *why_not;

	if (err)
		goto cleanup;
	what.game = model__info(m, "game.name");
	i.ledger = ledger__new(s, run, &what, &o);
	err = i.ledger ? replay_into(&i, r, m) : -ENOMEM;
	if (!err)
		err = add_lost(s, run, m);
	if (err)
		goto cleanup;
	ledger__add_cpu_use(i.ledger, m);
	why_not = !ledger__frames(i.ledger)     ? "no frames in the recording"
		  : !ledger__measured(i.ledger) ? "no visit to a scene outlasts its warm-up"
						: NULL;
	err = ledger__end(i.ledger, model__stats(m)->last, why_not ? EXIT_NOT_MEASURED : EXIT_OK, why_not);
cleanup:
	ledger__free(i.ledger);
	model__free(m);
	return err;
}

int ledger__import(struct store *s, const char *path, char run[RUN_ID_SIZE])
{
	struct recording r;
	int err = recording__open(&r, path);

	if (err) {
		log_err("%s: %s", path, recording__strerror(err));
		return EXIT_USAGE;
	}
	run_id__of(run, r.hdr.uuid);
	err = import(s, &r, path, run);
	recording__close(&r);
	if (err)
		log_err("%s: %s", path, recording__strerror(err));
	return err ? EXIT_NOT_MEASURED : EXIT_OK;
}
