// SPDX-License-Identifier: GPL-2.0-only
/* What soak's engine takes of memory: over hours, and while records come faster than usual. */
#include <errno.h>
#include <fcntl.h>

#include "engine_fixture.h"

/* "VmHWM:" and so on of this process, in bytes */
static u64 memory(const char *key)
{
	unsigned long long kb = 0;
	char line[256];
	FILE *f = fopen("/proc/self/status", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			sscanf(line + strlen(key), "%llu", &kb);
	fclose(f);
	return kb << 10;
}

/* the peak begins anew */
static void forget_peak(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "5", 1), 1);
	close(fd);
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
		rss[q] = memory("VmRSS:");
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

/* ---- bursts ---- */

#define WORKERS 8u

static void put_one(struct game *g, u64 ts, u64 i)
{
	u32 tid = GAME + 1 + (u32)(i / 10 % WORKERS), next = GAME + 1 + (u32)((i / 10 + 1) % WORKERS);

	switch (i % 10) {
	case 0:
		PUT(g, WAKING, waking, ts, next, .waker = tid);
		break;
	case 1:
		PUT(g, SYSCALL, syscall, ts, tid, .dur = 300, .sys = SYS_ID_ioctl, .arg0 = i);
		break;
	case 2:
	case 3:
	case 4:
		PUT(g, FAULT, fault, ts, tid, .dur = 500, .addr = 0x600000 + i % 4096 * 4096, .ip = 0x401000 + i % 512);
		break;
	case 5:
	case 6:
		PUT(g, FILE_READ, file_read, ts, tid, .dur = 900, .ino = 7 + i % 300, .dev = 8 << 20 | 1, .ret = 4096,
			.fd = 3, .mode = 0x81a4, .sys = SYS_ID_read);
		break;
	case 7:
		PUT(g, LOCK_WAIT, lock_wait, ts, tid, .dur = 700, .addr = 0x7f0000001000 + i % 64 * 40, .val = 2,
			.word = 2, .owner = next, .words = 1);
		break;
	case 8:
		PUT(g, ALLOC, alloc, ts, tid, .size = 70 << 10, .caller = 0x402000 + i % 512);
		break;
	case 9:
		put(g, &(struct ev_switch){.hdr = {.ts = ts,
						   .tid = tid,
						   .cpu = 1,
						   .kind = EV_SWITCH,
						   .words = sizeof(struct ev_switch) / 8},
			       .next_tid = next,
			       .prev_state = 1,
			       .flags = SWITCH_GAME | SWITCH_NEXT_GAME});
		break;
	}
}

/* a frame of so long, with as many records */
static void busy_frame(struct game *g, u64 dur, u64 records)
{
	u64 start = g->ts;

	for (u64 i = 0; i < records; i++)
		put_one(g, start + 1000 + i * (dur - 2000) / records, i);
	PUT(g, FRAME, frame, start + dur, GAME, .number = g->frame++, .mark = FRAME_MARK);
	g->ts = start + dur;
}

/* So many seconds at a rate, with a frame of half a second in each, and one of the whole last one. */
static void play(struct game *g, u64 seconds, u64 rate, bool load)
{
	for (u64 s = 0; s < seconds; s++) {
		if (load && s + 1 == seconds) {
			busy_frame(g, NSEC_PER_SEC, rate);
		} else {
			busy_frame(g, NSEC_PER_SEC / 2, rate / 2);
			for (u32 i = 0; i < 30; i++)
				busy_frame(g, PACE, rate / 60);
		}
		engine__tend(g->e);
	}
}

/* The rings and the program's own files take a part of the 128 MiB that soak has live. */
#define RING_AND_FILES (32u << 20)

static void test_memory_is_bounded_while_records_come_in_bursts(void **state)
{
	u64 before, peak, after[2], frames = 0;
	struct told t;
	struct engine_options o = options(&t);
	struct game g;

	o.max_bytes = 64 << 20;
	o.segment_bytes = 16 << 20;
	before = memory("VmRSS:");
	forget_peak();
	g = begin(&o);
	for (u32 round = 0; round < 4; round++) {
		play(&g, 3, 100000, false);
		play(&g, 2, 400000, true);
		if (!round || round == 3)
			after[round / 3] = memory("VmRSS:");
		frames += 31 * 4 + 1;
	}
	play(&g, 2, 100000, false);
	end(&g);
	peak = memory("VmHWM:");
	print_message("resident before %llu, after the first bursts %llu, after the last %llu, peak %llu KiB\n",
		(unsigned long long)before >> 10, (unsigned long long)after[0] >> 10,
		(unsigned long long)after[1] >> 10, (unsigned long long)peak >> 10);
	assert_int_equal(t.frames, frames + 31 * 2);
	assert_true(t.slow >= 4 * 5);
	/* in a burst the frames of a second for certain, those of half a second perhaps */
	assert_in_range(engine__stats(g.e)->forgotten, 4, 8);
	assert_true(engine__stats(g.e)->cut > 0);
#ifndef __SANITIZE_ADDRESS__
	assert_true(peak < (128u << 20) - RING_AND_FILES);
	assert_true(after[1] < after[0] + (4 << 20));
#endif
	clean(&t, &g);
}

/* ---- a long frame ---- */

/* of 2 s, in which a thread reads all the time */
static void reading_frame(struct game *g, u32 tid)
{
	u64 start = g->ts, dur = 2 * NSEC_PER_SEC, n = 200000;

	for (u64 i = 1; i < n; i++)
		PUT(g, FILE_READ, file_read, start + i * (dur / n), tid, .dur = dur / n / 2, .ino = 7,
			.dev = 8 << 20 | 1, .ret = 4096, .fd = 3, .mode = 0x81a4, .sys = SYS_ID_read);
	frame(g, dur, 0);
	frames(g, 300);
}

/* More than what as many records of another thread need: each of its own is cut into pieces. */
static void test_what_explaining_a_long_frame_takes_is_given_back(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g = begin(&o);
	u64 before, after, peak;

	frames(&g, 100);
	reading_frame(&g, GAME + 1);
	before = memory("VmRSS:");
	forget_peak();
	reading_frame(&g, GAME);
	after = memory("VmRSS:");
	peak = memory("VmHWM:");
	print_message("resident %llu, after a long frame of the thread itself %llu, peak %llu KiB\n",
		(unsigned long long)before >> 10, (unsigned long long)after >> 10, (unsigned long long)peak >> 10);
	end(&g);
	assert_int_equal(t.frames, 702);
#ifndef __SANITIZE_ADDRESS__
	assert_true(peak > before + (8 << 20)); /* else this tests nothing */
	assert_true(after < before + (4 << 20));
#endif
	clean(&t, &g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_stays_flat_over_hours),
		cmocka_unit_test(test_memory_is_bounded_while_records_come_in_bursts),
		cmocka_unit_test(test_what_explaining_a_long_frame_takes_is_given_back),
	};

	return cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL);
}
