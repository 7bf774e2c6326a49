// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "capture.h"
#include "log.h"
#include "maps.h"
#include "rights.h"
#include "scout.h"
#include "session.h"
#include "startup.h"
#include "strings.h"

void session__note(struct session *s, u32 severity, enum ev_class class, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	s->notes++;
	log_warn("%s", text);
	if (s->drain.rings)
		drain__pass(&s->drain); /* what happened before stands before, also where finding this out took long */
	meta__note(&s->out, clock_boot_ns(), severity, class, text);
}

u64 session__stamp(struct session *s)
{
	if (s->drain.rings)
		drain__pass(&s->drain); /* its error stays in s->out, and ends the next pass of session__run */
	return clock_boot_ns();
}

/* ---- the game ---- */

static int signals_as_fd(bool poke)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (poke)
		sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

bool session__interrupted(struct session *s)
{
	struct signalfd_siginfo si;

	while (read(s->signal_fd, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo != SIGUSR1)
			return true;
		s->poked = true;
	}
	return false;
}

static bool interrupted(void *arg)
{
	return session__interrupted(arg);
}

static int find_target(struct session *s, char *why, size_t size)
{
	const struct record_options *o = s->o;

	if (o->command) {
		bool preload = o->alloc == ALLOC_PRELOAD && o->on[CLASS_ALLOC];
		int err = preload ? preload__open(&s->preload) : 0;

		if (err) {
			snprintf(why, size, "%s is not started", o->command[0]);
			return -EINVAL;
		}
		err = launch__prepare(&s->launch, o->command, preload ? &s->preload : NULL);
		if (err) {
			snprintf(why, size, "start %s: %s", o->command[0], errstr(err));
			return err;
		}
		return target__by_pid(&s->target, s->launch.tgid, why, size);
	}
	if (o->pid)
		return target__by_pid(&s->target, o->pid, why, size);
	if (o->wait) {
		log_info("waiting for '%s' to start", o->name);
		return target__wait(&s->target, o->name, o->newest, -1, interrupted, s, why, size);
	}
	return target__by_name(&s->target, o->name, o->newest, why, size);
}

int session__find(struct session *s, const struct record_options *o)
{
	char why[1024] = "";
	int err;

	*s = (struct session){.o = o,
		.launch = {.go = -1, .error = -1},
		.preload = {.fd = -1},
		.target = {.pidfd = -1},
		.out = {.fd = -1},
		.stacks = {.fd = -1},
		.kallsyms_fd = -1,
		.stats_fd = -1,
		.perf_map = PERF_MAP_NONE};
	s->signal_fd = signals_as_fd(o->soak);
	err = find_target(s, why, sizeof(why));
	if (!err)
		return EXIT_OK;
	log_err("%s", why);
	return err == -ENOTUNIQ || err == -EINVAL ? EXIT_USAGE : EXIT_NO_TARGET;
}

/* ---- attach ---- */

static int load(struct session *s)
{
	const struct record_options *o = s->o;
	struct capture_options c = {
		.tgid = s->target.tgid,
		.follow = o->children || o->command,
		.alloc_min = o->alloc == ALLOC_ALL ? 0 : ALLOC_LARGE_BYTES,
		.alloc_sample_bytes = o->alloc_sample,
		.syscall_min_ns = CAPTURE_SYSCALL_MIN_NS,
		.sample_hz = s->sample_hz,
		.stack_bytes = (u32)o->stack,
		.kernel_stacks = o->on[CLASS_SCHED] ? o->kernel_stacks : KERNEL_STACKS_OFF,
		.ring_bytes = o->buffer,
		.rings = o->rings,
	};

	memcpy(c.on, o->on, sizeof(c.on));
	return capture__load(&s->capture, &c, session__capture_note, s) ?: session__begin_family(s);
}

static void write_options(struct session *s, u64 ts)
{
	const struct record_options *o = s->o;
	char list[128] = "";

	for (int i = CLASS_SCHED; i < CLASS_COUNT; i++)
		if (o->on[i])
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", list[0] ? "," : "",
				(const char *[]){
#define X(NAME, name) #name,
					EV_CLASSES(X)
#undef X
				}[i]);
	meta__info(&s->out, ts, "session.options",
		"events=%s alloc=%s alloc_sample=%llu sample=%s buffer=%llu frame=%s", list, o->alloc_word,
		(unsigned long long)o->alloc_sample, o->sample_word, (unsigned long long)o->buffer, o->frame);
	if (o->on[CLASS_SAMPLE])
		meta__info(&s->out, ts, "sample.hz", "%u", s->sample_hz);
	if (o->explain.from == BUDGET_OPTION)
		meta__info(&s->out, ts, "budget.ms", "%.6f", o->explain.budget_ns / 1e6);
	for (int i = 0; i < o->meta.n; i++) {
		const char *equals = strchr(o->meta.v[i], '=');
		char key[128];

		snprintf(key, sizeof(key), "meta.%.*s", (int)(equals - o->meta.v[i]), o->meta.v[i]);
		meta__info(&s->out, ts, key, "%s", equals + 1);
	}
}

static void write_startup(struct session *s)
{
	u64 ts = s->start;

	meta__clock(&s->out);
	startup__machine(&s->out, ts);
	startup__game(&s->out, ts, &s->target);
	write_options(s, ts);
	session__tell_family(s, ts);
	meta__info(&s->out, ts, "frame.source", "%s", s->source[0] ? s->source : "none");
	startup__tasks(&s->out, ts, s->target.tgid);
	startup__maps(&s->out, ts, s->target.tgid);
	startup__sites(&s->out, ts, &s->sites, 0);
	images__refresh(&s->images, s->target.tgid);
	perf_map__refresh(&s->perf_map, s->target.tgid, clock_boot_ns());
}

static int launch(struct session *s)
{
	int err = s->launch.tgid ? launch__go(&s->launch) : 0;
	u32 tgid = s->target.tgid;
	const char *name;
	struct target t;
	char why[256];
	u64 ts;

	if (err) {
		log_err("run %s: %s", s->o->command[0], errstr(err));
		return EXIT_NO_TARGET;
	}
	if (!s->launch.tgid)
		return EXIT_OK;
	/* until now it was a copy of us */
	if (target__by_pid(&t, tgid, why, sizeof(why))) {
		log_debug("%s ended at once: %s", s->o->command[0], why);
		name = path__base(s->o->command[0]);
		utf8__sanitize(s->target.name, sizeof(s->target.name), name, strlen(name));
		s->target.exe[0] = 0;
		startup__game(&s->out, session__stamp(s), &s->target);
		return EXIT_OK; /* its pidfd says so, and what it has started may go on */
	}
	target__close(&s->target);
	s->target = t;
	ts = session__stamp(s);
	startup__game(&s->out, ts, &s->target);
	images__free(&s->images);
	images__refresh(&s->images, tgid);
	startup__maps(&s->out, ts, tgid);
	s->heap_of = 0;
	return EXIT_OK;
}

/* The launched program is a child of before: it keeps what its user may do. */
static void drop_rights(struct session *s)
{
	int err = rights__drop();

	if (err)
		session__note(s, 0, CLASS_META, "redframe keeps all its rights: %s", errstr(err));
}

/* A game maps hundreds of files, and before v6.6 each probe takes a descriptor. CMD was started before, with the limit
 * that it is used to. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int session__attach(struct session *s, int fd)
{
	u64 ts;
	int err;

	err = fd < 0 ? 0 : recording__create(&s->out, fd, clock_boot_ns());
	if (err) {
		log_err("--output: the recording cannot be written: %s", errstr(err));
		return err == -ENOSPC || err == -EDQUOT ? EXIT_NOT_MEASURED : EXIT_USAGE;
	}
	raise_descriptor_limit();
	session__find_sites(s);
	session__choose_rate(s);
	err = load(s);
	s->start = clock_boot_ns();
	if (!err)
		err = drain__open(&s->drain, s->capture, &s->out);
	session__open_stacks(s);
	if (!err)
		err = capture__attach(s->capture);
	if (err) {
		log_err("cannot trace here: %s; 'redframe doctor' says what to mend", errstr(err));
		return EXIT_CANNOT_TRACE;
	}
	s->attach_ns = clock_boot_ns() - s->start;
	/* the events are on: what /proc says now cannot be older than the first of them */
	write_startup(s);
	ts = clock_boot_ns();
	session__attach_sites(s, 0);
	session__find_heap(s);
	s->attach_ns += clock_boot_ns() - ts;
	meta__info(&s->out, session__stamp(s), "session.attach_ms", "%.1f", s->attach_ns / 1e6);
	if (!target__alive(&s->target)) {
		log_err("%s (%u) ended while redframe attached", s->target.name, s->target.tgid);
		return EXIT_NO_TARGET;
	}
	session__begin_cost(s);
	drop_rights(s);
	session__start_scout(s, false);
	return launch(s);
}

/* ---- while it runs ---- */

#define MAPPINGS_PERCENT 1 /* of redframe's time, at most: reading them also holds up a game that maps memory */

static void look_at_mappings(struct session *s, u64 ts)
{
	if (ts < s->mappings_next)
		return;
	images__refresh(&s->images, s->target.tgid);
	session__find_heap(s);
	s->mappings_next = ts + (clock_boot_ns() - ts) * (100 / MAPPINGS_PERCENT);
}

static void every_second(struct session *s, u64 ts)
{
	session__tell_cost(s, ts);
	session__tell_effect(s, ts);
	look_at_mappings(s, clock_boot_ns());
	startup__memory(&s->out, ts, s->target.tgid, s->images.mappings);
	startup__cpu_use(&s->out, ts, s->target.tgid);
	recording__flush(&s->out); /* what SIGKILL may take is at most this second */
}

static enum session_end limit_reached(const struct session *s, u64 ts)
{
	if (s->each_pass)
		return s->each_pass(s->each_pass_arg, ts);
	if (s->o->seconds && ts - s->start >= s->o->seconds * NSEC_PER_SEC)
		return END_DURATION;
	/* N frames lie between N + 1 marks, of one source */
	if (s->o->frames && s->drain.marks > s->o->frames + s->n_left)
		return END_FRAMES;
	return END_NOT_YET;
}

static enum session_end wait_a_little(struct session *s)
{
	struct pollfd fds[] = {{.fd = s->signal_fd, .events = POLLIN}, {.fd = s->target.pidfd, .events = POLLIN}};

	if (poll(fds, ARRAY_SIZE(fds), min(drain__pause_ms(&s->drain), preload__pause_ms(&s->preload))) <= 0)
		return END_NOT_YET;
	if (fds[0].revents && interrupted(s))
		return END_SIGNAL;
	return fds[1].revents && !session__outlives_target(s, clock_boot_ns()) ? END_GAME : END_NOT_YET;
}

int session__pass(struct session *s)
{
	int err = drain__pass(&s->drain);

	return err < 0 ? err : preload__pass(&s->preload, &s->target, &s->drain);
}

/* When redframe wakes up it waits for its turn, and does not take the CPU from a thread of the game: a millisecond late
 * does not matter to it. What the user has chosen with chrt(1) stays. */
static void give_way(void)
{
	const struct sched_param none = {0};

	if (sched_getscheduler(0) == SCHED_OTHER && sched_setscheduler(0, SCHED_BATCH, &none))
		log_debug("SCHED_BATCH: %s", errstr(-errno));
}

void session__run(struct session *s)
{
	u64 second = s->start, tenth = s->start, ts;
	int err;

	give_way();
	s->cpu_before = session__own_cpu_ns(); /* attaching is not what it costs to record */

	while (s->end == END_NOT_YET) {
		s->end = wait_a_little(s);
		err = session__pass(s);
		if (err < 0) {
			s->end = END_ERROR;
			break;
		}
		session__take_finds(s);
		ts = clock_boot_ns();
		session__govern(s, ts);
		ts = clock_boot_ns(); /* detaching takes its time */
		if (ts - tenth >= 100 * NSEC_PER_MSEC) {
			tenth = ts;
			perf_map__refresh(&s->perf_map, s->target.tgid, clock_boot_ns());
			session__tend_family(s);
			if (s->end == END_NOT_YET && s->alone_since && !session__outlives_target(s, ts))
				s->end = END_GAME;
			progress__show(s);
		}
		if (ts - second >= NSEC_PER_SEC) {
			second = ts;
			every_second(s, ts);
		}
		if (s->end == END_NOT_YET)
			s->end = limit_reached(s, ts);
	}
	progress__clear();
	s->cpu_ns = session__own_cpu_ns() - s->cpu_before;
}

static void tell_skipped(struct session *s)
{
	char worst[64] = "";
	u64 n = capture__skipped(s->capture, worst, sizeof(worst));

	if (n)
		session__note(s, 1, CLASS_META, "the kernel passed over %llu events, most of %s: it was in use",
			(unsigned long long)n, worst);
	n = s->drain.unseen_switches - min(s->drain.unseen_switches, s->drain.lost_class[CLASS_SCHED]);
	if (n)
		session__note(s, 0, CLASS_SCHED,
			"the kernel did not tell of %llu switches between threads: whoever came before them seems to "
			"have had the CPU until the next",
			(unsigned long long)n);
}

/* With one ring there is nothing to tell that the LOST records do not. */
static void tell_rings(struct session *s)
{
	u32 n = capture__rings(s->capture);
	struct str lost = {0};

	for (u32 i = 0; i < n && n > 1; i++)
		str__fmt(&lost, " lost.%u=%llu", i, (unsigned long long)s->drain.rings[i].lost);
	if (lost.len)
		meta__info(&s->out, clock_boot_ns(), "session.rings", "rings=%u bytes=%llu%s", n,
			(unsigned long long)s->drain.ring_bytes, lost.s);
	str__free(&lost);
}

#define LAST_PASSES 100 /* of a millisecond each, for programs that were still running when they were detached */

/* Behind a record that is never completed nothing can be read. */
static void empty_rings(struct session *s)
{
	u64 left;

	session__pass(s);
	for (int i = 0; i < LAST_PASSES && capture__unread(s->capture) && !s->out.error; i++) {
		usleep(1000);
		session__pass(s);
	}
	left = capture__unread(s->capture);
	if (left && !s->out.error)
		session__note(s, 1, CLASS_META,
			"the last %llu bytes of the rings could not be read: a record before them was never completed",
			(unsigned long long)left);
}

int session__finish(struct session *s)
{
	const char *why;
	u64 ts;
	int err;

	scout__stop(s->scout);
	s->scout = NULL;
	s->stop = clock_boot_ns();
	tell_skipped(s);
	session__tell_uncovered(s);
	session__detach(s, DETACH_ALL);
	empty_rings(s);
	ts = clock_boot_ns();
	meta__info(&s->out, ts, "session.detach_ms", "%.1f", (ts - s->stop) / 1e6);
	why = preload__shortfall(&s->preload);
	if (why)
		session__note(s, 1, CLASS_ALLOC, "allocations not covered: %s", why);
	tell_rings(s);
	session__tell_cost(s, clock_boot_ns());
	session__end_cost(s);
	meta__clock(&s->out);
	if (!s->out.sink)
		session__name_code(s);
	if (s->o->verify && !s->out.error)
		session__verify(s);
	err = s->out.error;
	recording__finish(&s->out, !err);
	return err;
}

void session__free(struct session *s)
{
	scout__stop(s->scout);
	capture__free(s->capture);
	preload__close(&s->preload);
	drain__close(&s->drain);
	sites__free(&s->sites);
	images__free(&s->images);
	perf_map__close(&s->perf_map);
	stacks__close(&s->stacks);
	kallsyms__free(&s->kallsyms);
	if (s->kallsyms_fd >= 0)
		close(s->kallsyms_fd);
	target__close(&s->target);
	launch__close(&s->launch);
	if (s->stats_fd >= 0)
		close(s->stats_fd);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
}
