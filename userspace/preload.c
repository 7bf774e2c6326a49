/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../preload/area.h"
#include "drain.h"
#include "events_desc.h"
#include "log.h"
#include "preload.h"
#include "process.h"
#include "recording.h"

#define LIBRARY    "libredframe-alloc.so"
#define FD_LEAST   200 /* where programs that number descriptors themselves do not look */
#define CHECK_NS   NSEC_PER_SEC
#define TICKS_MASK ((1ULL << 40) - 1)
#define LOW48      ((1ULL << 48) - 1)

/* What a slot's present thread is to us. */
struct preload_thread {
	u32 tid; /* as it is in the slot; 0: not looked at yet */
	bool of_game;
	u32 host; /* as we see it; 0: not known */
	u64 lost_before;
};

/* ---- the memory and the library ---- */

static bool find_library(char *path, size_t size)
{
	static const char *const places[] = {"", "../lib/redframe/", "../lib/"};
	char exe[PATH_MAX], *dir;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n < 0)
		return false;
	exe[n] = '\0';
	dir = dirname(exe);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		int len = snprintf(path, size, "%s/%s" LIBRARY, dir, places[i]);

		if (len > 0 && (size_t)len < size && !access(path, R_OK))
			return true;
	}
	return false;
}

/* Sealed: a game that cuts it short would kill us otherwise. */
static int make_area(struct preload *p)
{
	int fd = memfd_create("redframe-alloc", MFD_CLOEXEC | MFD_ALLOW_SEALING), err;

	if (fd < 0)
		return -errno;
	p->fd = fcntl(fd, F_DUPFD_CLOEXEC, FD_LEAST);
	close(fd);
	if (p->fd < 0 || ftruncate(p->fd, sizeof(*p->area)) ||
		fcntl(p->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	p->area = mmap(NULL, sizeof(*p->area), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, p->fd, 0);
	if (p->area == MAP_FAILED) {
		err = -errno;
		p->area = NULL;
		return err;
	}
	p->area->magic = PRELOAD_MAGIC;
	p->area->slots = PRELOAD_SLOTS;
	p->area->recording = 1;
	return 0;
}

/* One moment on both clocks; of several tries the one that was disturbed least. */
static void read_clocks(u64 *ticks, u64 *ts)
{
	u64 least = UINT64_MAX;

	for (int i = 0; i < 4; i++) {
		u64 before = preload__ticks(), now = clock_boot_ns(), took = preload__ticks() - before;

		if (took >= least)
			continue;
		least = took;
		*ticks = before + took / 2;
		*ts = now;
	}
}

int preload__open(struct preload *p)
{
	int err;

	*p = (struct preload){.fd = -1};
	if (!find_library(p->library, sizeof(p->library))) {
		log_err("--alloc preload: " LIBRARY
			" is neither beside redframe nor in ../lib/redframe: 'make' builds it, "
			"'make install' installs it");
		return -ENOENT;
	}
	p->threads = calloc(PRELOAD_SLOTS, sizeof(*p->threads));
	err = p->threads ? make_area(p) : -ENOMEM;
	if (err)
		log_err("--alloc preload: %s", errstr(err));
	read_clocks(&p->ticks, &p->ts);
	return err;
}

void preload__sample(struct preload *p, u64 bytes)
{
	__atomic_store_n(&p->area->sample_bytes, bytes, __ATOMIC_RELAXED);
}

void preload__enter(const struct preload *p)
{
	const char *others = getenv("LD_PRELOAD");
	char text[PATH_MAX * 2];

	fcntl(p->fd, F_SETFD, 0);
	snprintf(text, sizeof(text), "%d", p->fd);
	setenv(PRELOAD_FD_ENV, text, 1);
	snprintf(text, sizeof(text), "%s%s%s", p->library, others && *others ? ":" : "", others ? others : "");
	setenv("LD_PRELOAD", text, 1);
}

void preload__close(struct preload *p)
{
	if (p->area) {
		__atomic_store_n(&p->area->recording, 0, __ATOMIC_RELAXED);
		munmap(p->area, sizeof(*p->area));
	}
	if (p->fd >= 0)
		close(p->fd);
	free(p->threads);
	*p = (struct preload){.fd = -1};
}

/* ---- records ---- */

bool preload__decode(const struct preload_record *ring, u64 *at, u64 end, u64 now_ticks, struct preload_call *c)
{
	struct preload_record r = ring[*at % PRELOAD_RECORDS], more = {0};
	u64 ago;

	if ((r.what >> 48 & 0xff) == PRELOAD_MORE) {
		more = r;
		if (++*at == end)
			return false;
		r = ring[*at % PRELOAD_RECORDS];
	}
	++*at;
	ago = (now_ticks - ((r.what >> 56) << 32 | r.how >> 32)) & TICKS_MASK;
	if (ago > TICKS_MASK /
			  2) /* counters of two CPUs, and reads out of order: a moment after now, not minutes before */
		ago = 0;
	*c = (struct preload_call){
		.fn = r.what >> 48 & 0xff,
		.caller = r.what & LOW48,
		.block = more.what & LOW48,
		.size = (r.how & UINT32_MAX) | more.how << 32,
		.ticks = now_ticks - ago,
	};
	return c->fn < ALLOC_CUSTOM;
}

static bool is_free(u32 fn)
{
	return fn == ALLOC_FREE || fn == ALLOC_DELETE || fn == ALLOC_DELETE_ARRAY;
}

/* One moment on both clocks, and how long a tick lasts. */
struct clocks {
	u64 ticks, ts;
	double ns_per_tick;
};

static u64 ts_of(const struct clocks *k, u64 ticks)
{
	u64 ago = (u64)((double)(k->ticks - min(ticks, k->ticks)) * k->ns_per_tick);

	return k->ts - min(ago, k->ts);
}

static int tell(struct drain *d, const struct preload_call *c, u32 tid, u64 ts)
{
	struct ev_hdr hdr = {.ts = ts, .tid = tid};

	d->records++;
	if (is_free(c->fn)) {
		struct ev_free e = {.hdr = hdr, .addr = c->caller, .fn = c->fn};

		e.hdr.kind = EV_FREE;
		e.hdr.words = sizeof(e) / 8;
		return recording__append(d->out, &e, sizeof(e));
	}
	struct ev_alloc e = {.hdr = hdr, .size = c->size, .addr = c->block, .caller = c->caller, .fn = c->fn};

	e.hdr.kind = EV_ALLOC;
	e.hdr.words = sizeof(e) / 8;
	return recording__append(d->out, &e, sizeof(e));
}

static int empty_ring(
	struct preload *p, struct preload_slot *s, const struct preload_thread *t, struct drain *d, struct clocks *k)
{
	u64 at = s->tail, end = __atomic_load_n(&s->head, __ATOMIC_ACQUIRE), now = preload__ticks(), bad = 0;
	int err = 0;

	k->ts += (u64)((double)(now - k->ticks) * k->ns_per_tick); /* so that what is in the ring lies before */
	k->ticks = now;
	if (end - at > PRELOAD_RECORDS) { /* it cannot be: the game has written where it should not */
		bad = PRELOAD_RECORDS;
		at = end;
	}
	p->fullest = max(p->fullest, end - at);
	while (at != end && !err) {
		struct preload_call c;

		if (!preload__decode(s->ring, &at, end, now, &c) || !t->host) {
			bad++;
		} else if (t->of_game) {
			p->calls++;
			err = tell(d, &c, t->host, ts_of(k, c.ticks));
		}
	}
	__atomic_store_n(&s->tail, at, __ATOMIC_RELEASE);
	return err ? err : t->of_game && bad ? drain__tell_loss(d, CLASS_ALLOC, 0, bad, k->ts) : 0;
}

/* ---- threads ---- */

static void look_at_thread(struct preload_thread *t, const struct preload_slot *s, u32 tid, const struct target *game)
{
	t->tid = tid;
	t->of_game = s->tgid == game->nspid;
	t->host = t->of_game && game->own_pid_ns ? process__host_tid(game->tgid, tid) : tid;
}

/* Threads that have ended give their slots back, once a second. */
static void give_back(struct preload *p, u32 i)
{
	struct preload_slot *s = &p->area->slot[i];
	struct preload_thread *t = &p->threads[i];

	if (!t->host || !kill((pid_t)t->host, 0) || errno != ESRCH)
		return;
	*t = (struct preload_thread){0};
	s->tid = 0;
	s->lost = 0;
	__atomic_store_n(&s->state, PRELOAD_FREE, __ATOMIC_RELEASE);
}

static int take_slot(struct preload *p, u32 i, const struct target *game, struct drain *d, struct clocks *k)
{
	struct preload_slot *s = &p->area->slot[i];
	struct preload_thread *t = &p->threads[i];
	u32 tid = __atomic_load_n(&s->tid, __ATOMIC_ACQUIRE);
	u64 lost;
	int err;

	if (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) != PRELOAD_TAKEN || !tid)
		return 0;
	if (t->tid != tid)
		look_at_thread(t, s, tid, game);
	err = empty_ring(p, s, t, d, k);
	lost = s->lost;
	if (!err && t->of_game && lost > t->lost_before)
		err = drain__tell_loss(d, CLASS_ALLOC, 0, lost - t->lost_before, k->ts);
	t->lost_before = lost;
	return err;
}

int preload__pass(struct preload *p, const struct target *game, struct drain *d)
{
	u64 ticks = 0, ts = 0, unslotted;
	struct clocks k;
	bool check;
	u32 high;
	int err = 0;

	if (p->fd < 0)
		return 0;
	read_clocks(&ticks, &ts);
	k = (struct clocks){ticks, ts, ticks > p->ticks ? (double)(ts - p->ts) / (double)(ticks - p->ticks) : 0};
	check = ts - p->checked_ts > CHECK_NS;
	if (p->tgid != game->tgid)
		memset(p->threads, 0, PRELOAD_SLOTS * sizeof(*p->threads));
	p->tgid = game->tgid;
	p->fullest = 0;
	high = min(__atomic_load_n(&p->area->high, __ATOMIC_ACQUIRE), PRELOAD_SLOTS);
	for (u32 i = 0; i < high && !err; i++) {
		err = take_slot(p, i, game, d, &k);
		if (check)
			give_back(p, i);
	}
	unslotted = __atomic_load_n(&p->area->unslotted, __ATOMIC_RELAXED);
	if (!err && unslotted > p->lost_before)
		err = drain__tell_loss(d, CLASS_ALLOC, 0, unslotted - p->lost_before, ts);
	p->lost_before = unslotted;
	p->ticks = ticks;
	p->ts = ts;
	if (check)
		p->checked_ts = ts;
	return err;
}

void preload__pause(struct preload *p, bool pause)
{
	if (p->fd < 0)
		return;
	__atomic_store_n(&p->area->recording, !pause, __ATOMIC_RELAXED);
	for (u32 i = 0; i < PRELOAD_SLOTS; i++) {
		struct preload_slot *s = &p->area->slot[i];

		if (i >= __atomic_load_n(&p->area->high, __ATOMIC_ACQUIRE))
			break;
		__atomic_store_n(&s->tail, __atomic_load_n(&s->head, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	}
}

int preload__pause_ms(const struct preload *p)
{
	return p->fd < 0 ? INT_MAX : p->fullest > PRELOAD_RECORDS / 32 ? 1 : 5;
}

const char *preload__shortfall(const struct preload *p)
{
	if (p->fd < 0 || p->calls)
		return NULL;
	if (!p->area->loaded)
		return "no process of CMD loaded the library of --alloc preload: a static program, one with "
		       "set-user-ID, of "
		       "another C library, or a launcher that closes descriptors; --alloc all uses probes";
	return "the library of --alloc preload was loaded, but the game's process made no call through it; --alloc all "
	       "uses "
	       "probes";
}
