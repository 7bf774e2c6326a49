// SPDX-License-Identifier: GPL-2.0-only
/* How a run ends: whether it was measured, which limits were crossed, what it took. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "events_desc.h"
#include "log.h"
#include "soak_run.h"
#include "strings.h"

#define LOST_PERCENT 1                   /* of all records: more is not measured */
#define SILENT_NS    (60 * NSEC_PER_SEC) /* without a frame while the game lives: the source is lost */
#define SHORT_NS     NSEC_PER_SEC

static void tell_reason(struct soak *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void tell_reason(struct soak *k, const char *fmt, ...)
{
	size_t n = strlen(k->reason);
	va_list ap;

	va_start(ap, fmt);
	if (n)
		n += (size_t)snprintf(k->reason + n, sizeof(k->reason) - n, "; ");
	vsnprintf(k->reason + min(n, sizeof(k->reason)), sizeof(k->reason) - min(n, sizeof(k->reason)), fmt, ap);
	va_end(ap);
}

static bool is_measured(struct soak *k)
{
	const struct engine_stats *s = engine__stats(k->engine);
	u64 lost = k->lost, all = s->records + lost, ran = k->stop - k->start;

	if (!s->frames)
		tell_reason(k, "no frames were seen (frame source: %s)", k->s.source[0] ? k->s.source : "none found");
	else if (!ledger__frames(k->ledger))
		tell_reason(k, "the machine slept in each of the %llu frames", (unsigned long long)s->frames);
	else if (!ledger__measured(k->ledger))
		tell_reason(k, "all %llu frames are warm-up: no visit to a scene took longer than %g s (--warm-up)",
			(unsigned long long)ledger__frames(k->ledger), k->o->warm_up_seconds);
	else if (k->away_since && k->stop > k->away_since + SILENT_NS)
		tell_reason(
			k, "the game ended %.0f s before, and was not started again", (k->stop - k->away_since) / 1e9);
	else if (!k->o->replay && k->s.end != END_GAME && !k->away_since && k->stop > s->last_frame + SILENT_NS)
		tell_reason(
			k, "no frame for the last %.0f s: the frame source was lost", (k->stop - s->last_frame) / 1e9);
	if (lost * 100 > all * LOST_PERCENT)
		tell_reason(k, "too many events were lost: %llu of %llu", (unsigned long long)lost,
			(unsigned long long)all);
	if (k->o->r.seconds && !k->o->replay && ran + SHORT_NS < k->o->r.seconds * NSEC_PER_SEC)
		tell_reason(k, "it ran for %.0f s of %.0f s", ran / 1e9, k->o->r.seconds);
	return !k->reason[0];
}

static void add_counters(struct soak *k)
{
	const struct engine_stats *s = engine__stats(k->engine);
	const struct kept *kept = engine__kept(k->engine);
	const struct {
		const char *name;
		u64 value;
	} counters[] = {
		{"records", s->records},
		{"late", s->late},
		{"lost", k->lost},
		{"marks", k->marks},
		{"streams", s->streams},
		{"frames", s->frames},
		{"frames.doubled", s->doubled},
		{"frames.suspended", k->suspended},
		{"frames.cut", s->forgotten},
		{"kept", s->kept},
		{"kept.files", kept->n_files},
		{"kept.bytes", kept->bytes},
		{"kept.dropped", kept->dropped},
		{"kept.dropped_bytes", kept->dropped_bytes},
		{"kept.cut", s->cut},
		{"kept.no_room", s->not_kept},
		{"kept.not_named", s->not_named},
		{"games.crashed", k->crashes},
		{"suspends", s->suspends},
		{"cpu_ns", k->cpu_ns},
		{"cpu_ns.naming", s->naming_ns},
		{"rss_max", k->rss_max},
	};
	char name[32];

	for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
		store__add_counter(k->store, k->run, counters[i].name, counters[i].value);
	for (int i = 0; i < CLASS_COUNT; i++) {
		snprintf(name, sizeof(name), "shed.%s", class_names[i]);
		if (s->shed[i])
			store__add_counter(k->store, k->run, name, s->shed[i]);
	}
}

static void sum_up(struct soak *k)
{
	const struct engine_stats *s = engine__stats(k->engine);
	const struct kept *kept = engine__kept(k->engine);
	u64 all = s->records + k->lost;
	char size[32], gone[32];

	log_info("%.1f s, %llu frames, %llu slow; %u recordings kept in %s (%s)", (k->stop - k->start) / 1e9,
		(unsigned long long)s->frames, (unsigned long long)s->slow, kept->n_files, k->dir,
		fmt__bytes(size, sizeof(size), kept->bytes));
	if (kept->dropped)
		log_info("%llu recordings (%s) made room: the least of their kind, excess at most %.1f ms",
			(unsigned long long)kept->dropped, fmt__bytes(gone, sizeof(gone), kept->dropped_bytes),
			kept->dropped_most_ns / 1e6);
	if (s->not_kept)
		log_warn("%llu slow frames could not be kept", (unsigned long long)s->not_kept);
	if (s->not_named)
		log_warn("%llu recordings stay without names: redframe explain tells what is in them without",
			(unsigned long long)s->not_named);
	if (s->forgotten || s->cut)
		log_warn("memory was short: the beginning of %llu frames was given up, and %llu recordings begin later",
			(unsigned long long)s->forgotten, (unsigned long long)s->cut);
	if (k->lost)
		log_warn("%llu of %llu events were lost", (unsigned long long)k->lost, (unsigned long long)all);
	if (k->watched_ns)
		log_info("own CPU %.1f %% of one, and %.1f %% to name and explain what is kept",
			100.0 * k->cpu_ns / k->watched_ns, 100.0 * s->naming_ns / k->watched_ns);
	log_info("run %s in %s", k->run, k->o->store);
}

int soak__end(struct soak *k)
{
	int status, err = engine__finish(k->engine) ?: k->err;

	if (err)
		tell_reason(k, "%s", errstr(err));
	status = is_measured(k) ? EXIT_OK : EXIT_NOT_MEASURED;
	if (status)
		log_err("not measured: %s", k->reason);
	soak__suspect_leaks(k);
	ledger__add_cpu_use(k->ledger, engine__model(k->engine));
	if (soak_limits__check(
		    &k->limits, &k->o->fail_at, k->store, k->run)) { /* it happened, however little else was measured */
		status = EXIT_WORSE;
		tell_reason(k, "a limit was crossed");
	}
	add_counters(k);
	err = ledger__end(k->ledger, k->stop, status, status ? k->reason : NULL);
	soak__report(k);
	sum_up(k);
	err = store__close(k->store) ?: err;
	k->store = NULL;
	if (err && err != -EAGAIN)
		log_err("%s: %s", k->o->store, errstr(err));
	return err && err != -EAGAIN && !status ? EXIT_NOT_MEASURED : status;
}
