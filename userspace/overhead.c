// SPDX-License-Identifier: GPL-2.0-only
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"
#include "drain.h"
#include "events_desc.h"
#include "log.h"
#include "options.h"
#include "overhead.h"
#include "paired.h"
#include "process.h"
#include "record.h"
#include "sites.h"
#include "strings.h"

#define RING_BYTES   (8u << 20)
#define SETTLE_NS    (100 * NSEC_PER_MSEC) /* after a change: attaching disturbs the game itself */
#define BLOCK_FRAMES 65536
#define FRAMES_LEAST 3 /* in a block: with fewer it has no median worth the name */
#define BLOCK_LONGER 9 /* so many lengths are waited for these */
#define LOOK_US      2000

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
	ROW("pid", 'p', OPT_UINT, pid, "PID", "the game"),
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

/* The frames of the block that is running. */
struct frames {
	struct ring_buffer *ring;
	struct ev_frame first; /* whose thread, stream and mark count; kind 0: none yet */
	u64 last, not_before;
	double ms[BLOCK_FRAMES];
	u32 n;
};

struct run {
	const struct overhead_options *o;
	struct target target;
	struct site_list sites;
	struct capture *base; /* frames alone: on all the time */
	struct frames frames;
	char source[256];
};

struct result {
	struct shift shift; /* ms */
	double median_ms;   /* without the class */
	u32 pairs;
	const char *why; /* it was not measured; NULL */
};

static volatile sig_atomic_t stopped;

static void stop(int sig)
{
	stopped = 1;
}

static int take_frame(void *arg, void *data, size_t size)
{
	const struct ev_frame *e = data;
	struct frames *f = arg;

	if (size < sizeof(*e) || e->hdr.kind != EV_FRAME)
		return 0;
	if (!f->first.hdr.kind)
		f->first = *e;
	if (e->hdr.tid != f->first.hdr.tid || e->stream != f->first.stream || e->mark != f->first.mark)
		return 0;
	if (f->last >= f->not_before && e->hdr.ts > f->last && f->n < BLOCK_FRAMES)
		f->ms[f->n++] = (double)(e->hdr.ts - f->last) / 1e6;
	f->last = e->hdr.ts;
	return 0;
}

static int drop(void *arg, void *data, size_t size)
{
	return 0;
}

static void say_note(void *arg, enum ev_class class, const char *text)
{
	log_debug("%s", text);
}

/* The median frame time of one block; 0: too few frames. */
static double block(struct run *r, struct ring_buffer *probed)
{
	struct frames *f = &r->frames;
	u64 length = (u64)(r->o->block_seconds * 1e9), end, ts;

	f->not_before = clock_boot_ns() + SETTLE_NS;
	end = f->not_before + length;
	ring_buffer__consume(f->ring);
	f->n = 0;
	while (!stopped && target__alive(&r->target)) {
		ts = clock_boot_ns();
		if (ts >= (f->n < FRAMES_LEAST ? end + BLOCK_LONGER * length : end))
			break;
		usleep(LOOK_US);
		ring_buffer__consume(f->ring);
		if (probed)
			ring_buffer__consume(probed);
	}
	return f->n < FRAMES_LEAST ? 0 : paired__median(f->ms, f->n);
}

/* ---- one class ---- */

static int switch_on(struct run *r, struct capture *c, enum ev_class class)
{
	int err = class == CLASS_ALLOC ? capture__attach_sites_again(c, &r->sites, PROBE_ALLOC) : 0;

	return err ?: capture__attach(c);
}

/* without, with; with, without; …: what drifts slowly cancels out, and each change serves two blocks */
static int pairs(struct run *r, struct capture *c, struct ring_buffer *ring, enum ev_class class, struct result *out)
{
	double difference[PAIRED_MAX], without[PAIRED_MAX], with;
	bool on = false;
	int err;

	for (u32 i = 0; i < r->o->pairs; i++) {
		double ms[2];

		for (int k = 0; k < 2; k++) {
			bool want = (k == 1) != (i % 2 == 1);

			err = want && !on ? switch_on(r, c, class) : 0;
			if (!want && on)
				capture__detach(c);
			if (err)
				return err;
			on = want;
			ms[want] = block(r, ring);
		}
		if (!ms[0] || !ms[1])
			return -ENODATA;
		without[i] = ms[0];
		with = ms[1];
		difference[i] = with - without[i];
	}
	capture__detach(c);
	out->shift = paired__shift(difference, (u32)r->o->pairs);
	out->pairs = (u32)r->o->pairs;
	out->median_ms = paired__median(without, (u32)r->o->pairs);
	return 0;
}

static void measure(struct run *r, enum ev_class class, struct result *out)
{
	struct capture_options o = {
		.tgid = r->target.tgid,
		.alloc_min = ALLOC_LARGE_BYTES,
		.syscall_min_ns = CAPTURE_SYSCALL_MIN_NS,
		.sample_hz = 1000,
		.stack_bytes = RECORD_STACK_BYTES,
		.ring_bytes = RING_BYTES,
		.rings = 1,
	};
	struct ring_buffer *ring = NULL;
	struct capture *c = NULL;
	int err;

	*out = (struct result){0};
	o.on[class] = true;
	err = capture__load(&c, &o, say_note, NULL);
	if (!err)
		ring = ring_buffer__new(capture__ring_fd(c, 0), drop, NULL, NULL);
	if (!err)
		err = ring ? pairs(r, c, ring, class, out) : -errno;
	if (err)
		out->why = err == -ENODATA ? "too few frames" : errstr(err);
	ring_buffer__free(ring);
	capture__free(c);
}

/* ---- telling ---- */

static void say(const struct overhead_options *o, enum ev_class class, const struct result *r, struct str *json)
{
	const struct shift *s = &r->shift;
	double percent = r->median_ms > 0 ? 100 / r->median_ms : 0;

	if (o->json) {
		str__fmt(json, "%s\"%s\": {\"measured\": %s, \"measurable\": %s", json->len ? ", " : "",
			class_names[class], r->why ? "false" : "true", s->measurable ? "true" : "false");
		if (!r->why)
			str__fmt(json,
				", \"pairs\": %u, \"median_ms\": %.6f, \"change_ms\": %.6f, \"low_ms\": %.6f, "
				"\"high_ms\": %.6f, \"confidence\": %.4f",
				r->pairs, r->median_ms, s->estimate, s->low, s->high, s->confidence);
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
	struct capture_options o = {.tgid = r->target.tgid, .ring_bytes = RING_BYTES, .rings = 1};
	int status = find_sites(r), err;

	if (status)
		return status;
	o.on[CLASS_FRAME] = true;
	err = capture__load(&r->base, &o, say_note, NULL);
	if (!err)
		err = capture__attach_sites_again(r->base, &r->sites, PROBE_FRAME);
	if (!err) {
		r->frames.ring = ring_buffer__new(capture__ring_fd(r->base, 0), take_frame, &r->frames, NULL);
		err = r->frames.ring ? 0 : -errno;
	}
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
	ring_buffer__free(r->frames.ring);
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
	if (o->pid > 0x7fffffff) {
		log_err("--pid: %llu is no process id", (unsigned long long)o->pid);
		return -EINVAL;
	}
	if (o->pairs < PAIRED_LEAST || o->pairs > PAIRED_MAX) {
		log_err("--pairs: from %d to %d", PAIRED_LEAST, PAIRED_MAX);
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
