// SPDX-License-Identifier: GPL-2.0-only
/*
 * Probes on and off while records come. For a uprobe the kernel takes the lock on the mappings of each process that
 * maps the file, and for one that goes waits until no CPU is in the program any more: on a machine with more threads
 * than CPUs that takes seconds, in which the ring would run over.
 */
#include <errno.h>
#include <string.h>

#include "aside.h"
#include "capture.h"
#include "session.h"
#include "strings.h"

/* One of these at a time. What capture says of it meanwhile, in another thread than the one that writes the recording,
 * waits until it is done. */
struct change {
	struct session *s;
	int (*apply)(struct session *s, int what);
	int what, err;
	struct str notes; /* each its class and its text, NUL-terminated */
};

static void apply(void *arg)
{
	struct change *c = arg;

	c->err = c->apply(c->s, c->what);
}

static void pass(void *arg)
{
	session__pass(((struct change *)arg)->s); /* its error stays in s->out */
}

void session__capture_note(void *arg, enum ev_class class, const char *text)
{
	struct session *s = arg;
	char first = (char)class;

	if (!s->change) {
		session__note(s, 1, class, "%s", text);
		return;
	}
	str__add_n(&s->change->notes, &first, 1);
	str__add_n(&s->change->notes, text, strlen(text) + 1);
}

static int run(struct session *s, int (*fn)(struct session *s, int what), int what)
{
	struct change c = {.s = s, .apply = fn, .what = what};

	if (!s->drain.rings)
		return fn(s, what);
	s->change = &c;
	aside__run(apply, pass, &c);
	s->change = NULL;
	for (size_t at = 0; at < c.notes.len && !c.notes.oom; at += strlen(c.notes.s + at + 1) + 2)
		session__note(s, 1, (u8)c.notes.s[at], "%s", c.notes.s + at + 1);
	str__free(&c.notes);
	return c.err;
}

static int detach(struct session *s, int what)
{
	if (what == DETACH_ALL)
		capture__detach(s->capture);
	else
		capture__detach_sites(s->capture, (u8)what);
	return 0;
}

static int leave_out(struct session *s, int what)
{
	capture__leave_out_sites(s->capture, (u8)what);
	return 0;
}

static int attach_again(struct session *s, int what)
{
	return capture__attach_sites_again(s->capture, &s->sites, (u8)what);
}

static int attach_from(struct session *s, int first)
{
	return capture__attach_sites(s->capture, &s->sites, first);
}

void session__detach(struct session *s, int what)
{
	run(s, detach, what);
}

void session__leave_out(struct session *s, int what)
{
	run(s, leave_out, what);
}

int session__attach_again(struct session *s, int what)
{
	return run(s, attach_again, what);
}

int session__attach_from(struct session *s, int first)
{
	return run(s, attach_from, first);
}
