// SPDX-License-Identifier: GPL-2.0-only
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate.h"
#include "capture.h"
#include "effect.h"
#include "events_desc.h"
#include "log.h"
#include "options.h"
#include "overhead.h"
#include "paired.h"
#include "process.h"
#include "record.h"
#include "sites.h"
#include "strings.h"
#include "toggle.h"

#define RING_BYTES (8u << 20)

struct overhead_options {
	u64 pid, pairs;
	const char *name, *frame, *events;
	double block_seconds;
	bool json, newest;
	bool on[CLASS_COUNT];
};

#define ROW(name, letter, type, field, value, help)                                                                    \
	{                                                                                                              \
		name, letter, type, offsetof(struct overhead_options, field), value, help                              \
	}
static const struct option_row rows[] = {
	ROW("pid", 'p', OPT_PID, pid, "PID", "the game"),
	ROW("name", 'n', OPT_TEXT, name, "NAME", "the game by its process, program or .exe name"),
	ROW("newest", 0, OPT_FLAG, newest, NULL, "with -n: of several take the newest"),
	ROW("frame", 0, OPT_TEXT, frame, "SPEC", "what marks frames, as for record; default auto"),
	ROW("events", 0, OPT_TEXT, events, "LIST", "classes to measure, one by one; default those of record"),
	ROW("pairs", 0, OPT_UINT, pairs, "N", "pairs of blocks for each class, 6 to 64; default 10"),
	ROW("block", 0, OPT_SECONDS, block_seconds, "SECONDS", "length of a block; default 0.5"),
	ROW("json", 0, OPT_FLAG, json, NULL, "for programs"),
	{},
};

static const struct verb overhead = {
	.name = "overhead",
	.synopsis = "[-p PID | -n NAME] [options]",
	.about =
		"Measures what each class of events does to the frame time of a running game, by taking it on and off.",
	.rows = rows,
	.examples = "  redframe overhead -n doom\n"
		    "  redframe overhead -p 4242 --events alloc,sched --pairs 20 --json\n",
};

struct run {
	const struct overhead_options *o;
	struct target target;
	struct site_list sites;
	struct capture *base; /* frames alone: on all the time */
	struct frame_times frames;
	/* the class that is taken on and off */
	enum ev_class class;
	struct capture *probed;
	char source[256];
};

struct result {
	struct toggle_result t;
	const char *why; /* it was not measured; NULL */
};

static volatile sig_atomic_t stopped;

static void stop(int sig)
{
	stopped = 1;
}

static int drop(void *arg, void *data, size_t size)
{
	return 0;
}

static void say_note(void *arg, enum ev_class class, const char *text)
{
	log_debug("%s", text);
}

/* ---- one class ---- */

static int set(void *arg, bool on)
{
	struct run *r = arg;
	int err = 0;

	if (!on)
		capture__detach(r->probed);
	else if (r->class == CLASS_ALLOC)
		err = capture__attach_sites_again(r->probed, &r->sites, PROBE_ALLOC);
	return err || !on ? err : capture__attach(r->probed);
}

static void empty(void *arg)
{
	struct run *r = arg;

	capture__consume_all(r->base, frame_times__take, &r->frames);
	capture__consume_all(r->probed, drop, NULL);
}

static bool over(void *arg)
{
	struct run *r = arg;

	return stopped || !target__alive(&r->target);
}

static void measure(struct run *r, enum ev_class class, struct result *out)
{
	struct capture_options o = {
		.tgid = r->target.tgid,
		.alloc_min = ALLOC_LARGE_BYTES,
		.syscall_min_ns = CAPTURE_SYSCALL_MIN_NS,
		.sample_hz = effect__sample_hz(calibrate__tick(), RECORD_MAX_OVERHEAD),
		.stack_bytes = RECORD_STACK_BYTES,
		.ring_bytes = RING_BYTES,
	};
	const struct toggle t = {.set = set,
		.empty = empty,
		.over = over,
		.arg = r,
		.pairs = (u32)r->o->pairs,
		.block_ns = (u64)(r->o->block_seconds * 1e9)};
	int err;

	*out = (struct result){0};
	o.on[class] = true;
	r->class = class;
	r->probed = NULL;
	err = capture__load(&r->probed, &o, say_note, NULL);
	if (!err)
		err = toggle__measure(&t, &r->frames, &out->t);
	if (err)
		out->why = err == -ENODATA ? "too few frames" : errstr(err);
	capture__free(r->probed);
}

/* ---- telling ---- */

static void say(const struct overhead_options *o, enum ev_class class, const struct result *r, struct str *json)
{
	const struct shift *s = &r->t.shift;
	double percent = r->t.median_ms > 0 ? 100 / r->t.median_ms : 0;

	if (o->json) {
		str__fmt(json, "%s\"%s\": {\"measured\": %s, \"measurable\": %s", json->len ? ", " : "",
			class_names[class], r->why ? "false" : "true", s->measurable ? "true" : "false");
		if (!r->why)
			str__fmt(json,
				", \"pairs\": %u, \"median_ms\": %.6f, \"change_ms\": %.6f, \"low_ms\": %.6f, "
				"\"high_ms\": %.6f, \"confidence\": %.4f",
				r->t.pairs, r->t.median_ms, s->estimate, s->low, s->high, s->confidence);
		else
			str__fmt(json, ", \"why\": \"%s\"", r->why);
		str__add(json, "}");
		return;
	}
	if (r->why)
		printf("%-10s not measured: %s\n", class_names[class], r->why);
	else
		printf("%-10s %+8.3f ms  %+6.2f %%  (%.1f %%: %+.3f to %+.3f ms)%s\n", class_names[class], s->estimate,
			s->estimate * percent, 100 * s->confidence, s->low, s->high,
			s->measurable ? "" : "  not measurable");
	fflush(stdout);
}

static int each_class(struct run *r)
{
	struct str json = {0};
	struct result result;
	int measured = 0;

	if (!r->o->json)
		printf("%s (pid %u), frames from %s: change of the median frame time by each class\n", r->target.name,
			r->target.tgid, r->source);
	for (enum ev_class class = CLASS_SCHED; class < CLASS_COUNT && !stopped; class ++) {
		if (!r->o->on[class] || !target__alive(&r->target))
			continue;
		measure(r, class, &result);
		if (stopped)
			break;
		measured += !result.why;
		say(r->o, class, &result, &json);
	}
	if (r->o->json)
		printf("{\"schema\": 1, \"pid\": %u, \"classes\": {%s}}\n", r->target.tgid, json.s ? json.s : "");
	str__free(&json);
	return measured ? EXIT_OK : EXIT_NOT_MEASURED;
}

/* ---- the run ---- */

static int find_sites(struct run *r)
{
	char why[1024] = "";
	int n = sites__frame(&r->sites, r->target.tgid, r->o->frame, r->source, sizeof(r->source), why, sizeof(why));

	if (n <= 0) {
		log_err("no frame source found: %s", why);
		return EXIT_NOT_MEASURED;
	}
	if (r->o->on[CLASS_ALLOC] && sites__alloc(&r->sites, r->target.tgid, false, why, sizeof(why)) <= 0)
		log_warn("allocator calls are not in it: %s", why);
	return EXIT_OK;
}

static int begin(struct run *r)
{
	struct capture_options o = {.tgid = r->target.tgid, .ring_bytes = RING_BYTES};
	int status = find_sites(r), err;

	if (status)
		return status;
	o.on[CLASS_FRAME] = true;
	err = capture__load(&r->base, &o, say_note, NULL);
	if (!err)
		err = capture__attach_sites_again(r->base, &r->sites, PROBE_FRAME);
	if (!err)
		return EXIT_OK;
	log_err("cannot trace here: %s; 'redframe doctor' says what to mend", errstr(err));
	return EXIT_CANNOT_TRACE;
}

static int run(const struct overhead_options *o)
{
	struct run *r = calloc(1, sizeof(*r));
	char why[1024] = "";
	int status, err;

	if (!r)
		return EXIT_NOT_MEASURED;
	r->o = o;
	r->target.pidfd = -1;
	err = o->pid ? target__by_pid(&r->target, (u32)o->pid, why, sizeof(why))
		     : target__by_name(&r->target, o->name, o->newest, why, sizeof(why));
	if (err) {
		log_err("%s", why);
		status = err == -ENOTUNIQ || err == -EINVAL ? EXIT_USAGE : EXIT_NO_TARGET;
		goto cleanup;
	}
	status = begin(r);
	if (status == EXIT_OK)
		status = each_class(r);
cleanup:
	capture__free(r->base);
	sites__free(&r->sites);
	target__close(&r->target);
	free(r);
	return status;
}

static int check(struct overhead_options *o, int n)
{
	if (n || !!o->pid + !!o->name != 1) {
		log_err("overhead: give one of -p PID and -n NAME");
		return -EINVAL;
	}
	if (o->pairs < PAIRED_LEAST || o->pairs > PAIRED_MAX) {
		log_err("--pairs: from %d to %d", PAIRED_LEAST, PAIRED_MAX);
		return -EINVAL;
	}
	if (frame_spec__check(o->frame)) {
		log_err("--frame: '%s' is not " FRAME_SPECS, o->frame);
		return -EINVAL;
	}
	if (!strcmp(o->frame, "none")) {
		log_err("--frame none: it is the frame time that is measured");
		return -EINVAL;
	}
	return o->events ? record_options__events(o->on, o->events) : 0;
}

int verb__overhead(int argc, char **argv)
{
	struct overhead_options o = {.frame = "auto", .pairs = 10, .block_seconds = 0.5};
	struct sigaction on_stop = {.sa_handler = stop};
	int n, command, err;

	for (int i = 0; i < CLASS_COUNT; i++)
		o.on[i] = true;
	err = options__parse(&overhead, argc, argv, &o, &n, &command);
	if (err)
		return err > 0 ? EXIT_OK : EXIT_USAGE;
	if (check(&o, n))
		return EXIT_USAGE;
	sigaction(SIGINT, &on_stop, NULL);
	sigaction(SIGTERM, &on_stop, NULL);
	return run(&o);
}
