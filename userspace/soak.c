// SPDX-License-Identifier: GPL-2.0-only
/*
 * soak: a recording without an end, of which only slow frames are kept, and a run in the store. A game that ends is
 * waited for and followed under its name; what each of them did is one run.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "capture.h"
#include "events_desc.h"
#include "log.h"
#include "model.h"
#include "soak_run.h"
#include "startup.h"
#include "strings.h"

#define GAP_NS       (100 * NSEC_PER_MSEC) /* of the clocks: the machine slept */
#define CALM_NS      (5 * NSEC_PER_SEC)    /* before a class that was let go comes back */
#define LOOK_NS      (100 * NSEC_PER_MSEC)
#define FIND_US      200000
#define LOST_PERCENT 1                   /* of all records: more is not measured */
#define SILENT_NS    (60 * NSEC_PER_SEC) /* without a frame while the game lives: the source is lost */
#define SHORT_NS     NSEC_PER_SEC

/* ---- what the engine tells ---- */

static void note(struct soak *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(struct soak *k, const char *fmt, ...)
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
	note(arg, "%s", text);
}

static void count_failed(struct soak *k, const struct soak_frame *f)
{
	for (int i = 0; i < LIMIT_KINDS; i++) {
		k->crossed[i] += f->failed >> i & 1;
		k->worst[i] = max(k->worst[i], f->did.of[i]);
	}
}

static void on_frame(void *arg, const struct soak_frame *f, const struct model *m)
{
	struct soak *k = arg;

	if (!k->described) {
		k->described = true;
		ledger__describe(k->ledger, m);
	}
	if (f->suspended) {
		k->suspended++;
		return;
	}
	count_failed(k, f);
	ledger__verdict(k->ledger, f->v, m, NULL, NULL);
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
		.trace = trace};

	snprintf(trace, sizeof(trace), "segment-%06u.redframe", f->segment);
	if (f->slow)
		ledger__hitch(k->ledger, &h);
	log_debug("frame %llu: %s (%s)", (unsigned long long)f->number, f->sentence, trace);
}

static void on_record(void *arg, const struct ev_hdr *rec)
{
	struct soak *k = arg;
	const struct ev_memory *mem = (const struct ev_memory *)rec;

	growth__record(&k->growth, rec);
	if (rec->kind == EV_MEMORY)
		ledger__add_memory(k->ledger, rec->ts, mem->rss, mem->heap, mem->mapped, mem->mappings);
	if (rec->kind == EV_COST)
		k->rss_max = max(k->rss_max, (u64)((const struct ev_cost *)rec)->rss);
	if (rec->kind == EV_LOST)
		k->lost += ((const struct ev_lost *)rec)->count;
}

static int name_segment(void *arg, struct recording_writer *w, struct stacks *stacks)
{
	struct soak *k = arg;

	return k->o->replay ? soak__copy_names(k->o->replay, w) : session__name_segment(&k->s, w, stacks);
}

/* ---- the run ---- */

static int make_dir(struct soak *k)
{
	time_t now = time(NULL);
	struct tm tm;
	char name[64];

	localtime_r(&now, &tm);
	strftime(name, sizeof(name), "soak-%Y%m%d-%H%M%S", &tm);
	if (snprintf(k->dir, sizeof(k->dir), "%s", k->o->r.output ?: name) >= (int)sizeof(k->dir)) {
		log_err("--output: the path is too long");
		return -ENAMETOOLONG;
	}
	return output__make_dir(k->dir);
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
		.name = name_segment,
		.frame = on_frame,
		.hitch = on_hitch,
		.note = on_note,
		.record = on_record,
		.arg = k};

	k->engine = engine__new(&eo);
}

static s64 now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int soak__begin(struct soak *k, const char *game, s64 started_ms, u64 start_ns)
{
	const struct ledger_options lo = {.start_ns = start_ns, .hitches_told = true};
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

/* ---- while it runs ---- */

/* Records of the least valuable class are let go while the ring is half full after a pass, one class more each time. */
static void watch_pressure(struct soak *k, u64 ts)
{
	const struct drain *d = &k->s.drain;
	u32 level = k->shed_level;

	if (d->pass_bytes > d->ring_bytes / 2 && ts - k->shed_changed > LOOK_NS)
		level = min(level + 1, engine__shed_levels());
	else if (level && d->pass_bytes < d->ring_bytes / 16 && ts - k->shed_changed > CALM_NS)
		level--;
	if (level == k->shed_level)
		return;
	if (level > k->shed_level)
		note(k, "redframe falls behind: %s events are let go for now", class_names[engine__shed_class(level)]);
	k->shed_level = level;
	k->shed_changed = ts;
	engine__shed(k->engine, level, ts);
}

/* A frame must not be blamed for it: the engine learns of it with the next record. */
static void watch_clocks(struct soak *k, u64 ts)
{
	struct timespec t;
	u64 gap;

	clock_gettime(CLOCK_MONOTONIC, &t);
	gap = ts - min(ts, t.tv_sec * NSEC_PER_SEC + (u64)t.tv_nsec);
	if (k->gap && gap > k->gap + GAP_NS) {
		meta__clock(&k->s.out);
		note(k, "the machine slept for %.1f s", (gap - k->gap) / 1e9);
	}
	k->gap = gap;
}

static void take_scenes(struct soak *k)
{
	char name[CONTROL_SCENE_MAX + 1];

	while (control__scene(&k->control, name)) {
		struct ev_scene e = {.hdr = {.ts = session__stamp(&k->s), .tid = k->s.target.tgid, .kind = EV_SCENE}};

		recording__append_text(&k->s.out, &e, sizeof(e), name, strlen(name));
	}
}

static void every_second(struct soak *k, u64 ts)
{
	k->second = ts;
	meta__clock(&k->s.out);
	engine__tend(k->engine);
	ledger__tend(k->ledger, ts);
	store__flush(k->store);
	if (k->s.poked) {
		k->s.poked = false;
		soak__report(k);
	}
}

static enum session_end each_pass(void *arg, u64 ts)
{
	struct soak *k = arg;

	watch_pressure(k, ts);
	watch_clocks(k, ts);
	if (ts - k->looked >= LOOK_NS) {
		k->looked = ts;
		take_scenes(k);
	}
	if (ts - k->second >= NSEC_PER_SEC)
		every_second(k, ts);
	return k->o->r.seconds && ts - k->start >= k->o->r.seconds * NSEC_PER_SEC ? END_DURATION : END_NOT_YET;
}

/* One life of the game. enum exit_status. */
static int watch(struct soak *k, bool first)
{
	int status;

	recording__to(&k->s.out, engine__record, k->engine);
	k->s.stacks = (struct stacks){.fd = -1, .sink = engine__stack, .sink_arg = k->engine};
	k->s.each_pass = each_pass;
	k->s.each_pass_arg = k;
	status = session__attach(&k->s, -1);
	if (status)
		return status;
	if (first)
		log_info("soaking %s (%u), frames: %s; to %s; Ctrl-C ends", k->s.target.name, k->s.target.tgid,
			k->s.have_frames ? k->s.source : "none yet", k->dir);
	else
		note(k, "the game runs again (%u)", k->s.target.tgid);
	session__run(&k->s);
	k->err = session__finish(&k->s);
	k->marks += k->s.drain.marks;
	k->records += k->s.drain.records;
	k->cpu_ns += k->s.cpu_ns;
	k->watched_ns += k->s.stop - k->s.start;
	return EXIT_OK;
}

/* The game has ended: until it is there again, the time is up or somebody interrupts. True: k->s has it. */
static bool find_again(struct soak *k)
{
	char why[1024];

	k->away_since = clock_boot_ns();
	k->next = k->o->r;
	k->next.pid = 0;
	k->next.command = NULL;
	k->next.name = k->o->r.name ?: k->name;
	k->next.newest = true;
	k->next.wait = false;
	for (;;) {
		struct target t = {.pidfd = -1};

		if (session__interrupted(&k->s)) {
			k->s.end = END_SIGNAL;
			return false;
		}
		if (k->o->r.seconds && clock_boot_ns() - k->start >= k->o->r.seconds * NSEC_PER_SEC) {
			k->s.end = END_DURATION;
			return false;
		}
		if (!target__by_name(&t, k->name, true, why, sizeof(why))) {
			target__close(&t);
			session__free(&k->s);
			if (session__find(&k->s, &k->next) == EXIT_OK) {
				k->away_since = 0;
				return true;
			}
		}
		if (clock_boot_ns() - k->second > NSEC_PER_SEC) {
			k->second = clock_boot_ns();
			ledger__tend(k->ledger, k->second);
			store__flush(k->store);
		}
		usleep(FIND_US);
	}
}

static void suspect_leaks(struct soak *k)
{
	char text[600];

	for (u32 i = 0; growth__suspect(&k->growth, engine__model(k->engine), i, text, sizeof(text)); i++)
		note(k, "%s", text);
}

static bool goes_on(struct soak *k)
{
	u32 code = 0;

	if (k->s.end != END_GAME)
		return false;
	suspect_leaks(k); /* while its model is there */
	engine__game_ended(k->engine, !k->o->until_exit && !k->o->r.command, &code);
	if (code & 0x7f) {
		k->crashes++;
		note(k, "the game was ended by signal %u; its last seconds are kept", code & 0x7f);
	} else {
		note(k, "the game ended%s", code ? " with an error" : "");
	}
	growth__reset(&k->growth);
	return !k->o->until_exit && !k->o->r.command && find_again(k);
}

static int run(struct soak *k)
{
	int status = session__find(&k->s, &k->o->r);

	if (status)
		return status;
	snprintf(k->name, sizeof(k->name), "%s", k->o->r.name ?: k->s.target.name);
	k->start = clock_boot_ns();
	status = soak__begin(k, k->o->r.command ? basename(k->o->r.command[0]) : k->name, now_ms(), k->start);
	if (status)
		return status;
	if (control__open(&k->control, k->dir, k->o->scene_file))
		note(k, "redframe mark is not heard: %s", errstr(errno));
	for (bool first = true; !status; first = false) {
		status = watch(k, first);
		if (status == EXIT_NO_TARGET && !first) { /* gone again while we attached */
			k->s.end = END_GAME;
			status = EXIT_OK;
		} else if (status && !first) {
			k->err = -EIO; /* said already */
			status = EXIT_OK;
			break;
		}
		if (status || !goes_on(k))
			break;
	}
	control__close(&k->control);
	return status;
}

/* ---- how it ends ---- */

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

static void check_limits(struct soak *k)
{
	char limit[64], did[64], words[64], text[160];

	for (int i = 0; i < LIMIT_KINDS; i++) {
		struct store_check c = {.scene = "", .name = limit_names[i], .limit = limit, .text = text};

		if (!k->o->fail_at.of[i])
			continue;
		snprintf(limit, sizeof(limit), "%s=%s", limit_names[i],
			limit__words(i, k->o->fail_at.of[i], words, sizeof(words)));
		snprintf(text, sizeof(text), "%llu frames beyond it, the worst %s", (unsigned long long)k->crossed[i],
			limit__words(i, k->worst[i], did, sizeof(did)));
		c.failed = k->crossed[i] > 0;
		store__add_check(k->store, k->run, &c);
		if (c.failed) {
			log_err("limit crossed: %s: %s", limit, text);
			k->failed = true;
		}
	}
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
		{"lost", k->lost},
		{"marks", k->marks},
		{"frames", s->frames},
		{"frames.suspended", k->suspended},
		{"kept", s->kept},
		{"kept.files", kept->n_files},
		{"kept.bytes", kept->bytes},
		{"kept.dropped", kept->dropped},
		{"kept.dropped_bytes", kept->dropped_bytes},
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
	if (s->not_kept || s->not_named)
		log_warn("of the slow frames %llu could not be kept, and %llu recordings stay without names",
			(unsigned long long)s->not_kept, (unsigned long long)s->not_named);
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
	suspect_leaks(k);
	check_limits(k);
	if (k->failed) { /* it happened, however little else was measured */
		status = EXIT_WORSE;
		tell_reason(k, "a limit was crossed");
	}
	add_counters(k);
	err = ledger__end(k->ledger, status, status ? k->reason : NULL);
	soak__report(k);
	sum_up(k);
	err = store__close(k->store) ?: err;
	k->store = NULL;
	if (err && err != -EAGAIN)
		log_err("%s: %s", k->o->store, errstr(err));
	return err && err != -EAGAIN && !status ? EXIT_NOT_MEASURED : status;
}

int verb__soak(int argc, char **argv)
{
	struct soak_options o;
	struct soak *k = calloc(1, sizeof(*k));
	int status, err = soak_options__parse(&o, argc, argv);

	if (err || !k) {
		free(k);
		return err > 0 ? EXIT_OK : EXIT_USAGE;
	}
	k->o = &o;
	k->control.socket = -1;
	k->s = (struct session){.signal_fd = -1,
		.target = {.pidfd = -1},
		.launch = {.go = -1, .error = -1},
		.stacks = {.fd = -1},
		.stats_fd = -1};
	status = make_dir(k) ? EXIT_USAGE : o.replay ? soak__replay(k) : run(k);
	k->stop = k->stop ?: clock_boot_ns();
	if (k->engine && k->ledger && !status)
		status = soak__end(k);
	else if (k->ledger)
		ledger__end(k->ledger, status, "it could not begin");
	session__free(&k->s);
	ledger__free(k->ledger);
	engine__free(k->engine);
	store__close(k->store);
	free(k);
	return status;
}
