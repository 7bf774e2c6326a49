// SPDX-License-Identifier: GPL-2.0-only
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

#include "events_desc.h"
#include "explain_verb.h"
#include "long_recording.h"
#include "replay.h"
#include "syscalls.h"
#include "time_index.h"

#define FRAME   (16 * NSEC_PER_MSEC)
#define START   (1000 * NSEC_PER_SEC)
#define GAME    100 /* the frame's thread; the next ones are its workers */
#define SLEEPER 105 /* has slept since long before, and holds a mutex */
#define LOCK    0x500000
#define CONDVAR 0x600000
#define SLOW    77 /* each such frame is slow, for another reason in turn */

u64 long_recording__random(struct long_recording *g, u64 below)
{
	g->seed = g->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (g->seed >> 33) % below;
}

static struct ev_hdr hdr_of(const struct long_recording *g, u8 kind, u32 tid)
{
	return (struct ev_hdr){.ts = g->ts, .tid = tid, .kind = kind, .words = (u8)(ev__desc(kind)->size / 8)};
}

#define PUT(g, KIND, type, tid, ...)                                                                                   \
	recording__append(&(g)->w, &(struct type){.hdr = hdr_of(g, KIND, tid), __VA_ARGS__}, sizeof(struct type))

static void put_text(struct long_recording *g, u8 kind, u32 tid, const char *text)
{
	struct ev_thread e = {.hdr = hdr_of(g, kind, tid), .tgid = GAME, .nstid = tid};

	recording__append_text(&g->w, &e, ev__desc(kind)->size, text, strlen(text));
}

static void put_switch(struct long_recording *g, u32 from, u32 to, u32 state, u16 sys)
{
	PUT(g, EV_SWITCH, ev_switch, from, .next_tid = to, .prev_state = (u16)state, .sys = sys,
		.flags = SWITCH_GAME | SWITCH_NEXT_GAME, .next_prio = 120, .prev_prio = 120);
}

/* The frame's thread waits for a time, and a worker has the CPU meanwhile. */
static void wait(struct long_recording *g, u32 worker, u64 ns, u16 sys)
{
	put_switch(g, GAME, worker, 1, sys);
	g->ts += ns;
	PUT(g, EV_WAKING, ev_waking, GAME, .waker = worker, .prio = 120);
	g->ts += 2000;
	put_switch(g, worker, GAME, 1, SYS_ID_futex);
	g->ts += 1000;
}

static void lock_wait(struct long_recording *g, u64 addr, u32 val, u32 owner, u32 op, u64 ns)
{
	wait(g, GAME + 1 + (u32)long_recording__random(g, 4), ns, SYS_ID_futex);
	PUT(g, EV_LOCK_WAIT, ev_lock_wait, GAME, .dur = ns + 3000, .addr = addr, .val = val, .word = val,
		.owner = owner, .owner16 = val ? 0 : 7, .op = op, .words = 1);
}

static void slow(struct long_recording *g, u64 reason)
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
		PUT(g, EV_FILE_READ, ev_file_read, GAME, .dur = 30 * NSEC_PER_MSEC,
			.ino = 3 + long_recording__random(g, 3), .ret = 4096, .cold = 4096, .dev = 8 << 20 | 1,
			.mode = 0x81a4, .sys = SYS_ID_read);
		break;
	case 3:
		g->ts += 25 * NSEC_PER_MSEC;
		break;
	}
}

static void frame(struct long_recording *g, u64 i)
{
	u64 end = g->ts + FRAME - 200000 + long_recording__random(g, 100000);

	if (i % SLOW == 0)
		slow(g, i / SLOW);
	for (u32 k = 0; k < 12; k++) {
		g->ts += 100000 + long_recording__random(g, 500000);
		PUT(g, EV_FAULT, ev_fault, GAME + (u32)long_recording__random(g, 2),
			.dur = 500 + long_recording__random(g, 90000), .addr = 0x700000 + k * 4096);
		lock_wait(g, LOCK, 2, GAME + 1 + (u32)long_recording__random(g, 4), 128,
			5000 + long_recording__random(g, 40000));
		PUT(g, EV_SAMPLE, ev_sample, GAME, .ip = 0x400000 + long_recording__random(g, 4) * 256);
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

static void put_info(struct long_recording *g, const char *text)
{
	struct ev_info e = {.hdr = hdr_of(g, EV_INFO, 0)};

	recording__append_text(&g->w, &e, sizeof(e), text, strlen(text));
}

static void put_beginning(struct long_recording *g)
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

/* at the end, as record writes them */
static void put_end(struct long_recording *g)
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

void long_recording__make(struct long_recording *g, u64 frames, bool index, const char *late_info)
{
	int fd;

	*g = (struct long_recording){.seed = 1, .ts = START};
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

char *long_recording__explain(const char *path, const char *words, int *status)
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

void long_recording__mend_index(int fd)
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
