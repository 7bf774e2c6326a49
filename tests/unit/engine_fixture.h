/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A game that is made up while soak's engine runs, and who listens to what the engine tells of it.
 */
#ifndef REDFRAME_ENGINE_FIXTURE_H
#define REDFRAME_ENGINE_FIXTURE_H

#include <dirent.h>
#include <stdio.h>

#include "engine.h"
#include "events_desc.h"
#include "explain_fixture.h"
#include "syscalls.h"

#define GAME  1000
#define OTHER 2000
#define MS    NSEC_PER_MSEC
#define PACE  (NSEC_PER_SEC / 60)
#define START (1000 * NSEC_PER_SEC)

/* ---- a game ---- */

struct game {
	struct engine *e;
	struct recording_writer *whole; /* gets the same; NULL */
	u64 ts, frame;
	u32 busy; /* records of other threads a frame */
};

static inline void put(struct game *g, const void *rec)
{
	const struct ev_hdr *h = rec;

	assert_int_equal(engine__record(g->e, h), 0);
	if (g->whole)
		assert_int_equal(recording__append(g->whole, h, h->words * 8u), 0);
}

#define PUT(g, KIND, name, ts_, tid_, ...)                                                                             \
	put(g, &(struct ev_##name){                                                                                    \
		       .hdr = {.ts = (ts_), .tid = (tid_), .kind = EV_##KIND, .words = sizeof(struct ev_##name) / 8},  \
		       __VA_ARGS__})

static inline void put_text(struct game *g, const void *fixed, size_t bytes, const char *text, size_t len)
{
	u64 rec[EV_MAX_BYTES / 8] = {0};
	struct ev_hdr *h = (struct ev_hdr *)rec;

	memcpy(rec, fixed, bytes);
	memcpy((char *)rec + bytes, text, len);
	h->words = (u8)((bytes + len + 8) / 8);
	put(g, rec);
}

#define PUT_TEXT(g, KIND, name, tid_, text, len, ...)                                                                  \
	put_text(g, &(struct ev_##name){.hdr = {.ts = (g)->ts, .tid = (tid_), .kind = EV_##KIND}, __VA_ARGS__},        \
		sizeof(struct ev_##name), text, len)

static inline void info(struct game *g, const char *text)
{
	PUT_TEXT(g, INFO, info, 0, text, strlen(text));
}

static inline void scene(struct game *g, const char *name)
{
	PUT_TEXT(g, SCENE, scene, GAME, name, strlen(name));
}

static inline void begin_game(struct game *g)
{
	static const char path[] = "big.pak\0data";

	info(g, "game.tgid=1000");
	info(g, "game.name=made-up");
	info(g, "kernel.release=6.1.0");
	info(g, "probe.0=usdt:redframe:frame");
	PUT_TEXT(g, PROCESS, process, GAME, "made-up", 8, .nspid = GAME);
	PUT_TEXT(g, THREAD, thread, GAME, "MainThread", 10, .tgid = GAME, .nstid = GAME);
	PUT_TEXT(g, THREAD, thread, GAME + 1, "RenderThread", 12, .tgid = GAME, .nstid = GAME + 1);
	PUT_TEXT(g, THREAD, thread, OTHER, "compiler", 8, .tgid = OTHER, .nstid = OTHER);
	PUT_TEXT(g, PATH, path, GAME, path, sizeof(path), .ino = 7, .dev = 8 << 20 | 1, .mode = 0x81a4);
	PUT(g, SWITCH, switch, g->ts, 0, .next_tid = GAME, .flags = SWITCH_NEXT_GAME);
	PUT(g, FRAME, frame, g->ts, GAME, .number = g->frame++, .mark = FRAME_MARK);
}

/* A frame of so long, of which the main thread reads from the disk for read_ns. */
static inline void frame(struct game *g, u64 dur, u64 read_ns)
{
	u64 start = g->ts, end = start + dur;

	for (u32 i = 0; i < g->busy; i++)
		PUT(g, FAULT, fault, start + MS + i * 1000, GAME + 1, .dur = 500, .addr = 0x600000 + i * 4096);
	if (read_ns) {
		PUT(g, SWITCH, switch, start + 3 * MS, GAME, .next_tid = 0, .prev_state = 2, .sys = SYS_ID_read,
			.flags = SWITCH_GAME);
		PUT(g, WAKING, waking, start + 3 * MS + read_ns - 1000, GAME, .waker = 0, .flags = WAKE_HARDIRQ);
		PUT(g, SWITCH, switch, start + 3 * MS + read_ns - 500, 0, .next_tid = GAME, .flags = SWITCH_NEXT_GAME);
		PUT(g, FILE_READ, file_read, start + 3 * MS + read_ns, GAME, .dur = read_ns, .offset = 0,
			.cold = 1 << 20, .ino = 7, .dev = 8 << 20 | 1, .ret = 1 << 20, .fd = 3, .mode = 0x81a4,
			.sys = SYS_ID_read);
	}
	PUT(g, ALLOC_SUM, alloc_sum, end - 2000, GAME, .bytes = 4096, .calls = 16, .since = start);
	PUT(g, FRAME, frame, end, GAME, .number = g->frame++, .mark = FRAME_MARK);
	g->ts = end;
}

static inline void frames(struct game *g, u32 n)
{
	while (n--)
		frame(g, PACE, 0);
}

static inline void hitch(struct game *g, u64 ms)
{
	frame(g, PACE + ms * MS, ms * MS);
}

/* ---- who listens ---- */

struct told {
	char dir[64];
	u64 frames, slow, suspended, failed, lost;
	struct finding hitches[64];
	u32 n_hitches;
	char note[256];
};

static inline void on_frame(void *arg, const struct soak_frame *f, const struct model *m)
{
	struct told *t = arg;

	t->frames++;
	t->slow += f->v->slow;
	t->suspended += f->suspended;
	t->failed += f->failed != 0;
	t->lost += f->v->unsure;
}

static inline void on_hitch(void *arg, const struct finding *f)
{
	struct told *t = arg;

	if (t->n_hitches < ARRAY_SIZE(t->hitches))
		t->hitches[t->n_hitches] = *f;
	t->n_hitches++;
}

static inline void on_note(void *arg, const char *text)
{
	snprintf(((struct told *)arg)->note, 256, "%s", text);
}

static inline struct engine_options options(struct told *t)
{
	*t = (struct told){.dir = "/tmp/redframe-engine.XXXXXX"};
	assert_non_null(mkdtemp(t->dir));
	return (struct engine_options){.dir = t->dir,
		.segment_bytes = ENGINE_SEGMENT_BYTES,
		.max_bytes = ENGINE_MAX_BYTES,
		.before_ns = ENGINE_BEFORE_NS,
		.before_frames = ENGINE_BEFORE_FRAMES,
		.after_frames = ENGINE_AFTER_FRAMES,
		.patient = true,
		.frame = on_frame,
		.hitch = on_hitch,
		.note = on_note,
		.arg = t};
}

static inline struct game begin(const struct engine_options *o)
{
	struct game g = {.e = engine__new(o), .ts = START};

	assert_non_null(g.e);
	begin_game(&g);
	return g;
}

static inline void end(struct game *g)
{
	assert_int_equal(engine__finish(g->e), 0);
}

static inline u32 files_in(const char *dir, bool remove)
{
	DIR *d = opendir(dir);
	struct dirent *f;
	char path[512];
	u32 n = 0;

	assert_non_null(d);
	while ((f = readdir(d))) {
		if (f->d_name[0] == '.')
			continue;
		n++;
		snprintf(path, sizeof(path), "%s/%s", dir, f->d_name);
		if (remove)
			unlink(path);
	}
	closedir(d);
	return n;
}

static inline void clean(struct told *t, struct game *g)
{
	engine__free(g->e);
	files_in(t->dir, true);
	rmdir(t->dir);
}

#endif
