// SPDX-License-Identifier: GPL-2.0-only
/*
 * -- CMD may be the game, become it by exec, or start it and stay or leave. So CMD and all that it starts is recorded,
 * until one of them is seen to present: that is the game, and from then on only that is recorded, except with
 * --children. redframe is the subreaper of what CMD leaves behind, so that all of it is found as redframe's own
 * descendants.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"
#include "family.h"
#include "log.h"
#include "probe_desc.h"
#include "scout.h"
#include "session.h"
#include "startup.h"

#define ALONE_LEAST_NS (200 * NSEC_PER_MSEC)
#define ALONE_NS       (30 * NSEC_PER_SEC) /* how long what CMD left behind may take to show a frame */

int session__begin_family(struct session *s)
{
	u32 tgids[FAMILY_MAX];
	int err = 0, n;

	if (!s->o->children && !s->o->command)
		return 0;
	s->only_game = !s->o->children && !strcmp(s->o->frame, "none");
	capture__game(s->capture, s->target.tgid, s->only_game);
	err = capture__follow(s->capture, s->target.tgid);
	n = s->o->children ? family__list(s->target.tgid, tgids, FAMILY_MAX) : 0;
	for (int i = 0; i < n && !err; i++)
		err = capture__follow(s->capture, tgids[i]);
	if (n == FAMILY_MAX)
		session__note(s, 1, CLASS_META, "of the game's children only %d are recorded", n);
	return err;
}

void session__tell_family(struct session *s, u64 ts)
{
	u32 tgids[FAMILY_MAX];
	char key[32];
	int n;

	if (!s->o->children)
		return;
	meta__info(&s->out, ts, "session.children", "1");
	n = family__list(s->target.tgid, tgids, FAMILY_MAX);
	for (int i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "child.%u", tgids[i]);
		meta__info(&s->out, ts, key, "%u", s->target.tgid);
	}
}

/* What /proc says of the game since it has become another program. */
static void introduce(struct session *s)
{
	u64 ts = session__stamp(s);

	startup__game(&s->out, ts, &s->target);
	images__free(&s->images);
	images__refresh(&s->images, s->target.tgid);
	startup__maps(&s->out, ts, s->target.tgid);
	s->heap_of = 0;
}

/* CMD may come to its program by a chain of execs; and a look in the middle of one sees the old name with the new file.
 */
static void follow_exec(struct session *s)
{
	bool other_file, other_name;
	char why[256];
	struct target t;

	if (s->target.pidfd < 0 || target__by_pid(&t, s->target.tgid, why, sizeof(why)))
		return;
	other_file = strcmp(t.exe, s->target.exe) != 0;
	other_name = strcmp(t.name, s->target.name) != 0;
	if (!other_file && !other_name) {
		target__close(&t);
		return;
	}
	target__close(&s->target);
	s->target = t;
	if (other_file) {
		s->preload.calls = 0; /* the program before, a shell perhaps, is not the game */
		introduce(s);
	} else {
		startup__game(&s->out, session__stamp(s), &s->target);
	}
}

int session__retarget(struct session *s, u32 tgid)
{
	char why[256];
	struct target t;

	if (target__by_pid(&t, tgid, why, sizeof(why)))
		return -ESRCH;
	session__note(s, 0, CLASS_META, "the game is %s (%u), which %s started; what its code did before is not probed",
		t.name, tgid, s->o->command ? s->o->command[0] : s->target.name);
	for (int what = PROBE_FRAME; what <= PROBE_ALLOC; what++)
		session__leave_sites(s, (u8)what);
	s->have_frames = false;
	s->left[0] = 0; /* it may be right for this one */
	s->alone_since = 0;
	target__close(&s->target);
	s->target = t;
	s->only_game = !s->o->children;
	capture__game(s->capture, tgid, s->only_game);
	capture__attach_sites_again(s->capture, &s->sites, PROBE_SAMPLED); /* it has the library, too */
	startup__tasks(&s->out, session__stamp(s), tgid);
	introduce(s);
	scout__stop(s->scout);
	s->scout = NULL;
	return 0;
}

bool session__outlives_target(struct session *s, u64 ts)
{
	u32 one;

	launch__reap(&s->launch);
	if (!s->o->command || s->target.tgid != s->launch.tgid || s->drain.marks >= SETTLED_MARKS ||
		!strcmp(s->o->frame, "none"))
		return false;
	if (!s->alone_since) {
		s->alone_since = ts;
		log_debug("%s has ended; what it left behind may be the game", s->o->command[0]);
		target__close(&s->target);
	}
	/* while they are handed from one parent to the next, a look at /proc may miss them */
	if (!family__list((u32)getpid(), &one, 1))
		return ts - s->alone_since < ALONE_LEAST_NS;
	return ts - s->alone_since < ALONE_NS;
}

void session__tend_family(struct session *s)
{
	if (s->launch.tgid) {
		launch__reap(&s->launch);
		follow_exec(s);
	}
	if (!s->o->command || s->o->children || s->only_game || s->drain.marks < SETTLED_MARKS)
		return;
	s->only_game = true;
	capture__game(s->capture, s->target.tgid, true);
}
