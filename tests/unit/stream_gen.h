/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Recordings made up from a seed. Sane ones are of threads that act one thing after the other, each on a CPU of its
 * own; wild ones are of records that contradict each other.
 */
#ifndef REDFRAME_STREAM_GEN_H
#define REDFRAME_STREAM_GEN_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "events_desc.h"
#include "recording.h"

#define GEN_MAX   200000
#define GEN_WORDS 16

struct gen_rec {
	u64 words[GEN_WORDS];
	u32 seq;
};

struct gen {
	u64 state;
	struct gen_rec *recs;
	u32 n;
};

static inline u64 gen__random(struct gen *g, u64 below)
{
	g->state ^= g->state << 13;
	g->state ^= g->state >> 7;
	g->state ^= g->state << 17;
	return (g->state >> 11) % below;
}

static inline void gen__init(struct gen *g, u64 seed)
{
	g->state = seed * 0x9e3779b97f4a7c15ULL + 1;
	g->recs = calloc(GEN_MAX, sizeof(*g->recs));
	g->n = 0;
}

static inline void gen__free(struct gen *g)
{
	free(g->recs);
}

static inline void *gen__add(struct gen *g, u8 kind, u64 ts, u32 tid, u16 cpu)
{
	struct gen_rec *r = &g->recs[g->n];
	struct ev_hdr *h = (struct ev_hdr *)r->words;

	if (g->n + 1 < GEN_MAX)
		g->n++;
	memset(r, 0, sizeof(*r));
	r->seq = g->n;
	*h = (struct ev_hdr){.ts = ts, .tid = tid, .cpu = cpu, .kind = kind, .words = ev__desc(kind)->size / 8};
	return h;
}

static inline void gen__leave(struct gen *g, u64 ts, u32 tid, u16 cpu, u16 state, u16 sys, u16 flags, u32 next)
{
	struct ev_switch *e = gen__add(g, EV_SWITCH, ts, tid, cpu);

	e->next_tid = next;
	e->prev_state = state;
	e->sys = sys;
	e->flags = flags;
}

static inline void gen__arrive(struct gen *g, u64 ts, u32 tid, u16 cpu, u32 prev)
{
	struct ev_switch *e = gen__add(g, EV_SWITCH, ts, prev, cpu);

	e->next_tid = tid;
	e->prev_state = prev ? 1 : 0;
	e->flags = SWITCH_NEXT_GAME;
}

static inline void gen__wake(struct gen *g, u64 ts, u32 tid, u16 cpu, u32 waker, u8 flags)
{
	struct ev_waking *e = gen__add(g, EV_WAKING, ts, tid, cpu);

	e->waker = waker;
	e->target_cpu = cpu;
	e->flags = flags;
}

/* Off the CPU for a while within [t, t + dur); returns when it runs again. */
static inline u64 gen__block(struct gen *g, u64 t, u64 dur, u32 tid, u16 cpu, u16 sys, u32 waker)
{
	gen__leave(g, t, tid, cpu, 1, sys, SWITCH_GAME, 0);
	gen__wake(g, t + dur, tid, cpu, waker, waker ? 0 : WAKE_HARDIRQ);
	gen__arrive(g, t + dur + 5000, tid, cpu, 0);
	return t + dur + 5000;
}

static inline u64 gen__read(struct gen *g, u64 t, u32 tid, u16 cpu)
{
	u64 start = t, dur = 10000 + gen__random(g, 3000000);
	struct ev_file_read *e;

	if (gen__random(g, 2)) {
		struct ev_fault *f;
		u64 begin = t + 500;

		t = gen__block(g, begin + 500, dur / 2, tid, cpu, 2, 0);
		f = gen__add(g, EV_FAULT, t + 500, tid, cpu);
		f->dur = t + 500 - begin;
		f->addr = 0x1000 * gen__random(g, 100);
		f->flags = gen__random(g, 16);
	}
	t = gen__block(g, t + 1000, dur, tid, cpu, 2, 0) + 2000;
	e = gen__add(g, EV_FILE_READ, t, tid, cpu);
	e->dur = t - start;
	e->ret = 4096;
	e->cold = 4096;
	e->ino = 1 + gen__random(g, 4);
	e->dev = 1;
	e->mode = 0100644;
	e->sys = 2;
	return t;
}

static inline u64 gen__lock(struct gen *g, u64 t, u32 tid, u16 cpu)
{
	u32 other = 100 + gen__random(g, 4);
	u64 start = t;
	struct ev_lock_wait *e;

	t = gen__block(g, t + 500, 10000 + gen__random(g, 5000000), tid, cpu, 60, other == tid ? 0 : other) + 500;
	e = gen__add(g, EV_LOCK_WAIT, t, tid, cpu);
	e->dur = t - start;
	e->addr = 0x5000 + 40 * gen__random(g, 3);
	e->op = 128;
	e->val = gen__random(g, 2) * 2;
	e->owner = e->val ? 100 + gen__random(g, 4) : 0;
	e->waker = other;
	return t;
}

static inline u64 gen__preempt(struct gen *g, u64 t, u32 tid, u16 cpu)
{
	u64 dur = 10000 + gen__random(g, 4000000);

	gen__leave(g, t, tid, cpu, 0, 0, SWITCH_GAME | SWITCH_PREEMPT | SWITCH_USER, 900);
	gen__arrive(g, t + dur, tid, cpu, 900);
	return t + dur;
}

static inline u64 gen__irq(struct gen *g, u64 t, u32 tid, u16 cpu)
{
	struct ev_irq *e = gen__add(g, EV_IRQ, t + 3000, tid, cpu);

	e->dur = 3000;
	e->irq = 24;
	return t + 3000;
}

static inline u64 gen__sleep(struct gen *g, u64 t, u32 tid, u16 cpu)
{
	return gen__block(g, t, 100000 + gen__random(g, 4000000), tid, cpu, 81, 0);
}

static inline void gen__frame(struct gen *g, u64 t, u32 tid, u16 cpu, u64 number)
{
	struct ev_frame *f = gen__add(g, EV_FRAME, t, tid, cpu);

	f->number = number;
	f->stream = 1;
}

/* One thread from start to end, acting; thread 100 presents. */
static inline void gen__thread(struct gen *g, u32 tid, u16 cpu, u64 start, u64 end)
{
	u64 (*const acts[])(struct gen *, u64, u32, u16) = {gen__read, gen__lock, gen__preempt, gen__irq, gen__sleep};
	u64 t = start, number = 0;

	while (t < end) {
		t = acts[gen__random(g, ARRAY_SIZE(acts))](g, t, tid, cpu);
		t += 1000 + gen__random(g, 3000000);
		if (tid == 100 && !gen__random(g, 4))
			gen__frame(g, t, tid, cpu, number++);
		t += 1000;
	}
}

static inline void gen__sane(struct gen *g, u64 ms)
{
	for (u32 i = 0; i < 4; i++)
		gen__thread(g, 100 + i, i, 1000000 + i * 777, (1 + ms) * 1000000);
}

/* Anything at any time: ends before begins, wakeups of the running, durations longer than time itself. */
static inline void gen__wild(struct gen *g, u32 records)
{
	static const u8 kinds[] = {EV_SWITCH, EV_SWITCH, EV_SWITCH, EV_WAKING, EV_WAKING, EV_FAULT, EV_LOCK_WAIT,
		EV_FILE_READ, EV_FILE_META, EV_MEM_CALL, EV_IRQ, EV_RECLAIM, EV_SYSCALL, EV_LOST, EV_FORK, EV_EXIT,
		EV_SAMPLE, EV_ALLOC_SUM, EV_FRAME, EV_MIGRATE};
	u64 t = 1000000;

	for (u32 i = 0; i < records; i++) {
		u8 kind = kinds[gen__random(g, ARRAY_SIZE(kinds))];
		u64 *rec = gen__add(g, kind, t, 99 + gen__random(g, 6), gen__random(g, 3));
		u32 words = ((struct ev_hdr *)rec)->words;

		t += gen__random(g, 3) ? gen__random(g, 500000) : 0;
		for (u32 w = 2; w < words; w++)
			rec[w] = gen__random(g, 8) ? gen__random(g, 300000) : gen__random(g, ~0ULL);
		if (kind == EV_SWITCH)
			rec[2] = (rec[2] & ~0xffffffffULL) | (98 + gen__random(g, 7));
		if (kind == EV_FRAME)
			rec[3] = gen__random(g, 2), rec[4] = 0;
	}
}

static inline int gen__by_time(const void *a, const void *b)
{
	const struct gen_rec *x = a, *y = b;

	if (x->words[0] != y->words[0])
		return x->words[0] < y->words[0] ? -1 : 1;
	return x->seq < y->seq ? -1 : 1;
}

static inline void gen__text(struct recording_writer *w, u8 kind, u32 tid, const char *text)
{
	struct ev_hdr h = {.kind = kind, .tid = tid};

	recording__append_text(w, &h, sizeof(h), text, strlen(text));
}

static inline void gen__thread_meta(struct recording_writer *w, u32 tid, u32 tgid, const char *name)
{
	struct ev_thread e = {.hdr = {.kind = EV_THREAD, .tid = tid}, .tgid = tgid, .nstid = tid};

	recording__append_text(w, &e, offsetof(struct ev_thread, name), name, strlen(name));
}

/* The records with from <= ts < to as a recording: a memfd at its begin. */
static inline int gen__recording(struct gen *g, u64 from, u64 to)
{
	static const char *const names[] = {"Main", "Game", "Worker-1", "Worker-2"};
	struct recording_writer w = {};
	int fd = memfd_create("gen", MFD_CLOEXEC);

	qsort(g->recs, g->n, sizeof(*g->recs), gen__by_time);
	if (recording__create(&w, dup(fd), 0))
		return -1;
	gen__text(&w, EV_INFO, 0, "game.tgid=100");
	gen__text(&w, EV_INFO, 0, "probe.0=usdt:redframe:frame"); /* no mark is taken for the one before seen again */
	for (u32 i = 0; i < 4; i++)
		gen__thread_meta(&w, 100 + i, 100, names[i]);
	gen__thread_meta(&w, 900, 900, "stress");
	for (u32 i = 0; i < g->n; i++) {
		const struct ev_hdr *h = (const void *)g->recs[i].words;

		if (h->ts >= from && h->ts < to)
			recording__append(&w, h, ev__bytes(h));
	}
	if (recording__finish(&w, true) || lseek(fd, 0, SEEK_SET))
		return -1;
	return fd;
}

#endif
