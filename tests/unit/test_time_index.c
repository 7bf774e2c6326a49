/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The time index: the same words as without it, from a small part of the file; and never trusted.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>
#include <dirent.h>

#include "events_desc.h"
#include "explain_verb.h"
#include "explain_view.h"
#include "log.h"
#include "recording.h"
#include "replay.h"
#include "syscalls.h"
#include "time_index.h"

#define FRAMES  6000
#define FRAME   (16 * NSEC_PER_MSEC)
#define START   (1000 * NSEC_PER_SEC)
#define GAME    100 /* the frame's thread; the next ones are its workers */
#define SLEEPER 105 /* has slept since long before, and holds a mutex */
#define LOCK    0x500000
#define CONDVAR 0x600000
#define SLOW    77 /* each such frame is slow, for another reason in turn */

struct made {
	struct recording_writer w;
	char path[64];
	u64 seed, ts;
};

static u64 next(struct made *g, u64 below)
{
	g->seed = g->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (g->seed >> 33) % below;
}

static struct ev_hdr hdr_of(const struct made *g, u8 kind, u32 tid)
{
	return (struct ev_hdr){.ts = g->ts, .tid = tid, .kind = kind, .words = (u8)(ev__desc(kind)->size / 8)};
}

#define PUT(g, KIND, type, tid, ...)                                                                                   \
	recording__append(&(g)->w, &(struct type){.hdr = hdr_of(g, KIND, tid), __VA_ARGS__}, sizeof(struct type))

static void put_text(struct made *g, u8 kind, u32 tid, const char *text)
{
	struct ev_thread e = {.hdr = hdr_of(g, kind, tid), .tgid = GAME, .nstid = tid};

	recording__append_text(&g->w, &e, ev__desc(kind)->size, text, strlen(text));
}

static void put_switch(struct made *g, u32 from, u32 to, u32 state, u16 sys)
{
	PUT(g, EV_SWITCH, ev_switch, from, .next_tid = to, .prev_state = (u16)state, .sys = sys,
		.flags = SWITCH_GAME | SWITCH_NEXT_GAME, .next_prio = 120, .prev_prio = 120);
}

/* The frame's thread waits for a time, and a worker has the CPU meanwhile. */
static void wait(struct made *g, u32 worker, u64 ns, u16 sys)
{
	put_switch(g, GAME, worker, 1, sys);
	g->ts += ns;
	PUT(g, EV_WAKING, ev_waking, GAME, .waker = worker, .prio = 120);
	g->ts += 2000;
	put_switch(g, worker, GAME, 1, SYS_ID_futex);
	g->ts += 1000;
}

static void lock_wait(struct made *g, u64 addr, u32 val, u32 owner, u32 op, u64 ns)
{
	wait(g, GAME + 1 + (u32)next(g, 4), ns, SYS_ID_futex);
	PUT(g, EV_LOCK_WAIT, ev_lock_wait, GAME, .dur = ns + 3000, .addr = addr, .val = val, .word = val,
		.owner = owner, .owner16 = val ? 0 : 7, .op = op, .words = 1);
}

static void slow(struct made *g, u64 reason)
{
	switch (reason % 4) {
	case 0: /* the holder sleeps, and has done so since the beginning */
		lock_wait(g, LOCK, 2, SLEEPER, 128, 20 * NSEC_PER_MSEC);
		break;
	case 1: /* only what was seen at the beginning says that this is a condition variable */
		lock_wait(g, CONDVAR + 40, 0, 5, 137, 15 * NSEC_PER_MSEC);
		break;
	case 2:
		wait(g, GAME + 2, 30 * NSEC_PER_MSEC, SYS_ID_read);
		PUT(g, EV_FILE_READ, ev_file_read, GAME, .dur = 30 * NSEC_PER_MSEC, .ino = 3 + next(g, 3), .ret = 4096,
			.cold = 4096, .dev = 8 << 20 | 1, .mode = 0x81a4, .sys = SYS_ID_read);
		break;
	case 3:
		g->ts += 25 * NSEC_PER_MSEC;
		break;
	}
}

static void frame(struct made *g, u64 i)
{
	u64 end = g->ts + FRAME - 200000 + next(g, 100000);

	if (i % SLOW == 0)
		slow(g, i / SLOW);
	for (u32 k = 0; k < 12; k++) {
		g->ts += 100000 + next(g, 500000);
		PUT(g, EV_FAULT, ev_fault, GAME + (u32)next(g, 2), .dur = 500 + next(g, 90000),
			.addr = 0x700000 + k * 4096);
		lock_wait(g, LOCK, 2, GAME + 1 + (u32)next(g, 4), 128, 5000 + next(g, 40000));
		PUT(g, EV_SAMPLE, ev_sample, GAME, .ip = 0x400000 + next(g, 4) * 256);
	}
	if (g->ts < end) {
		put_switch(g, GAME, GAME + 3, 1, SYS_ID_clock_nanosleep);
		g->ts = end;
		put_switch(g, GAME + 3, GAME, 1, SYS_ID_futex);
	}
	PUT(g, EV_FRAME, ev_frame, GAME, .number = FRAME_NO_NUMBER, .stream = 1);
	if (i % 10 == 0)
		PUT(g, EV_FRAME, ev_frame, GAME + 1, .number = i + 1000000, .stream = 2);
	if (i % 3000 == 2999)
		put_text(g, EV_SCENE, GAME, i % 6000 == 2999 ? "harbour" : "forest");
}

static void put_info(struct made *g, const char *text)
{
	struct ev_info e = {.hdr = hdr_of(g, EV_INFO, 0)};

	recording__append_text(&g->w, &e, sizeof(e), text, strlen(text));
}

static void put_beginning(struct made *g)
{
	char name[] = "Worker0";

	for (const char *const *t = (const char *const[]){"game.tgid=100", "game.name=made", "sample.hz=1000",
		     "budget.ms=20", NULL};
		*t; t++)
		put_info(g, *t);
	for (u32 tid = GAME; tid <= SLEEPER; tid++) {
		name[6] = (char)('0' + tid - GAME);
		put_text(g, EV_THREAD, tid, tid == GAME ? "Main" : tid == SLEEPER ? "Sleeper" : name);
	}
	PUT(g, EV_SHED, ev_shed, 0, .class = CLASS_FILE, .out = 1);
	put_switch(g, SLEEPER, GAME, 1, SYS_ID_clock_nanosleep);
	PUT(g, EV_FRAME, ev_frame, GAME, .number = FRAME_NO_NUMBER, .stream = 1);
	PUT(g, EV_LOCK_WAIT, ev_lock_wait, GAME + 1, .dur = 1000, .addr = CONDVAR + 44, .op = 137, .words = 1);
}

static const char *late_info; /* in the middle; NULL: none */

/* at the end, as record writes them */
static void put_end(struct made *g)
{
	static const char *const functions[] = {"Update\0made", "Draw\0made", "Animate\0made", "Cull\0made"};

	for (u64 i = 0; i < ARRAY_SIZE(functions); i++) {
		struct ev_symbol e = {.hdr = hdr_of(g, EV_SYMBOL, GAME), .addr = 0x400000 + i * 256, .size = 256};

		recording__append_text(&g->w, &e, sizeof(e), functions[i], strlen(functions[i]) + 6);
	}
	for (u64 ino = 3; ino < 6; ino++) {
		struct ev_path e = {.hdr = hdr_of(g, EV_PATH, GAME), .ino = ino, .dev = 8 << 20 | 1, .mode = 0x81a4};
		char parts[] = "x.pak\0data";

		parts[0] = (char)('0' + ino);
		recording__append_text(&g->w, &e, sizeof(e), parts, sizeof(parts));
	}
}

static void make(struct made *g, u64 frames, bool index)
{
	int fd;

	*g = (struct made){.seed = 1, .ts = START};
	strcpy(g->path, "/tmp/redframe-test-XXXXXX");
	fd = mkstemp(g->path);
	assert_true(fd >= 0);
	assert_int_equal(recording__create(&g->w, dup(fd), START), 0);
	put_beginning(g);
	for (u64 i = 1; i <= frames; i++) {
		frame(g, i);
		if (late_info && i == frames / 2)
			put_info(g, late_info);
	}
	put_end(g);
	assert_int_equal(recording__finish(&g->w, true), 0);
	if (index)
		assert_int_equal(replay__index(fd), 0);
	close(fd);
}

/* What `explain PATH WORDS` prints; its status. The caller frees. */
static char *explain(const char *path, const char *words, int *status)
{
	char text[256], *argv[16] = {text}, *save, *out;
	int said = memfd_create("said", 0), was = dup(STDOUT_FILENO), argc = 0;
	struct stat st;

	snprintf(text, sizeof(text), "%s %s", path, words);
	for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	fflush(stdout);
	dup2(said, STDOUT_FILENO);
	*status = verb__explain(argc, argv);
	fflush(stdout);
	dup2(was, STDOUT_FILENO);
	close(was);
	assert_int_equal(fstat(said, &st), 0);
	out = calloc(1, (size_t)st.st_size + 1);
	assert_int_equal(pread(said, out, (size_t)st.st_size, 0), st.st_size);
	close(said);
	return out;
}

static void same(const struct made *with, const struct made *without, const char *words)
{
	int a, b;
	char *x = explain(with->path, words, &a), *y = explain(without->path, words, &b);

	assert_int_equal(a, b);
	assert_string_equal(x, y);
	assert_true(strlen(x) > 100);
	free(x);
	free(y);
}

static void test_a_frame_and_a_slice_read_the_same_with_and_without_the_index(void **state)
{
	static const u32 frames[] = {1, 77, 4927, 5004, 5158, 5500, FRAMES - 1, 1005000};
	struct made with, without;
	char words[64];

	make(&with, FRAMES, true);
	make(&without, FRAMES, false);
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		snprintf(words, sizeof(words), "--frame %u", frames[i]);
		same(&with, &without, words);
	}
	same(&with, &without, "--from 50 --to 60");
	same(&with, &without, "--from 50 --to 60 --json");
	same(&with, &without, "--from 90 --budget auto --json");
	same(&with, &without, "--to 5");
	unlink(with.path);
	unlink(without.path);
}

/* what a long-lived owner sleeps in, a condition variable's name, the scene, what was left out: known from long ago */
static void test_what_was_learnt_long_before_is_known(void **state)
{
	struct made g;
	int status;
	char *said;

	make(&g, FRAMES, true);
	said = explain(g.path, "--frame 4927", &status); /* 64 × 77 ends it */
	assert_non_null(strstr(said, "held by Sleeper, which"));
	assert_non_null(strstr(said, "scene harbour"));
	free(said);
	said = explain(g.path, "--frame 5004", &status);
	assert_non_null(strstr(said, "condition variable at 0x600000"));
	free(said);
	unlink(g.path);
}

/* through the index as explain does */
static u64 bytes_for(const char *path, u64 number, u64 *size)
{
	struct index_begin b;
	struct explain_options o;
	struct model *m = model__new();
	struct time_index ix;
	struct recording r;
	struct explain *x;
	struct replay replay = {.index = &ix, .begin = &b};
	u64 bytes, i = 0;

	assert_int_equal(recording__open(&r, path), 0);
	assert_true(time_index__open(&ix, &r));
	while (ix.frames[i].number != number)
		assert_true(++i < ix.list.n_frames);
	time_index__find(&ix, ix.frames[i].end, ix.frames[i].end, ix.frames[i].stream, &b);
	replay.until = b.until;
	assert_int_equal(replay__prepare_from(&r, m, &ix), 0);
	replay__explain_options(m, &o);
	x = explain__new(&o);
	assert_int_equal(replay__run(&r, m, x, NULL, 0, &replay), 0);
	bytes = r.bytes_read + ix.list.n_points * sizeof(*ix.points) + ix.list.n_frames * sizeof(*ix.frames);
	*size = r.size;
	explain__free(x);
	model__free(m);
	time_index__free(&ix);
	recording__close(&r);
	return bytes;
}

static void test_one_frame_takes_a_small_part_of_a_long_recording(void **state)
{
	struct made g;
	u64 size;

	make(&g, 4 * FRAMES, true);
	assert_true(bytes_for(g.path, 20000, &size) < size / 16);
	assert_true(bytes_for(g.path, 10, &size) < size / 16);
	unlink(g.path);
}

static void test_a_cut_recording_has_no_index_and_is_read(void **state)
{
	struct time_index ix;
	struct recording r;
	struct made g;
	int status;
	char *said;

	make(&g, 2000, true);
	assert_int_equal(recording__open(&r, g.path), 0);
	assert_true(time_index__open(&ix, &r));
	time_index__free(&ix);
	assert_int_equal(truncate(g.path, (off_t)r.end - 8), 0);
	recording__close(&r);
	assert_int_equal(recording__open(&r, g.path), 0);
	assert_false(time_index__open(&ix, &r));
	recording__close(&r);
	said = explain(g.path, "--frame 1000", &status);
	assert_int_equal(status, EXIT_OK);
	assert_non_null(strstr(said, "frame 1000"));
	free(said);
	unlink(g.path);
}

/* What `explain --verbose` says it has read; *size: of how much. */
static u64 bytes_told(const char *path, const char *words, u64 *size)
{
	int said = memfd_create("said", 0), was = dup(STDERR_FILENO), status;
	enum log_level level = log_level;
	unsigned long long read = 0, all = 0;
	char text[512] = "";

	fflush(stderr);
	dup2(said, STDERR_FILENO);
	free(explain(path, words, &status));
	log_level = level;
	fflush(stderr);
	dup2(was, STDERR_FILENO);
	close(was);
	assert_true(pread(said, text, sizeof(text) - 1, 0) > 0);
	close(said);
	assert_int_equal(status, EXIT_OK);
	assert_int_equal(sscanf(text, "redframe: %llu of %llu bytes were read", &read, &all), 2);
	*size = all;
	return read;
}

/* once for what holds for all of it, and again up to there */
static void test_a_cut_recording_is_not_read_beyond_what_is_asked_for(void **state)
{
	struct made cut;
	u64 size, read;

	make(&cut, FRAMES, false);
	assert_int_equal(truncate(cut.path, (off_t)(cut.w.bytes - 8)), 0);
	read = bytes_told(cut.path, "--from 10 --to 12 --verbose", &size);
	assert_in_range(read, size, size + size / 4);
	assert_true(bytes_told(cut.path, "--from 10 --verbose", &size) >= 2 * size - (2u << 20));
	unlink(cut.path);
}

/* ---- of a recording without one ---- */

#define LONG_FRAMES 7200 /* more than INDEX_MADE_BYTES */

static char cache[] = "/tmp/redframe-test-XXXXXX";

/* The path of the one index that is kept; false: there is none. */
static bool find_kept(char path[PATH_MAX])
{
	char dir[64];
	struct dirent *e;
	DIR *d;
	u32 n = 0;

	snprintf(dir, sizeof(dir), "%s/indexes", cache);
	d = opendir(dir);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.' && ++n)
			snprintf(path, PATH_MAX, "%s/%s", dir, e->d_name);
	if (d)
		closedir(d);
	assert_true(n <= 1);
	return n;
}

static void forget_kept(void)
{
	char path[PATH_MAX];

	if (find_kept(path))
		assert_int_equal(unlink(path), 0);
}

/* What is said of a frame by whoever reads all of it, without any index: the caller frees. */
static char *read_whole(const char *path, u64 number)
{
	struct view *view = view__new(&(struct view_options){.has_frame = true, .frame = number});
	struct replay replay = {.verdict = view__verdict, .arg = view};
	struct model *m = model__new();
	struct explain_options o;
	struct recording r;
	struct explain *x;
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(recording__open(&r, path), 0);
	assert_int_equal(replay__prepare(&r, m), 0);
	replay__explain_options(m, &o);
	o.has_frame = true;
	o.frame = number;
	x = explain__new(&o);
	assert_int_equal(replay__run(&r, m, x, NULL, 0, &replay), 0);
	assert_int_equal(view__print(view, out, NULL, NULL, &r), 0);
	fclose(out);
	explain__free(x);
	model__free(m);
	view__free(view);
	recording__close(&r);
	return text;
}

static void same_as_whole(const char *path, u64 number)
{
	char words[64], *a, *b;
	int status;

	snprintf(words, sizeof(words), "--frame %llu", (unsigned long long)number);
	a = explain(path, words, &status);
	b = read_whole(path, number);
	assert_int_equal(status, EXIT_OK);
	assert_string_equal(a, b);
	assert_true(strlen(a) > 100);
	free(a);
	free(b);
}

static void test_a_recording_cut_anywhere_is_read_once_and_then_in_part(void **state)
{
	static const u32 frames[] = {1, 5005, 6930, 1005000};
	char path[PATH_MAX];
	u64 size, read;
	struct made g;

	make(&g, LONG_FRAMES, false);
	for (u64 cut = g.w.bytes - 8; cut > INDEX_MADE_BYTES; cut -= 300003 + next(&g, 9)) {
		assert_int_equal(truncate(g.path, (off_t)cut), 0);
		read = bytes_told(g.path, "--frame 5005 --verbose", &size); /* the index kept before is not its own */
		if (cut == g.w.bytes - 8) /* the names of code are there: they hold from the beginning on */
			assert_in_range(read, 3 * size, 3 * size + size / 3);
		else
			assert_in_range(read, size, size + size / 3);
		assert_true(bytes_told(g.path, "--frame 5005 --verbose", &size) < size / 8);
		assert_true(bytes_told(g.path, "--from 60 --to 62 --verbose", &size) < size / 2);
		for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
			same_as_whole(g.path, frames[i]);
	}
	assert_true(find_kept(path));
	forget_kept();
	unlink(g.path);
}

/* another process turned out to be the game, or another one its child: from the beginning on, to who reads all */
static void test_what_turns_out_late_holds_from_the_beginning(void **state)
{
	u64 size, read;
	struct made g;

	for (const char *const *late = (const char *const[]){"game.tgid=777", "child.104=100", "game.tgid=100",
		     "session.attach_ms=3", NULL};
		*late; late++) {
		late_info = *late;
		make(&g, LONG_FRAMES, false);
		late_info = NULL;
		assert_int_equal(truncate(g.path, (off_t)(g.w.bytes - 40000)), 0);
		read = bytes_told(g.path, "--frame 4927 --verbose", &size);
		if (!strcmp(*late, "game.tgid=777") || !strncmp(*late, "child.", 6))
			assert_in_range(read, 2 * size + size / 4, 3 * size);
		else
			assert_in_range(read, size, size + size / 3);
		same_as_whole(g.path, 77);
		same_as_whole(g.path, 4927);
		forget_kept();
		unlink(g.path);
	}
}

/* whoever recorded it was killed before it came to that */
static void test_a_whole_recording_without_an_index_gets_one_too(void **state)
{
	struct made g;
	u64 size;

	make(&g, LONG_FRAMES, false);
	same_as_whole(g.path, 4927);
	assert_true(bytes_told(g.path, "--frame 5004 --verbose", &size) < size / 8);
	same_as_whole(g.path, 5004);
	forget_kept();
	unlink(g.path);
}

static void test_where_nothing_is_kept_it_reads_the_same(void **state)
{
	char path[PATH_MAX];
	struct made g;

	make(&g, LONG_FRAMES, false);
	setenv("REDFRAME_CACHE", "", 1);
	same_as_whole(g.path, 6930);
	setenv("REDFRAME_CACHE", cache, 1);
	assert_false(find_kept(path));
	unlink(g.path);
}

static void test_what_begins_at_the_beginning_needs_none(void **state)
{
	char path[PATH_MAX];
	struct made g;
	int status;

	make(&g, LONG_FRAMES, false);
	for (const char *const *words = (const char *const[]){"--to 5", "--frame 50 --json", "--worst 3", NULL}; *words;
		words++) {
		free(explain(g.path, *words, &status));
		assert_int_equal(status, EXIT_OK);
		assert_false(find_kept(path));
	}
	unlink(g.path);
}

/* a list of somebody's own making has a checksum that fits */
static void mend(int fd)
{
	struct index_tail t;
	off_t end = lseek(fd, 0, SEEK_END) - (off_t)sizeof(t);
	char *list;

	assert_int_equal(pread(fd, &t, sizeof(t), end), sizeof(t));
	list = malloc(t.list_bytes);
	assert_int_equal(pread(fd, list, t.list_bytes, (off_t)t.list_offset), t.list_bytes);
	t.list_crc = (u32)crc32(0, (const Bytef *)list, (uInt)t.list_bytes);
	assert_int_equal(pwrite(fd, &t, sizeof(t), end), sizeof(t));
	free(list);
}

static void test_a_damaged_or_hostile_index_does_no_harm(void **state)
{
	struct recording r;
	struct made g;
	u64 from, to;
	int fd, status;
	char *good, *said;

	make(&g, 900, true);
	good = explain(g.path, "--frame 800", &status);
	assert_int_equal(recording__open(&r, g.path), 0);
	from = r.end;
	to = r.size - sizeof(struct index_tail);
	recording__close(&r);
	fd = open(g.path, O_RDWR);
	for (u32 i = 0; i < 48; i++) {
		/* half of them in the list, near the end */
		u64 at = i % 2 ? to - 8 * (1 + next(&g, 120)) : from + 8 * next(&g, (to - from) / 8), was, bad;

		assert_int_equal(pread(fd, &was, 8, (off_t)at), 8);
		bad = i % 3 ? was ^ 1ULL << next(&g, 64) : next(&g, ~0U) << next(&g, 33);
		assert_int_equal(pwrite(fd, &bad, 8, (off_t)at), 8);
		if (i % 4 < 3)
			mend(fd);
		said = explain(g.path, "--frame 800", &status);
		assert_true(status == EXIT_OK || status == EXIT_NOT_MEASURED || status == EXIT_USAGE);
		if (i % 4 == 3 && i % 2) /* not mended, in the list: read whole */
			assert_string_equal(said, good);
		free(said);
		assert_int_equal(pwrite(fd, &was, 8, (off_t)at), 8);
		mend(fd);
	}
	close(fd);
	said = explain(g.path, "--frame 800", &status);
	assert_string_equal(said, good);
	free(said);
	free(good);
	unlink(g.path);
}

static void test_a_kept_index_that_is_damaged_or_not_ours_is_made_again(void **state)
{
	char path[PATH_MAX];
	struct made g;
	u64 size, was, bad;
	int fd;

	make(&g, LONG_FRAMES, false);
	same_as_whole(g.path, 4927);
	assert_true(find_kept(path));
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &was, 8, lseek(fd, -200, SEEK_END)), 8);
	bad = was ^ 1024;
	assert_int_equal(pwrite(fd, &bad, 8, lseek(fd, 0, SEEK_CUR)), 8);
	close(fd);
	assert_true(bytes_told(g.path, "--frame 4927 --verbose", &size) > 2 * size);
	assert_true(bytes_told(g.path, "--frame 4927 --verbose", &size) < size / 8);
	assert_true(find_kept(path));
	assert_int_equal(chmod(path, 0666), 0);
	assert_true(bytes_told(g.path, "--frame 4927 --verbose", &size) > 2 * size);
	same_as_whole(g.path, 4927);
	forget_kept();
	unlink(g.path);
}

static void test_a_hostile_kept_index_does_no_harm(void **state)
{
	char path[PATH_MAX];
	struct made g;
	u64 was, bad, size;
	int fd, status;

	make(&g, LONG_FRAMES, false);
	same_as_whole(g.path, 4927);
	assert_true(find_kept(path));
	fd = open(path, O_RDWR | O_CLOEXEC);
	size = (u64)lseek(fd, 0, SEEK_END);
	for (u32 i = 0; i < 6; i++) {
		u64 at = i % 2 ? size - sizeof(struct index_tail) - 8 * (1 + next(&g, 120))
			       : 64 + 8 * next(&g, size / 9);

		assert_int_equal(pread(fd, &was, 8, (off_t)at), 8);
		bad = i % 3 ? was ^ 1ULL << next(&g, 64) : next(&g, ~0U) << next(&g, 33);
		assert_int_equal(pwrite(fd, &bad, 8, (off_t)at), 8);
		mend(fd);
		free(explain(g.path, "--frame 4927", &status));
		assert_true(status == EXIT_OK || status == EXIT_NOT_MEASURED || status == EXIT_USAGE);
		close(fd);
		forget_kept(); /* it may have been made again */
		same_as_whole(g.path, 4927);
		assert_true(find_kept(path));
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	close(fd);
	forget_kept();
	unlink(g.path);
}

static void test_times_that_hold_no_frame_say_so(void **state)
{
	struct made g;
	int status;

	make(&g, 500, true);
	free(explain(g.path, "--from 100", &status));
	assert_int_equal(status, EXIT_NOT_MEASURED);
	free(explain(g.path, "--frame 499 --from 1", &status));
	assert_int_equal(status, EXIT_USAGE);
	unlink(g.path);
}

int main(void)
{
	char dir[64];
	int failed;
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_frame_and_a_slice_read_the_same_with_and_without_the_index),
		cmocka_unit_test(test_what_was_learnt_long_before_is_known),
		cmocka_unit_test(test_one_frame_takes_a_small_part_of_a_long_recording),
		cmocka_unit_test(test_a_cut_recording_has_no_index_and_is_read),
		cmocka_unit_test(test_a_cut_recording_is_not_read_beyond_what_is_asked_for),
		cmocka_unit_test(test_a_damaged_or_hostile_index_does_no_harm),
		cmocka_unit_test(test_times_that_hold_no_frame_say_so),
		cmocka_unit_test(test_a_recording_cut_anywhere_is_read_once_and_then_in_part),
		cmocka_unit_test(test_what_turns_out_late_holds_from_the_beginning),
		cmocka_unit_test(test_a_whole_recording_without_an_index_gets_one_too),
		cmocka_unit_test(test_where_nothing_is_kept_it_reads_the_same),
		cmocka_unit_test(test_what_begins_at_the_beginning_needs_none),
		cmocka_unit_test(test_a_kept_index_that_is_damaged_or_not_ours_is_made_again),
		cmocka_unit_test(test_a_hostile_kept_index_does_no_harm),
	};

	if (!mkdtemp(cache) || setenv("REDFRAME_CACHE", cache, 1))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(dir, sizeof(dir), "%s/indexes", cache);
	rmdir(dir);
	rmdir(cache);
	return failed;
}
