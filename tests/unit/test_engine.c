// SPDX-License-Identifier: GPL-2.0-only
/* soak's engine, fed with streams that are made up while it runs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "engine.h"
#include "events_desc.h"
#include "explain_fixture.h"
#include "history.h"
#include "log.h"
#include "shedding.h"
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

static void put(struct game *g, const void *rec)
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

static void put_text(struct game *g, const void *fixed, size_t bytes, const char *text, size_t len)
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

static void info(struct game *g, const char *text)
{
	PUT_TEXT(g, INFO, info, 0, text, strlen(text));
}

static void scene(struct game *g, const char *name)
{
	PUT_TEXT(g, SCENE, scene, GAME, name, strlen(name));
}

static void begin_game(struct game *g)
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
static void frame(struct game *g, u64 dur, u64 read_ns)
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

static void frames(struct game *g, u32 n)
{
	while (n--)
		frame(g, PACE, 0);
}

static void hitch(struct game *g, u64 ms)
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

static void on_frame(void *arg, const struct soak_frame *f, const struct model *m)
{
	struct told *t = arg;

	t->frames++;
	t->slow += f->v->slow;
	t->suspended += f->suspended;
	t->failed += f->failed != 0;
	t->lost += f->v->unsure;
}

static void on_hitch(void *arg, const struct finding *f)
{
	struct told *t = arg;

	if (t->n_hitches < ARRAY_SIZE(t->hitches))
		t->hitches[t->n_hitches] = *f;
	t->n_hitches++;
}

static void on_note(void *arg, const char *text)
{
	snprintf(((struct told *)arg)->note, 256, "%s", text);
}

static struct engine_options options(struct told *t)
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

static struct game begin(const struct engine_options *o)
{
	struct game g = {.e = engine__new(o), .ts = START};

	assert_non_null(g.e);
	begin_game(&g);
	return g;
}

static void end(struct game *g)
{
	assert_int_equal(engine__finish(g->e), 0);
}

static u32 files_in(const char *dir, bool remove)
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

static void clean(struct told *t, struct game *g)
{
	engine__free(g->e);
	files_in(t->dir, true);
	rmdir(t->dir);
}

/* ---- explaining a segment again ---- */

struct seen {
	u64 frames, number;
	char sentence[512];
};

static void see(const struct verdict *v, const struct model *m, void *arg)
{
	struct seen *s = arg;

	s->frames++;
	if (v->frame.number == s->number)
		snprintf(s->sentence, sizeof(s->sentence), "%s", v->sentence ?: "");
}

static struct seen explain_file(const char *path, u64 number)
{
	struct seen s = {.number = number};
	struct explained x;

	explain_fd(&x, open(path, O_RDONLY), NULL, see, &s);
	assert_false(x.r.truncated);
	explained__free(&x);
	return s;
}

static const char *segment_path(const struct told *t, u32 number)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/segment-%06u.redframe", t->dir, number);
	return path;
}

/* ---- what is kept ---- */

static void test_only_what_surrounds_slow_frames_is_kept(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g = begin(&o);
	struct seen s;

	frames(&g, 200);
	hitch(&g, 40);
	frames(&g, 300);
	hitch(&g, 60);
	frames(&g, 100);
	end(&g);
	assert_int_equal(t.frames, 602);
	assert_int_equal(t.slow, 2);
	assert_int_equal(files_in(t.dir, false), 2);
	assert_int_equal(t.n_hitches, 2);
	assert_int_equal(t.hitches[0].number, 201);
	assert_non_null(strstr(t.hitches[0].sentence, "reading /data/big.pak from disk"));
	assert_int_equal(t.hitches[0].cause, CAUSE_FILE_READ);
	assert_true(t.hitches[0].fingerprint == t.hitches[1].fingerprint);
	s = explain_file(segment_path(&t, 2), 502);
	assert_true(s.frames >= 30 + 1 + 10 && s.frames <= 30 + 1 + 10 + 20);
	clean(&t, &g);
}

static void test_a_segment_explains_its_frame_as_the_whole_recording_does(void **state)
{
	struct recording_writer whole;
	struct told t;
	struct engine_options o = options(&t);
	struct game g = {.e = engine__new(&o), .ts = START, .whole = &whole, .busy = 3};
	int fd = memfd_create("whole", 0);
	char path[64];
	struct seen all;

	assert_int_equal(recording__create(&whole, fcntl(fd, F_DUPFD, 0), START), 0);
	begin_game(&g);
	scene(&g, "harbour");
	frames(&g, 200);
	hitch(&g, 40);
	frames(&g, 100);
	end(&g);
	assert_int_equal(recording__finish(&whole, true), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	all = explain_file(path, 201);
	assert_string_not_equal(all.sentence, "");
	assert_int_equal(t.n_hitches, 1);
	assert_string_equal(t.hitches[0].sentence, all.sentence);
	assert_string_equal(t.hitches[0].scene, "harbour");
	assert_string_equal(explain_file(segment_path(&t, 1), 201).sentence, all.sentence);
	close(fd);
	clean(&t, &g);
}

static void test_a_hitch_in_another_ones_shadow_is_kept_with_it(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g = begin(&o);

	frames(&g, 200);
	hitch(&g, 40);
	frames(&g, 5);
	hitch(&g, 50);
	frames(&g, 100);
	end(&g);
	assert_int_equal(files_in(t.dir, false), 1);
	assert_int_equal(t.n_hitches, 2);
	clean(&t, &g);
}

static void test_a_segment_that_is_full_is_followed_by_another(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g;
	struct stat st;

	o.segment_bytes = 64 << 10;
	o.explain = (struct explain_options){.from = BUDGET_OPTION, .budget_ns = 5 * MS};
	g = begin(&o);
	g.busy = 50;
	frames(&g, 300); /* all of them slow */
	end(&g);
	assert_true(files_in(t.dir, false) > 5);
	assert_int_equal(t.slow, 300);
	assert_true(t.n_hitches > 200);
	assert_int_equal(stat(segment_path(&t, 2), &st), 0);
	assert_true(st.st_size < 4 * (64 << 10) + (64 << 10));
	assert_true(explain_file(segment_path(&t, 3), 0).frames > 10);
	clean(&t, &g);
}

static void test_limits_keep_frames_that_are_not_slow(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g;

	o.keep.of[LIMIT_ALLOC] = 1 << 20;
	o.fail.of[LIMIT_FAULTS] = 100;
	g = begin(&o);
	frames(&g, 100);
	PUT(&g, ALLOC, alloc, g.ts + 2 * MS, GAME, .size = 2 << 20, .caller = 0x400000);
	frames(&g, 100);
	g.busy = 200;
	frame(&g, PACE, 0);
	g.busy = 0;
	frames(&g, 100);
	end(&g);
	assert_int_equal(t.slow, 0);
	assert_int_equal(t.n_hitches, 2);
	assert_int_equal(t.hitches[0].crossed, 1 << LIMIT_ALLOC);
	assert_int_equal(t.hitches[1].crossed, 1 << LIMIT_FAULTS);
	assert_int_equal(t.failed, 1);
	clean(&t, &g);
}

/* ---- room ---- */

static void test_the_first_and_the_worst_of_a_kind_stay_when_room_is_short(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g;

	o.max_bytes = 2200 << 10;
	g = begin(&o);
	g.busy = 60;
	for (u32 i = 0; i < 12; i++) {
		frames(&g, 100);
		hitch(&g, i == 6 ? 90 : 40 + i);
		engine__tend(g.e);
	}
	frames(&g, 50);
	end(&g);
	assert_int_equal(t.n_hitches, 12); /* all are told of */
	assert_true(engine__kept(g.e)->dropped > 0);
	assert_true(engine__kept(g.e)->bytes <= o.max_bytes);
	assert_true(kept__has(engine__kept(g.e), 1));
	assert_true(kept__has(engine__kept(g.e), 7));
	assert_int_equal(files_in(t.dir, false), 12 - engine__kept(g.e)->dropped);
	assert_int_equal(access(segment_path(&t, 1), F_OK) | access(segment_path(&t, 7), F_OK), 0);
	clean(&t, &g);
}

static void test_where_nothing_can_be_written_every_frame_still_counts(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g;

	rmdir(t.dir);
	g = begin(&o);
	frames(&g, 100);
	hitch(&g, 40);
	frames(&g, 100);
	end(&g);
	assert_int_equal(t.frames, 201);
	assert_int_equal(t.slow, 1);
	assert_int_equal(engine__stats(g.e)->not_kept, 1);
	assert_non_null(strstr(t.note, "not kept"));
	engine__free(g.e);
}

static void limit_files(rlim_t bytes)
{
	struct rlimit l;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &l), 0);
	l.rlim_cur = bytes ?: l.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static void test_a_disk_that_is_full_for_a_while_costs_what_is_kept_meanwhile_and_no_more(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g;

	signal(SIGXFSZ, SIG_IGN);
	g = begin(&o);
	g.busy = 100;
	limit_files(100 << 10);
	frames(&g, 100);
	hitch(&g, 40);
	frames(&g, 35);    /* merge has let go of the hitch */
	engine__tend(g.e); /* what is kept reaches the disk, or not */
	frames(&g, 100);
	assert_int_equal(files_in(t.dir, false), 0);
	assert_int_equal(engine__stats(g.e)->not_kept, 1);
	hitch(&g, 40); /* so soon after it is not tried again */
	frames(&g, 100);
	assert_int_equal(engine__stats(g.e)->not_kept, 2);
	limit_files(0);
	frames(&g, 600);
	hitch(&g, 40);
	frames(&g, 100);
	end(&g);
	assert_int_equal(files_in(t.dir, false), 1);
	assert_int_equal(t.frames, 35 + 600 + 400 + 3);
	assert_int_equal(t.slow, 3);
	assert_int_equal(t.n_hitches, 1);
	clean(&t, &g);
}

/* ---- what happens in days ---- */

static void test_a_game_that_crashes_leaves_its_last_seconds_and_the_next_one_counts_on(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g = begin(&o);
	u32 code;

	frames(&g, 600);
	PUT(&g, EXIT, exit, g.ts + 1000, GAME, .tgid = GAME, .code = 11);
	assert_int_equal(engine__game_ended(g.e, false, &code), 0);
	assert_int_equal(code, 11);
	assert_int_equal(files_in(t.dir, false), 1);
	assert_true(explain_file(segment_path(&t, 1), 0).frames >= 60);
	g.ts += 10 * NSEC_PER_SEC;
	begin_game(&g);
	frames(&g, 100);
	hitch(&g, 40);
	frames(&g, 100);
	end(&g);
	assert_int_equal(t.frames, 801);
	assert_int_equal(t.n_hitches, 1);
	clean(&t, &g);
}

static void test_a_frame_in_which_the_machine_slept_is_none_of_the_games_hitches(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g = begin(&o);

	frames(&g, 100);
	PUT(&g, CLOCK, clock, g.ts, 0, .monotonic = g.ts - 5, .realtime = 1);
	frame(&g, PACE + 3600 * NSEC_PER_SEC, 0);
	PUT(&g, CLOCK, clock, g.ts + 1000, 0, .monotonic = g.ts - 3600 * NSEC_PER_SEC, .realtime = 1);
	frames(&g, 100);
	end(&g);
	assert_int_equal(t.frames, 201);
	assert_true(t.suspended >= 1 && t.suspended <= 2); /* and perhaps the frame of the second look */
	assert_int_equal(t.n_hitches, 0);
	assert_int_equal(engine__stats(g.e)->suspends, 1);
	clean(&t, &g);
}

static void test_what_is_shed_is_told_as_lost_and_no_frame_is(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g = begin(&o);

	g.busy = 5;
	frames(&g, 100);
	engine__shed(g.e, shedding__levels(), g.ts);
	frames(&g, 100);
	engine__shed(g.e, 0, g.ts);
	frames(&g, 100);
	end(&g);
	assert_int_equal(t.frames, 300);
	assert_true(t.lost >= 99 && t.lost <= 102);
	assert_int_equal(engine__stats(g.e)->shed[CLASS_FAULT], 500);
	assert_int_equal(shedding__class(1), CLASS_SAMPLE);
	clean(&t, &g);
}

/* ---- memory ---- */

static u64 resident(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*u %lu", &pages), 1);
	fclose(f);
	return pages * 4096;
}

/* threads and processes come and go, as over days */
static void come_and_go(struct game *g, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		u32 tid = 3000 + (u32)(g->frame * 7 + i) % 4000000;

		PUT(g, FORK, fork, g->ts + 1000 + i * 10, tid, .tgid = tid, .parent = OTHER, .comm = "cc1");
		PUT(g, EXIT, exit, g->ts + 1005 + i * 10, tid, .tgid = tid);
	}
}

static u64 hours(void)
{
	const char *text = getenv("REDFRAME_HOURS");

	return text && *text ? strtoull(text, NULL, 10) : 1;
}

/* REDFRAME_HOURS=72 for days: docs/soak.md has the figures */
static void test_memory_stays_flat_over_hours(void **state)
{
	u64 quarter = hours() * 60 * 60 * 60 / 4, rss[4], records;
	struct told t;
	struct engine_options o = options(&t);
	struct game g;

	o.max_bytes = 16 << 20;
	g = begin(&o);
	g.busy = 2;
	for (u32 q = 0; q < 4; q++) {
		for (u64 i = 0; i < quarter; i++) {
			if (i % 60 == 0)
				come_and_go(&g, 5);
			if (i % (60 * 60 * 5) == 60 * 60)
				hitch(&g, 30 + i / 60 % 40);
			else
				frame(&g, PACE, 0);
			if (i % 60 == 0)
				engine__tend(g.e);
		}
		rss[q] = resident();
	}
	end(&g);
	records = engine__stats(g.e)->records;
	print_message("%llu h, %llu records: resident %llu, %llu, %llu, %llu KiB\n", (unsigned long long)hours(),
		(unsigned long long)records, (unsigned long long)rss[0] >> 10, (unsigned long long)rss[1] >> 10,
		(unsigned long long)rss[2] >> 10, (unsigned long long)rss[3] >> 10);
	assert_int_equal(t.frames, 4 * quarter);
	assert_int_equal(t.n_hitches, t.slow);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what was freed */
	assert_true(rss[3] < rss[1] + (2 << 20));
	assert_true(rss[3] < 128 << 20);
#endif
	clean(&t, &g);
}

/* ---- the history ---- */

struct left {
	u64 n, last;
};

static int on_left(void *arg, const struct ev_hdr *rec)
{
	struct left *l = arg;

	assert_true(rec->ts > l->last);
	l->last = rec->ts;
	l->n++;
	return 0;
}

static void test_history_gives_every_record_out_once_in_order(void **state)
{
	struct left left = {};
	struct history h;
	u64 rec[EV_MAX_BYTES / 8] = {0}, at, seen = 0;
	struct ev_hdr *hdr = (struct ev_hdr *)rec;
	const struct ev_hdr *next;
	u64 n = 20000;

	assert_int_equal(history__init(&h, 64 << 10, on_left, &left), 0);
	for (u64 i = 1; i <= n; i++) {
		*hdr = (struct ev_hdr){.ts = i, .kind = EV_INFO, .words = (u8)(2 + i * i % 250)};
		assert_int_equal(history__push(&h, hdr), 0);
		if (i % 777 == 0)
			assert_int_equal(history__trim(&h, i - 3), 0);
	}
	for (at = 0; (next = history__next(&h, &at));)
		assert_int_equal(next->ts, left.n + ++seen);
	assert_int_equal(left.n + seen, n);
	assert_int_equal(history__oldest(&h), left.n + 1);
	history__free(&h);
}

/* ---- limits ---- */

static void test_limits_are_read_as_documented(void **state)
{
	struct amounts a = {};

	assert_int_equal(limits__parse("keep", "frame=33.5,alloc=16M,faults=300,cold=64K,lock=5ms,allocs=10", &a), 0);
	assert_int_equal(a.of[LIMIT_FRAME], 33500000);
	assert_int_equal(a.of[LIMIT_ALLOC], 16 << 20);
	assert_int_equal(a.of[LIMIT_FAULTS], 300);
	assert_int_equal(a.of[LIMIT_COLD], 64 << 10);
	assert_int_equal(a.of[LIMIT_LOCK], 5000000);
	assert_int_equal(a.of[LIMIT_ALLOCS], 10);
	log_level = LOG_QUIET;
	for (const char *const *bad = (const char *[]){"frame", "frame=", "frame=-1", "frame=0", "frame=5s", "cold=x",
		     "what=1", "=5", "frame=nan", NULL};
		*bad; bad++)
		assert_int_equal(limits__parse("keep", *bad, &a), -EINVAL);
	log_level = LOG_NORMAL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_what_surrounds_slow_frames_is_kept),
		cmocka_unit_test(test_a_segment_explains_its_frame_as_the_whole_recording_does),
		cmocka_unit_test(test_a_hitch_in_another_ones_shadow_is_kept_with_it),
		cmocka_unit_test(test_a_segment_that_is_full_is_followed_by_another),
		cmocka_unit_test(test_limits_keep_frames_that_are_not_slow),
		cmocka_unit_test(test_the_first_and_the_worst_of_a_kind_stay_when_room_is_short),
		cmocka_unit_test(test_where_nothing_can_be_written_every_frame_still_counts),
		cmocka_unit_test(test_a_disk_that_is_full_for_a_while_costs_what_is_kept_meanwhile_and_no_more),
		cmocka_unit_test(test_a_game_that_crashes_leaves_its_last_seconds_and_the_next_one_counts_on),
		cmocka_unit_test(test_a_frame_in_which_the_machine_slept_is_none_of_the_games_hitches),
		cmocka_unit_test(test_what_is_shed_is_told_as_lost_and_no_frame_is),
		cmocka_unit_test(test_memory_stays_flat_over_hours),
		cmocka_unit_test(test_history_gives_every_record_out_once_in_order),
		cmocka_unit_test(test_limits_are_read_as_documented),
	};

	return cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL);
}
