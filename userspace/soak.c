// SPDX-License-Identifier: GPL-2.0-only
/*
 * soak: a recording without an end, of which only slow frames are kept, and a run in the store. A game that ends is
 * waited for and followed under its name; what each of them did is one run.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "capture.h"
#include "events_desc.h"
#include "log.h"
#include "shedding.h"
#include "soak_run.h"
#include "startup.h"
#include "strings.h"

#define GAP_NS  (100 * NSEC_PER_MSEC) /* of the clocks: the machine slept */
#define CALM_NS (5 * NSEC_PER_SEC)    /* before a class that was let go comes back */
#define LOOK_NS (100 * NSEC_PER_MSEC)
#define FIND_US 200000

/* ---- the run ---- */

/* Recordings of two soaks in one folder could not be told apart. */
static int refuse_used(const char *dir)
{
	char pattern[PATH_MAX + 32];
	glob_t found;
	int err;

	snprintf(pattern, sizeof(pattern), "%s/segment-*.redframe", dir);
	err = glob(pattern, GLOB_NOSORT, NULL, &found) ? 0 : -EEXIST;
	globfree(&found);
	if (err)
		log_err("%s: recordings of another soak are there: name another folder with -o", dir);
	return err;
}

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
	return output__make_dir(k->dir, &k->made_dir) ?: refuse_used(k->dir);
}

static s64 now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- while it runs ---- */

/* Records of the least valuable class are let go while the ring is half full after a pass, one class more each time. */
static void watch_pressure(struct soak *k, u64 ts)
{
	const struct drain *d = &k->s.drain;
	u32 level = k->shed_level;

	if (d->pass_bytes > d->ring_bytes / 2 && ts - k->shed_changed > LOOK_NS)
		level = min(level + 1, shedding__levels());
	else if (level && d->pass_bytes < d->ring_bytes / 16 && ts - k->shed_changed > CALM_NS)
		level--;
	if (level == k->shed_level)
		return;
	if (level > k->shed_level)
		soak__note(
			k, "redframe falls behind: %s events are let go for now", class_names[shedding__class(level)]);
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
		soak__note(k, "the machine slept for %.1f s", (gap - k->gap) / 1e9);
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
		engine__flush(k->engine);
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
		soak__note(k, "the game runs again (%u)", k->s.target.tgid);
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

static bool goes_on(struct soak *k)
{
	u32 code = 0;

	if (k->s.end != END_GAME)
		return false;
	soak__suspect_leaks(k); /* while its model is there */
	ledger__add_cpu_use(k->ledger, engine__model(k->engine));
	engine__game_ended(k->engine, !k->o->until_exit && !k->o->r.command, &code);
	if (code & 0x7f) {
		k->crashes++;
		soak__note(k, "the game was ended by signal %u; its last seconds are kept", code & 0x7f);
	} else {
		soak__note(k, "the game ended%s", code ? " with an error" : "");
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
		soak__note(k, "redframe mark is not heard: %s", errstr(errno));
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

/* It could not begin. A folder that is not empty, or was there, stays. */
static void undo(struct soak *k, int status)
{
	if (k->ledger)
		ledger__end(k->ledger, k->stop, status, "it could not begin");
	if (k->made_dir)
		rmdir(k->dir);
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
	else
		undo(k, status);
	session__free(&k->s);
	ledger__free(k->ledger);
	engine__free(k->engine);
	store__close(k->store);
	free(k);
	return status;
}
