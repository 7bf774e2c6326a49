/* SPDX-License-Identifier: GPL-2.0-only
 *
 * generate SECONDS RECORDS_PER_SECOND OUT: a recording of a made-up game, to time the readers of recordings with. Four
 * CPUs, on each a thread of the game that waits for a lock, is woken, reads, faults and allocates in turn with a thread
 * of another process; 60 frames a second, of which each 300th is slow. The same arguments give the same records.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "events_desc.h"
#include "recording.h"
#include "replay.h"
#include "syscalls.h"
#include "time_index.h"

#define CPUS       4
#define GAME       1000 /* threads GAME … GAME + CPUS - 1 */
#define OTHER      2000 /* of another process, one a CPU */
#define START      (1000 * NSEC_PER_SEC)
#define SLOW_EVERY 300
#define LOCK_ADDR  0x500000
#define HEAP_ADDR  0x600000
#define CODE_ADDR  0x400000

static struct recording_writer out;
static u64 step_ns; /* from record to record of one CPU */

static struct ev_hdr hdr_of(u8 kind, u64 ts, u32 tid, u16 cpu)
{
	return (struct ev_hdr){.ts = ts, .tid = tid, .cpu = cpu, .kind = kind, .words = (u8)(ev__desc(kind)->size / 8)};
}

#define PUT(KIND, type, ts, tid, cpu, ...)                                                                             \
	recording__append(&out, &(struct type){.hdr = hdr_of(KIND, ts, tid, cpu), __VA_ARGS__}, sizeof(struct type))

static void put_info(const char *text)
{
	struct ev_info e = {.hdr = hdr_of(EV_INFO, START, 0, 0)};

	recording__append_text(&out, &e, sizeof(e), text, strlen(text));
}

static void put_thread(u32 tid, u32 tgid, const char *name)
{
	struct ev_thread e = {.hdr = hdr_of(EV_THREAD, START, tid, 0), .tgid = tgid, .nstid = tid};

	recording__append_text(&out, &e, sizeof(e), name, strlen(name));
}

static void put_process(u32 tgid, const char *cmdline)
{
	struct ev_process e = {.hdr = hdr_of(EV_PROCESS, START, tgid, 0), .parent = 1, .nspid = tgid};

	recording__append_text(&out, &e, sizeof(e), cmdline, strlen(cmdline) + 1);
}

static void put_symbol(u64 addr, const char *name, size_t len)
{
	struct ev_symbol e = {.hdr = hdr_of(EV_SYMBOL, START, GAME, 0), .addr = addr, .size = 256};

	recording__append_text(&out, &e, sizeof(e), name, len);
}

static void put_path(u64 ino)
{
	struct ev_path e = {.hdr = hdr_of(EV_PATH, START, GAME, 0), .ino = ino, .dev = 8 << 20 | 1, .mode = 0x81a4};
	char parts[64];
	int n = snprintf(parts, sizeof(parts), "file-%llu.pak%cdata", (unsigned long long)ino, 0);

	recording__append_text(&out, &e, sizeof(e), parts, (size_t)n + 1);
}

static void put_names(void)
{
	static const char *const threads[CPUS] = {"MainThread", "RenderThread", "JobWorker0", "JobWorker1"};

	put_info("game.tgid=1000");
	put_info("game.name=generated");
	put_info("kernel.release=6.1.0");
	put_info("session.options=events=all alloc=large sample=1000");
	put_process(GAME, "generated");
	put_process(OTHER, "compiler");
	for (u32 i = 0; i < CPUS; i++) {
		put_thread(GAME + i, GAME, threads[i]);
		put_thread(OTHER + i, OTHER, "compiler");
	}
	put_symbol(LOCK_ADDR, "g_lock\0generated", sizeof("g_lock\0generated"));
	put_symbol(CODE_ADDR, "Simulate\0generated", sizeof("Simulate\0generated"));
	for (u64 ino = 0; ino < 16; ino++)
		put_path(ino);
}

/* what a CPU does, one record after the other */
static void act(u64 n, u64 ts, u16 cpu)
{
	u32 game = GAME + cpu, other = OTHER + cpu, owner = GAME + (cpu + 1) % CPUS;

	switch (n % 10) {
	case 0:
		PUT(EV_SWITCH, ev_switch, ts, game, cpu, .next_tid = other, .prev_state = 1, .sys = SYS_ID_futex,
			.flags = SWITCH_GAME, .next_prio = 120, .prev_prio = 120);
		break;
	case 1:
		PUT(EV_WAKING, ev_waking, ts, game, cpu, .waker = owner, .target_cpu = cpu, .prio = 120);
		break;
	case 2:
		PUT(EV_SWITCH, ev_switch, ts, other, cpu, .next_tid = game, .flags = SWITCH_NEXT_GAME, .next_prio = 120,
			.prev_prio = 120);
		break;
	case 3:
		PUT(EV_LOCK_WAIT, ev_lock_wait, ts, game, cpu, .dur = 3 * step_ns, .addr = LOCK_ADDR, .val = 2,
			.word = 2, .owner = owner, .waker = owner, .op = 128, .words = 1);
		break;
	case 4:
	case 9:
		PUT(EV_FAULT, ev_fault, ts, game, cpu, .dur = step_ns / 4, .addr = HEAP_ADDR + n % 4096 * 4096,
			.ip = CODE_ADDR + 16);
		break;
	case 5:
		PUT(EV_FILE_READ, ev_file_read, ts, game, cpu, .dur = step_ns / 2, .offset = n * 4096, .ino = n % 16,
			.ret = 4096, .dev = 8 << 20 | 1, .fd = 3, .mode = 0x81a4, .sys = SYS_ID_read);
		break;
	case 6:
		PUT(EV_ALLOC, ev_alloc, ts, game, cpu, .size = 65536, .caller = CODE_ADDR + 32);
		break;
	case 7:
		PUT(EV_IRQ, ev_irq, ts, game, cpu, .dur = step_ns / 10, .irq = IRQ_TIMER);
		break;
	case 8:
		PUT(EV_SAMPLE, ev_sample, ts, game, cpu, .ip = CODE_ADDR + 64);
		break;
	}
}

static void generate(u64 seconds, u64 rate)
{
	u64 end = START + seconds * NSEC_PER_SEC, frame = 0, next_frame = START;

	step_ns = CPUS * NSEC_PER_SEC / rate;
	for (u64 n = 0; !out.error; n++) {
		u16 cpu = n % CPUS;
		u64 ts = START + n * step_ns / CPUS;

		if (ts >= end)
			break;
		if (ts >= next_frame && !cpu) {
			PUT(EV_FRAME, ev_frame, ts, GAME, 0, .number = frame, .stream = 1);
			next_frame += frame % SLOW_EVERY == SLOW_EVERY - 1 ? NSEC_PER_SEC / 20 : NSEC_PER_SEC / 60;
			frame++;
		}
		act(n / CPUS, ts, cpu);
	}
}

/* A time index too, where it is long enough: OUT is opened for reading and writing. */
static int finish(const char *path)
{
	int err = recording__finish(&out, true), fd = err ? -1 : open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return err ?: -errno;
	err = out.bytes < INDEX_LEAST_BYTES ? 0 : replay__index(fd);
	close(fd);
	return err;
}

int main(int argc, char **argv)
{
	u64 seconds = argc == 4 ? strtoull(argv[1], NULL, 10) : 0, rate = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
	int fd, err;

	if (!seconds || seconds > 1000000 || rate < 100 || rate > 1000000000) {
		fprintf(stderr, "usage: generate SECONDS RECORDS_PER_SECOND OUT\n");
		return 1;
	}
	fd = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	err = fd < 0 ? -errno : recording__create(&out, fd, START);
	if (!err) {
		put_names();
		generate(seconds, rate);
		err = finish(argv[3]);
	}
	if (err)
		fprintf(stderr, "generate: %s: %s\n", argv[3], strerror(-err));
	return err != 0;
}
