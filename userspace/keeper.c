/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"
#include "events_desc.h"
#include "keeper.h"
#include "log.h"

#define IDLE_NS       (2 * NSEC_PER_SEC) /* without frames: a segment ends */
#define FULL_RETRY_NS (10 * NSEC_PER_SEC)
#define ROOM_BYTES    (1u << 20) /* that there must be before a segment begins or goes on */

static int left(void *arg, const struct ev_hdr *rec)
{
	struct keeper *k = arg;

	return ev__is_definition(rec->kind) ? model__event(k->past, rec) : 0;
}

/* ---- naming ---- */

static void tell(struct keeper *k, const struct finding *f)
{
	if (k->o->hitch)
		k->o->hitch(k->o->arg, f);
}

static void namer_found(void *arg, const struct finding *f)
{
	struct keeper *k = arg;

	kept__hitch(&k->files, f->segment, f->fingerprint, f->excess_ns, f->end - f->start);
	tell(k, f);
}

static void namer_done(void *arg, u32 segment, u64 bytes, int err)
{
	struct keeper *k = arg;

	kept__size(&k->files, segment, bytes);
	kept__told(&k->files, segment);
	kept__make_room(&k->files, 0, k->segment.number);
	if (err == -EBUSY && !k->hurried && k->o->note)
		k->o->note(k->o->arg,
			"explaining took more than its share of a CPU: of the least slow frames the recordings stay "
			"without names, and the hitches without a cause");
	k->hurried |= err == -EBUSY;
	k->not_named += err != 0;
	if (err && err != -EBUSY)
		log_debug("segment %u: %s", segment, errstr(err));
}

static int name_segment(void *arg, struct recording_writer *w, struct stacks *stacks)
{
	struct keeper *k = arg;

	return k->o->name ? k->o->name(k->o->arg, w, stacks) : 0;
}

static void tend_namer(struct keeper *k, bool hurry)
{
	if (!k->o->patient)
		namer__tend(&k->namer, k->now, hurry);
	else if (hurry)
		namer__finish(&k->namer);
}

/* What is least interesting goes: that must be known. */
static bool make_room(struct keeper *k, u32 spare)
{
	if (kept__lacks_knowledge(&k->files, ROOM_BYTES, spare))
		tend_namer(k, true);
	return kept__make_room(&k->files, ROOM_BYTES, spare);
}

/* ---- segments ---- */

/* The disk is full, or something else is in the way: what is kept of this hitch goes, its figures stay. */
static void give_up_segment(struct keeper *k, int err)
{
	char text[256];

	k->not_kept += max(k->segment.n_frames, 1u);
	for (u32 i = 0; i < k->segment.n_frames; i++)
		tell(k, &k->found[i]);
	k->segment.n_frames = 0;
	if (k->segment.number) {
		unlink(k->segment.path);
		kept__size(&k->files, k->segment.number, 0);
		kept__told(&k->files, k->segment.number);
		segment__abandon(&k->segment);
	}
	if (!k->full_since && k->o->note) {
		snprintf(text, sizeof(text), "slow frames are explained without names, but not kept: %s", errstr(err));
		k->o->note(k->o->arg, text);
	}
	k->full_since = k->now;
}

static void end_segment(struct keeper *k)
{
	if (!k->segment.number)
		return;
	if (recording__flush(&k->segment.w)) {
		give_up_segment(k, k->segment.w.error);
		return;
	}
	kept__size(&k->files, k->segment.number, k->segment.w.bytes);
	namer__take(&k->namer, &k->segment);
	tend_namer(k, k->namer.n_waiting >= NAMER_TOGETHER);
}

static int begin_segment(struct keeper *k, u64 from)
{
	const struct ev_hdr *rec;
	u64 at = 0, oldest = history__oldest(&k->history);
	int err;

	if (!make_room(k, 0))
		return -EDQUOT;
	k->cut += k->history.cut >= from;
	if (oldest <= k->now)
		from = max(from, oldest);
	/* what is known is stamped with the oldest moment: what was defined since comes after it */
	err = segment__open(&k->segment, k->o->dir, ++k->segments, min(from, oldest));
	if (err)
		return err;
	err = kept__add(&k->files, k->segment.number, k->precious) ?: segment__define(&k->segment, k->past);
	if (!err && k->clock.hdr.kind)
		err = segment__write(&k->segment, &k->clock.hdr, k->live, &k->stacks);
	while (!err && (rec = history__next(&k->history, &at)))
		if (rec->ts >= from || ev__is_definition(rec->kind))
			err = segment__write(&k->segment, rec, k->live, &k->stacks);
	return err;
}

/* where a segment begins that is for the frame which began at `start` */
static u64 context_begin(const struct keeper *k, u32 stream, u64 start)
{
	u64 from = start - min(start, k->o->before_ns), seen = 0;

	for (u64 i = k->n_recent; i && k->n_recent - i < KEEPER_RECENT && seen < k->o->before_frames; i--) {
		const struct recent *r = &k->recent[(i - 1) % KEEPER_RECENT];

		if (r->stream != stream || r->start >= start)
			continue;
		from = min(from, r->start);
		seen++;
	}
	return from;
}

/* 0 or -errno: the segment is open that is to have it */
static int segment_for(struct keeper *k, const struct frame *f)
{
	if (k->full_since && k->now - k->full_since < FULL_RETRY_NS) {
		k->not_kept++;
		return -ENOSPC;
	}
	if (k->segment.number && k->segment.n_frames == SEGMENT_FRAMES)
		end_segment(k);
	if (!k->segment.number) {
		int err = begin_segment(k, context_begin(k, f->stream->id, f->start));

		if (err) {
			give_up_segment(k, err);
			return err;
		}
	}
	k->full_since = 0;
	return 0;
}

void keeper__keep(struct keeper *k, const struct verdict *v, u32 crossed)
{
	const struct frame *f = &v->frame;
	struct finding found;
	u32 n;

	k->kept++;
	finding__of(&found, v);
	found.crossed = crossed;
	if (segment_for(k, f)) {
		tell(k, &found);
		return;
	}
	n = k->segment.n_frames++;
	k->found[n] = found;
	k->segment.frames[n] = (struct kept_frame){
		.start = f->start, .end = f->end, .number = f->number, .stream = f->stream->id, .crossed = crossed};
	k->after = 0;
	k->last_kept = f->end;
}

void keeper__keep_last(struct keeper *k)
{
	int err = 0;

	if (!k->o->dir)
		return;
	if (!k->segment.number) {
		k->precious = true;
		err = begin_segment(k, k->now - min(k->now, ENGINE_LAST_NS));
		k->precious = false;
	}
	if (err)
		give_up_segment(k, err);
}

static int to_segment(struct keeper *k, const struct ev_hdr *rec)
{
	int err;

	if (!k->segment.number)
		return 0;
	err = segment__write(&k->segment, rec, k->live, &k->stacks);
	if (err) {
		give_up_segment(k, err);
		return err == -ENOMEM ? err : 0;
	}
	if (k->segment.w.bytes >= k->o->segment_bytes) {
		end_segment(k);
		k->after = k->o->after_frames; /* another one begins with the next frame that is kept */
	}
	return 0;
}

/* ---- the stream ---- */

int keeper__record(struct keeper *k, const struct ev_hdr *rec)
{
	int err = 0;

	k->now = max(k->now, rec->ts);
	if (!model__is_of_code(rec->kind)) /* in a replay: it comes from the recording that is replayed */
		err = history__push(&k->history, rec) ?: to_segment(k, rec);
	if (rec->kind == EV_CLOCK)
		k->clock = *(const struct ev_clock *)rec;
	return err;
}

void keeper__passed(struct keeper *k, const struct frame *f)
{
	u64 from, last = f->end - min(f->end, ENGINE_LAST_NS);

	k->recent[k->n_recent++ % KEEPER_RECENT] = (struct recent){f->start, f->stream->id};
	if (k->segment.number && k->after++ >= k->o->after_frames)
		end_segment(k);
	from = context_begin(k, f->stream->id, f->end);
	history__trim(&k->history, min(from, last));
}

u64 keeper__oldest(const struct keeper *k)
{
	return history__oldest(&k->history);
}

int keeper__forget(struct keeper *k, u64 ts)
{
	return model__forget_dead(k->past, ts);
}

void keeper__flush(struct keeper *k)
{
	if (k->segment.number && recording__flush(&k->segment.w))
		give_up_segment(k, k->segment.w.error);
}

void keeper__tend(struct keeper *k, u64 last_frame)
{
	keeper__flush(k);
	if (k->segment.number && k->now > k->last_kept && k->now - k->last_kept > IDLE_NS &&
		k->now - min(last_frame, k->now) > IDLE_NS)
		end_segment(k);
	if (k->segment.number) {
		kept__size(&k->files, k->segment.number, k->segment.w.bytes);
		if (!make_room(k, k->segment.number))
			end_segment(k); /* it alone is as large as all may be */
	}
	tend_namer(k, false);
}

void keeper__finish(struct keeper *k)
{
	end_segment(k);
	namer__finish(&k->namer);
}

/* ---- from begin to end ---- */

int keeper__init(struct keeper *k, const struct engine_options *o)
{
	*k = (struct keeper){.o = o};
	k->segment.w.fd = k->segment.stacks.fd = -1;
	k->namer.explain = &o->explain;
	k->namer.name = name_segment;
	k->namer.found = namer_found;
	k->namer.done = namer_done;
	k->namer.arg = k;
	kept__init(&k->files, o->dir ?: "", o->max_bytes);
	return stack_cache__init(&k->stacks, ENGINE_STACK_BYTES);
}

void keeper__free(struct keeper *k)
{
	segment__abandon(&k->segment);
	namer__free(&k->namer);
	keeper__end(k);
	stack_cache__free(&k->stacks);
	kept__free(&k->files);
}

int keeper__begin(struct keeper *k, const struct model *live)
{
	k->live = live;
	k->past = model__new();
	k->clock = (struct ev_clock){};
	k->n_recent = 0;
	return k->past ? history__init(&k->history, ENGINE_HISTORY_BYTES, left, k) : -ENOMEM;
}

void keeper__end(struct keeper *k)
{
	model__free(k->past);
	history__free(&k->history);
	k->past = NULL;
}
