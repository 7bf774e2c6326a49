/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "explain.h"
#include "log.h"
#include "namer.h"
#include "replay.h"
#include "sentence.h"

#define CHILD_NICE        10
#define CHILD_CPU_SECONDS 30 /* for each segment */

/* what the child sends: one of the two */
struct message {
	u32 segment; /* of a `done`; 0: a finding */
	s32 err;
	u64 bytes;
	struct finding finding;
};

/* ---- explaining ---- */

static void copy_text(char *to, size_t size, const char *text)
{
	utf8__sanitize(to, size, text ? text : "", text ? strlen(text) : 0);
}

void finding__of(struct finding *f, const struct verdict *v)
{
	const struct part *lead = v->n_parts ? sentence__lead(v, &f->excess_ns) : NULL, *root;
	struct str text = {};

	*f = (struct finding){.stream = v->frame.stream->id,
		.start = v->frame.start,
		.end = v->frame.end,
		.number = v->frame.number,
		.cause = CAUSE_NONE,
		.excess_ns = lead ? f->excess_ns : 0,
		.typical_ns = v->typical_ns,
		.slow = v->slow,
		.unsure = v->unsure};
	copy_text(f->scene, sizeof(f->scene), v->frame.scene);
	copy_text(f->sentence, sizeof(f->sentence), v->sentence);
	if (!lead)
		return;
	root = sentence__root(lead);
	f->cause = root->cause;
	f->fingerprint = sentence__fingerprint(lead);
	sentence__pattern(&text, lead);
	copy_text(f->text, sizeof(f->text), text.s);
	str__free(&text);
	copy_text(f->what, sizeof(f->what), root->what ?: lead->what);
	copy_text(f->who, sizeof(f->who), lead->who);
	copy_text(f->where, sizeof(f->where), root->where ?: lead->where);
}

struct explaining {
	const struct segment *s;
	void (*found)(void *arg, const struct finding *f);
	void *arg;
};

static void take_verdict(const struct verdict *v, const struct model *m, void *arg)
{
	struct explaining *x = arg;
	struct finding f;

	for (u32 i = 0; i < x->s->n_frames; i++) {
		const struct kept_frame *k = &x->s->frames[i];

		if (k->start != v->frame.start || k->end != v->frame.end)
			continue;
		finding__of(&f, v);
		f.segment = x->s->number;
		f.crossed = k->crossed;
		f.stream = k->stream;
		x->found(x->arg, &f);
		return;
	}
}

int namer__explain(const struct segment *s, int fd, const struct explain_options *o,
	void (*found)(void *arg, const struct finding *f), void *arg)
{
	struct explaining ex = {.s = s, .found = found, .arg = arg};
	struct replay replay = {.verdict = take_verdict, .arg = &ex};
	struct explain_options options = *o;
	struct recording r = {.fd = -1};
	struct model *m = model__new();
	struct explain *x = NULL;
	int err = m ? recording__open_fd(&r, fd) : -ENOMEM;

	options.every_frame = true; /* one that crossed another limit need not be slow */
	if (!err)
		err = replay__prepare(&r, m);
	if (!err)
		err = (x = explain__new(&options)) ? replay__run(&r, m, x, NULL, 0, &replay) : -ENOMEM;
	explain__free(x);
	recording__close(&r);
	model__free(m);
	return err;
}

/* ---- the child ---- */

static void send(const struct message *msg, int to)
{
	const char *at = (const char *)msg;
	size_t left = sizeof(*msg);

	while (left) {
		ssize_t n = write(to, at, left);

		if (n < 0 && errno != EINTR)
			_exit(1); /* the parent is gone; what is named is in the file */
		at += n > 0 ? n : 0;
		left -= n > 0 ? (size_t)n : 0;
	}
}

static void send_finding(void *arg, const struct finding *f)
{
	struct message msg = {.finding = *f};

	send(&msg, *(int *)arg);
}

static void complete(struct namer *n, struct segment *s, int to)
{
	int fd = fcntl(s->w.fd, F_DUPFD_CLOEXEC, 3); /* its name may be gone by now: kept.h */
	struct message msg = {.segment = s->number};

	msg.err = recording__resume(&s->w);
	if (n->name && !msg.err)
		msg.err = n->name(n->arg, &s->w, &s->stacks);
	msg.err = recording__finish(&s->w, !msg.err) ?: msg.err;
	msg.bytes = s->w.bytes;
	if (fd >= 0 && lseek(fd, 0, SEEK_SET) == 0)
		msg.err = namer__explain(s, fd, n->explain, send_finding, &to) ?: msg.err;
	send(&msg, to);
}

/* A file that a parser never comes to the end of ends the child, not the soak. */
static void limit_time(u32 segments)
{
	struct rlimit seconds = {CHILD_CPU_SECONDS * segments, CHILD_CPU_SECONDS * segments};

	setrlimit(RLIMIT_CPU, &seconds);
}

static void start_child(struct namer *n)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return; /* later, perhaps */
	n->n_working = n->n_waiting;
	n->child = fork();
	if (!n->child) {
		close(fds[0]);
		log_level = LOG_QUIET;
		setpriority(PRIO_PROCESS, 0, CHILD_NICE);
		limit_time(n->n_working);
		for (u32 i = 0; i < n->n_working; i++)
			complete(n, &n->waiting[i], fds[1]);
		_exit(0);
	}
	close(fds[1]);
	n->from_child = fds[0];
	if (n->child < 0) {
		n->child = 0;
		n->n_working = 0;
		close(fds[0]);
		return;
	}
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
}

/* ---- here ---- */

/* Frames of which nothing was found count all the same. */
static void tell_rest(struct namer *n, struct segment *s, const char *why)
{
	struct finding f = {.segment = s->number, .cause = CAUSE_NONE, .text = "not explained"};

	snprintf(f.sentence, sizeof(f.sentence), "not explained: %s", why);
	for (u32 i = 0; i < s->n_frames; i++) {
		const struct kept_frame *k = &s->frames[i];

		f.start = k->start;
		f.end = k->end;
		f.number = k->number;
		f.stream = k->stream;
		f.crossed = k->crossed;
		f.slow = !k->crossed;
		n->found(n->arg, &f);
	}
	s->n_frames = 0;
}

/* The child is gone. What it did not say is done, it was not given to do. */
static void end_child(struct namer *n)
{
	struct rusage used;
	u64 ns = 0;

	close(n->from_child);
	if (wait4(n->child, NULL, 0, &used) == n->child)
		ns = (u64)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * NSEC_PER_SEC +
		     (u64)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000;
	n->cpu_ns += ns;
	n->credit_ns -= (s64)ns;
	n->child = 0;
	for (u32 i = 0; i < n->n_working; i++) {
		struct segment *s = &n->waiting[i];

		if (s->number) {
			tell_rest(n, s, "the process that names code failed at it");
			n->done(n->arg, s->number, s->w.bytes, -EIO);
		}
		segment__abandon(s);
	}
	n->n_waiting -= n->n_working;
	memmove(n->waiting, n->waiting + n->n_working, n->n_waiting * sizeof(*n->waiting));
	n->n_working = 0;
}

static struct segment *working_on(struct namer *n, u32 number)
{
	for (u32 i = 0; i < n->n_working; i++)
		if (n->waiting[i].number == number)
			return &n->waiting[i];
	return NULL;
}

static void take_finding(struct namer *n, const struct finding *f)
{
	struct segment *s = working_on(n, f->segment);

	for (u32 i = 0; s && i < s->n_frames; i++)
		if (s->frames[i].start == f->start && s->frames[i].end == f->end)
			s->frames[i] = s->frames[--s->n_frames];
	n->found(n->arg, f);
}

static void take_message(struct namer *n, const struct message *msg)
{
	struct segment *s;

	if (!msg->segment) {
		take_finding(n, &msg->finding);
		return;
	}
	s = working_on(n, msg->segment);
	if (s)
		tell_rest(n, s, msg->err ? recording__strerror(msg->err) : "its recording lacks it");
	n->done(n->arg, msg->segment, msg->bytes, msg->err);
	if (s)
		s->number = 0;
}

/* false: there is no more for now */
static bool hear(struct namer *n, bool wait)
{
	struct pollfd p = {.fd = n->from_child, .events = POLLIN};
	struct message msg;
	size_t have = 0;

	if (poll(&p, 1, wait ? -1 : 0) <= 0)
		return false;
	while (have < sizeof(msg)) { /* messages are larger than what a pipe writes at once */
		ssize_t got = read(n->from_child, (char *)&msg + have, sizeof(msg) - have);

		if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
			poll(&p, 1, 1000);
			continue;
		}
		if (got <= 0) {
			end_child(n);
			return false;
		}
		have += (size_t)got;
	}
	take_message(n, &msg);
	return true;
}

static u64 worst_of(const struct segment *s)
{
	u64 worst = 0;

	for (u32 i = 0; i < s->n_frames; i++)
		worst = max(worst, s->frames[i].end - s->frames[i].start);
	return worst;
}

/* It stays without names. */
static void give_up(struct namer *n, struct segment *s)
{
	tell_rest(n, s, "it would have taken more than redframe's share of a CPU");
	n->done(n->arg, s->number, s->w.bytes, -EBUSY);
	recording__finish(&s->w, true);
	segment__abandon(s);
}

/* Room for one more. False: s is the one that is given up. */
static bool make_room(struct namer *n, const struct segment *s)
{
	u64 least = worst_of(s);
	struct segment *least_of = NULL;

	if (n->n_waiting < NAMER_WAITING)
		return true;
	for (u32 i = n->n_working; i < n->n_waiting; i++) {
		u64 worst = worst_of(&n->waiting[i]);

		if (worst < least) {
			least = worst;
			least_of = &n->waiting[i];
		}
	}
	if (!least_of)
		return false;
	give_up(n, least_of);
	n->n_waiting--;
	memmove(least_of, least_of + 1, (size_t)(n->waiting + n->n_waiting - least_of) * sizeof(*least_of));
	return true;
}

void namer__take(struct namer *n, struct segment *s)
{
	if (!make_room(n, s)) {
		give_up(n, s);
		return;
	}
	recording__rest(&s->w);
	stacks__rewind(&s->stacks); /* writes what is in its buffer, too, which is not needed for reading */
	free(s->stacks.buf);
	s->stacks.buf = NULL;
	n->waiting[n->n_waiting++] = *s;
	*s = (struct segment){.w = {.fd = -1}, .stacks = {.fd = -1}};
}

static bool is_time(const struct namer *n, bool hurry)
{
	if (n->child || !n->n_waiting || n->credit_ns <= 0)
		return false;
	return hurry || n->credit_ns >= (s64)NAMER_SAVED_NS || n->n_waiting >= NAMER_TOGETHER ||
	       n->now > n->waiting[0].to + NAMER_WAIT_NS;
}

void namer__tend(struct namer *n, u64 now, bool hurry)
{
	if (now > n->now)
		n->credit_ns = n->now ? min(n->credit_ns + (s64)((now - n->now) / NAMER_SHARE), (s64)NAMER_SAVED_NS)
				      : (s64)NAMER_SAVED_NS;
	n->now = max(n->now, now);
	while (n->child && hear(n, false))
		;
	if (is_time(n, hurry))
		start_child(n);
}

void namer__finish(struct namer *n)
{
	while (n->n_waiting) {
		if (!n->child)
			start_child(n);
		while (n->child && hear(n, true))
			;
	}
}

void namer__free(struct namer *n)
{
	for (u32 i = 0; i < n->n_waiting; i++)
		segment__abandon(&n->waiting[i]);
	n->n_waiting = 0;
}
