// SPDX-License-Identifier: GPL-2.0-only
/* The probes of a recording: found before it begins, joined by what the scout finds, left where they cost too much. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../preload/area.h"
#include "capture.h"
#include "frame_source.h"
#include "heap.h"
#include "log.h"
#include "maps.h"
#include "scout.h"
#include "session.h"
#include "startup.h"

static bool allocs_by_probes(const struct record_options *o)
{
	return o->on[CLASS_ALLOC] && (o->alloc == ALLOC_LARGE || o->alloc == ALLOC_ALL);
}

static void find_allocators(struct session *s)
{
	const struct record_options *o = s->o;
	char why[1024] = "";
	int n = sites__alloc(&s->sites, s->target.tgid, o->alloc == ALLOC_ALL, why, sizeof(why));

	if (n <= 0 && !o->alloc_fn.n)
		session__note(s, 1, CLASS_ALLOC, "allocations not covered: %s", why);
	else if (why[0])
		session__note(s, 0, CLASS_ALLOC, "%s", why);
	for (int i = 0; i < o->alloc_fn.n; i++) {
		n = sites__alloc_fn(&s->sites, s->target.tgid, o->alloc_fn.v[i], why, sizeof(why));
		if (n <= 0 || why[0])
			session__note(s, 1, CLASS_ALLOC, "--alloc-fn %s: %s", o->alloc_fn.v[i], why);
	}
}

/* The library of --alloc preload is known before the game maps it. */
static void find_samples(struct session *s)
{
	int n = 0;

	if (s->preload.fd < 0 || !s->o->alloc_sample)
		return;
	n = sites__sampled(&s->sites, s->preload.library);
	if (n > 0)
		preload__sample(&s->preload, s->o->alloc_sample);
	else
		session__note(s, 1, CLASS_ALLOC, "allocations have no call chains: %s in %s: %s", PRELOAD_SAMPLE,
			s->preload.library, errstr(n ?: -ENOENT));
}

void session__find_sites(struct session *s)
{
	const struct record_options *o = s->o;
	bool allocs = allocs_by_probes(o), before_exec = o->command;
	char why[1024] = "";
	int n;

	if (before_exec) { /* it maps nothing of the game yet: the scout finds the sites */
		find_samples(s);
		return;
	}
	n = sites__frame(&s->sites, s->target.tgid, o->frame, s->source, sizeof(s->source), why, sizeof(why));
	s->have_frames = n > 0;
	if (n <= 0 && strcmp(o->frame, "none"))
		session__note(s, 2, CLASS_FRAME, "no frame source found: %s", why);
	else if (why[0])
		session__note(s, 0, CLASS_FRAME, "frames: %s", why);
	sites__markers(&s->sites, s->target.tgid, why, sizeof(why));
	if (why[0])
		session__note(s, 1, CLASS_FRAME, "markers: %s", why);
	if (allocs)
		find_allocators(s);
}

void session__start_scout(struct session *s, bool now)
{
	const struct record_options *o = s->o;
	char more[sizeof(s->source)];
	struct scout_want want = {
		.tgid = s->target.tgid,
		.family = o->command ? (u32)getpid() : 0,
		.now = now,
		.frame = (s->have_frames && !s->sites.unsure) || !strcmp(o->frame, "none") ? NULL : o->frame,
		.unsure = s->have_frames,
		.more = s->have_frames ? scout__more(s->source, more, sizeof(more)) : NULL,
		.allocs = o->command && allocs_by_probes(o),
		.frees = o->alloc == ALLOC_ALL,
		.alloc_fns = o->alloc_fn.v,
		.n_alloc_fns = o->alloc_fn.n,
	};

	s->scout = scout__start(&want);
}

/* The first of each file stands for all of them. */
static void tell_misplaced(struct session *s, int first)
{
	struct maps maps = {};

	if (maps__read(&maps, s->target.tgid))
		return;
	for (int file = 0; file < s->sites.n_files; file++) {
		const struct site *site = NULL;
		int n = 0;

		for (int i = first; i < s->sites.n; i++) {
			if (s->sites.sites[i].file != file)
				continue;
			site = site ?: &s->sites.sites[i];
			n++;
		}
		if (site && !sites__in_place(&s->sites, site, &maps, s->target.tgid))
			session__note(s, 2, CLASS_META,
				"%s: its probes (%d) are not in the code that the game runs, and will see nothing: the "
				"file was "
				"changed beneath it, on an overlay file system; start the game again",
				s->sites.files[file].path, n);
	}
	maps__free(&maps);
}

void session__attach_sites(struct session *s, int first)
{
	if (!session__attach_from(s, first))
		tell_misplaced(s, first);
}

/* ---- while it runs ---- */

static bool is_known(const struct session *s, const struct site_list *found, const struct site *site)
{
	const struct site_file *f = &found->files[site->file];

	for (int i = 0; i < s->sites.n; i++) {
		const struct site *k = &s->sites.sites[i];
		const struct site_file *kf = &s->sites.files[k->file];

		if (!k->gone && k->offset == site->offset && kf->dev == f->dev && kf->ino == f->ino)
			return true;
	}
	return false;
}

/* Leaves out what we have already, or all frame sites. */
static void drop_sites(const struct session *s, struct site_list *found, bool frames)
{
	int kept = 0;

	for (int i = 0; i < found->n; i++) {
		struct site site = found->sites[i];

		if ((frames && site.desc.what == PROBE_FRAME) || is_known(s, found, &site))
			continue;
		found->sites[kept++] = site;
	}
	found->n = kept;
}

/* What the scout found joins the sites that we have: file and site numbers move up. */
static int adopt(struct session *s, struct site_list *found)
{
	struct site *sites = reallocarray(s->sites.sites, (size_t)s->sites.n + (size_t)found->n, sizeof(*sites));
	struct site_file *files;

	if (!sites)
		return -ENOMEM;
	s->sites.sites = sites;
	files = reallocarray(s->sites.files, (size_t)s->sites.n_files + (size_t)found->n_files, sizeof(*files));
	if (!files)
		return -ENOMEM;
	s->sites.files = files;
	for (int i = 0; i < found->n; i++) {
		struct site site = found->sites[i];

		site.file += s->sites.n_files;
		site.desc.site = s->sites.n + i;
		sites[s->sites.n + i] = site;
	}
	memcpy(files + s->sites.n_files, found->files, found->n_files * sizeof(*files));
	s->sites.n += found->n;
	s->sites.n_files += found->n_files;
	s->sites.cap = s->sites.n;
	s->sites.cap_files = s->sites.n_files;
	found->n_files = 0; /* their fds are ours now */
	return 0;
}

void session__leave_sites(struct session *s, u8 what)
{
	session__detach(s, what);
	for (int i = 0; i < s->sites.n; i++)
		s->sites.sites[i].gone |= s->sites.sites[i].desc.what == what;
}

/* The source that was guessed at has never fired, and another is likelier by now. */
static void leave_frame_source(struct session *s)
{
	session__note(s, 1, CLASS_FRAME, "%s was taken for the frame source, but has not been called", s->source);
	session__leave_sites(s, PROBE_FRAME);
	s->have_frames = false;
}

/* What has come from it stays; a frame that is open ends in no mark any more. */
void session__replace_frame_source(struct session *s)
{
	char spec[SCOUT_SPEC_SIZE];
	size_t len = strlen(s->left), told;
	u64 ts;

	session__leave_sites(s, PROBE_FRAME);
	s->have_frames = false;
	s->n_left++;
	ts = session__stamp(s);
	s->marks_left = s->drain.marks;
	s->left_ts = ts;
	told = strlen(s->told_left);
	snprintf(s->told_left + told, sizeof(s->told_left) - told, "%s%s until %.3f s", told ? "; " : "", s->source,
		(ts - s->start) / 1e9);
	meta__info(&s->out, ts, "frame.left", "%s", s->told_left);
	/* more than that is not left in one recording: what does not fit may be found again, and left again */
	snprintf(s->left + len, sizeof(s->left) - len, "%s\n", s->source);
	snprintf(spec, sizeof(spec), SITES_AUTO_BUT "%s", s->left);
	if (s->scout)
		scout__look_anew(s->scout, spec);
}

static void take_frame_source(struct session *s, const struct scout_find *f)
{
	u64 ts;

	if (s->have_frames)
		return;
	s->have_frames = true;
	snprintf(s->source, sizeof(s->source), "%s", f->source);
	ts = session__stamp(s);
	meta__info(&s->out, ts, "frame.source", "%s", f->source);
	log_info("frames: %s (from %.1f s on)", f->source, (ts - s->start) / 1e9);
	if (s->n_left)
		session__note(s, 1, CLASS_FRAME,
			"frames are from %s, from %.3f s on: they compare to those before only as far as both "
			"sources fire once a frame",
			f->source, (ts - s->start) / 1e9);
	if (f->why[0])
		session__note(s, 0, CLASS_FRAME, "frames: %s", f->why);
}

/* The probes from the site `first` on have come while it recorded: into the recording, library by library. */
static void tell_from_when(struct session *s, int first)
{
	u64 ts = session__stamp(s);
	char text[700];

	for (int file = 0; file < s->sites.n_files; file++) {
		int n = 0;

		for (int i = first; i < s->sites.n; i++)
			n += s->sites.sites[i].file == file;
		if (!n)
			continue;
		snprintf(text, sizeof(text), "%s: %d probes, from %.3f s on; what was called before is not recorded",
			s->sites.files[file].path, n, (ts - s->start) / 1e9);
		meta__note(&s->out, ts, 0, CLASS_META, text);
		log_debug("%s", text);
	}
}

static void attach_finds(struct session *s, struct scout_find *f)
{
	int first = s->sites.n;
	u64 ts;

	if (!f->sites.n || adopt(s, &f->sites))
		return;
	ts = session__stamp(s);
	startup__sites(&s->out, ts, &s->sites, first);
	session__attach_sites(s, first);
	tell_from_when(s, first);
	images__refresh(&s->images, s->target.tgid);
	for (int i = first; !f->frame && i < s->sites.n; i++)
		if (s->sites.sites[i].desc.what == PROBE_FRAME) {
			log_info("frames: also %s (from %.1f s on)", s->sites.sites[i].label, (ts - s->start) / 1e9);
			break;
		}
}

/* But for those that have a probe since they were called less often. */
static void tell_left_out(struct session *s, const struct scout_find *f)
{
	for (int i = 0; i < s->sites.n; i++)
		if (!s->sites.sites[i].gone && strstr(f->left_out, s->sites.sites[i].label))
			return;
	if (f->left_out[0])
		session__note(s, 1, CLASS_ALLOC, "%s", f->left_out);
}

static void tell_blind(struct session *s)
{
	int err = s->told_blind ? 0 : scout__blind(s->scout);

	if (!err)
		return;
	s->told_blind = true;
	session__note(
		s, 1, CLASS_FRAME, "Vulkan devices that the game makes from here on are not seen: %s", errstr(err));
}

void session__take_finds(struct session *s)
{
	bool same, late; /* found before it was left */
	struct scout_find f;

	if (!s->scout)
		return;
	if (s->drain.marks - s->marks_left >= SETTLED_MARKS)
		scout__settle(s->scout);
	tell_blind(s);
	if (!scout__take(s->scout, &f))
		return;
	if (f.tgid != s->target.tgid && session__retarget(s, f.tgid)) {
		sites__free(&f.sites); /* it has ended already */
		return;
	}
	same = !strcmp(f.source, s->source);
	if (f.frame && s->have_frames && !same && s->drain.marks == s->marks_left)
		leave_frame_source(s);
	late = s->left[0] && (f.frame ? frame_source__is_among(f.source, s->left) : !s->have_frames);
	f.frame &= !late;
	drop_sites(s, &f.sites, late || (f.frame && s->have_frames && !same));
	attach_finds(s, &f);
	tell_left_out(s, &f);
	if (f.frame) {
		s->sites.unsure = f.sites.unsure;
		take_frame_source(s, &f);
	}
	sites__free(&f.sites);
	if (!s->scout)
		session__start_scout(s, true); /* of another process now */
}

/* What the scout was to find is known at the end: another frame source, and the allocator of CMD's program. */
void session__tell_uncovered(struct session *s)
{
	const struct record_options *o = s->o;

	if (s->left[0] && !s->have_frames)
		session__note(s, 1, CLASS_FRAME, "no other frame source was found in the %.1f s since",
			(s->stop - s->left_ts) / 1e9);
	for (int i = 0; i < s->sites.n; i++)
		if (s->sites.sites[i].desc.what == PROBE_ALLOC && !s->sites.sites[i].gone)
			return;
	if (o->command && allocs_by_probes(o))
		session__note(
			s, 1, CLASS_ALLOC, "allocations not covered: no allocator was found in %s", s->target.name);
}

/* The heap may be made, or the game become another program, at any time. */
void session__find_heap(struct session *s)
{
	u32 tgid = s->target.tgid;
	u64 bins;

	if (!s->o->on[CLASS_ALLOC] || s->heap_of == tgid)
		return;
	bins = heap__find(tgid);
	capture__heap(s->capture, bins);
	if (!bins)
		return;
	s->heap_of = tgid;
	meta__info(&s->out, session__stamp(s), "heap.allocator", "glibc");
}
