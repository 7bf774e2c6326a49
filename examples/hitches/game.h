/* SPDX-License-Identifier: GPL-2.0-only
 *
 * hitches: a small real-time "game" without a window, with one known hitch of each kind on known frames and a log of
 * the truth, to see and to test what redframe says of them.
 */
#ifndef HITCHES_GAME_H
#define HITCHES_GAME_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif
#define MAX_KINDS 16
#define NS_PER_MS 1000000LL

enum kind {
	KIND_LOCK,        /* a mutex held by a thread that computes */
	KIND_READ,        /* a cold file is read */
	KIND_MAPPED,      /* a mapped cold file is touched: major faults */
	KIND_MEMORY,      /* fresh memory is touched: minor faults */
	KIND_PREEMPT,     /* another process takes the CPU */
	KIND_SLEEP,       /* the thread asks to sleep */
	KIND_ALLOC,       /* many small allocations */
	KIND_CHAIN,       /* a mutex held by a thread that reads a cold file */
	KIND_CHAIN_LOCKS, /* a mutex held by a thread that waits for a mutex held by one that reads a cold file */
	KIND_CONDVAR,     /* a condition variable that a worker signals after computing */
	KIND_CODE,        /* the frame's own code computes */
	KIND_COUNT
};

enum shape {
	SHAPE_LOOP,     /* MainThread simulates, renders and presents */
	SHAPE_PIPELINE, /* GameThread simulates one frame ahead of RenderThread, which renders and presents */
};

struct options {
	enum shape shape;
	long frames; /* presented after the first mark; 0: as many as the hitches need */
	long fps;
	long every;  /* frames from one hitch to the next */
	long rounds; /* how often the list of kinds is gone through; 0: until the frames end */
	long ms;     /* how long a hitch shall last */
	uint64_t seed;
	enum kind kinds[MAX_KINDS];
	int n_kinds;
	const char *log; /* NULL: none; "-": standard output */
	const char *dir; /* NULL: a fresh folder under TMPDIR or /var/tmp */
	bool quiet;
};

/* 0: go on; 1: help was printed; -EINVAL: wrong usage, already said */
int options__parse(struct options *o, int argc, char **argv);

/* ---- time ---- */

int64_t now_ns(void); /* CLOCK_BOOTTIME, as in a recording */
int64_t cpu_ns(void); /* that this thread has used */
void sleep_until(int64_t ns);

/* Arithmetic that the compiler cannot drop, inlined so that samples fall into the function that asked for it. */
static inline __attribute__((always_inline)) double crunch(double x, long rounds)
{
	long i;

	for (i = 0; i < rounds; i++)
		x = x * 0.9999999 + 1.0 / (1.0 + x * x);
	return x;
}
#define CRUNCH_SLICE 2000 /* rounds between looks at the clock: some 10 to 20 us */

/* Written with what crunch() returned. One per thread: no cache line bounces. */
extern _Thread_local volatile double crunched;

#define CRUNCH_WHILE(condition)                                                                                        \
	do {                                                                                                           \
		double x_ = 1.0;                                                                                       \
		while (condition)                                                                                      \
			x_ = crunch(x_, CRUNCH_SLICE);                                                                 \
		crunched = x_;                                                                                         \
	} while (0)

/* ---- threads ---- */

struct worker;
struct worker *worker__start(const char *name); /* NULL: errno says why */
/* fn(arg) runs on the worker after what was posted before; waits while 64 jobs are queued. Not from the worker. */
void worker__post(struct worker *w, void (*fn)(void *), void *arg);
void worker__stop(struct worker *w); /* finishes what was posted; accepts NULL */
pid_t worker__tid(const struct worker *w);
const char *worker__name(const struct worker *w);
void name_thread(const char *name);

#define JOB_WORKERS 2
struct crew {
	struct worker *loader;            /* AssetLoader */
	struct worker *middle;            /* the thread between in a chain: RenderThread, or StreamingThread */
	struct worker *jobs[JOB_WORKERS]; /* JobWorker0, … */
};
int crew__start(struct crew *c, enum shape shape); /* 0 or -errno */
void crew__stop(struct crew *c);

/* ---- data files ---- */

struct data_file {
	char path[512];
	int fd; /* -1: not made */
	size_t size;
};

struct data {
	char dir[400];
	bool made_dir;
	bool in_memory;            /* tmpfs or ramfs: nothing is ever cold */
	struct data_file settings; /* small and warm */
	struct data_file navmesh, shaders, level, textures;
};

int data__make(struct data *d, const struct options *o); /* 0 or -errno, said on stderr */
void data__remove(struct data *d);
/* Drops the file from the page cache. Returns the bytes that are cold then, or -errno. */
ssize_t data__chill(const struct data_file *f);

/* ---- ordinary work ---- */

int work__start(const struct data *d, uint64_t seed); /* 0 or -errno */
void work__stop(void);
void work__simulate(const struct crew *c); /* some 3 ms */
void work__render(void);                   /* some 1.5 ms */
void work__scene(long frame);              /* scene and lock markers on the frames that have them */

extern pthread_mutex_t g_navmesh_mutex, g_texture_mutex;
struct renderer {
	long submitted;
	pthread_mutex_t upload_lock; /* on the heap: only its marker names it */
};
extern struct renderer *g_renderer;

/* ---- hitches ---- */

struct hitch {
	long frame;
	enum kind kind;
	int64_t length_ns;     /* intended, from begun on */
	_Atomic int64_t begun; /* when the frame came to it: who holds a lock lets it go length_ns later; 0: not yet */

	/* the truth */
	int64_t start, end; /* CLOCK_BOOTTIME around the injected work */
	int64_t ns;         /* of the cause: end - start, or what of it was spent so */
	int64_t frame_start, frame_end;
	int64_t wait_start, wait_end; /* pipeline: RenderThread waited for this frame's packet */
	const char *what;             /* path, lock or function */
	const char *who;              /* the other thread; NULL */
	pid_t who_tid;
	pid_t tid; /* of the thread that was held up */
	char thread[16];
	const char *middle_name;
	pid_t middle_tid;
	int64_t bytes, cold_bytes; /* touched, and of that not in memory when it began */
	int64_t count;             /* reads, faults or allocations */
	char note[96];             /* what was not as intended */

	/* the works */
	const struct crew *crew;
	const struct data *data;
	sem_t ready, held, go; /* prepared; the lock is taken; the frame is about to wait for it */
	sem_t held2, go2;      /* the same of the second lock */
	char *map;
	size_t map_size;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool done;
};

const char *kind__name(enum kind k);
const char *kind__cause(enum kind k);
const char *kind__where(enum kind k);
int kind__find(const char *name, size_t len); /* enum kind or -1 */

void hitch__init(
	struct hitch *h, long frame, enum kind kind, int64_t length_ns, const struct crew *c, const struct data *d);
void hitch__prepare(struct hitch *h); /* frames ahead: makes files cold; on the loader */
void hitch__stage(struct hitch *h);   /* at the end of the frame before: has locks taken */
void hitch__run(struct hitch *h);
void hitch__release(struct hitch *h); /* instead of run, when the game ends before: lets go who waits for it */
void hitch__clear(struct hitch *h);   /* on the loader, frames after: gives memory back */
void hitch__free(struct hitch *h);

/* the competitor of KIND_PREEMPT: forked before there are threads */
int rival__start(void); /* 0 or -errno */
void rival__stop(void);
/* Takes `cpu` for length_ns. Returns at once, or when it is over if it could take this CPU at once. */
void rival__strike(int cpu, int64_t length_ns);
bool rival__busy(void);
const char *rival__how(void); /* "SCHED_FIFO", or what was to be had instead */
pid_t rival__pid(void);

/* ---- the log of the truth: one JSON object a line ---- */

struct truth {
	FILE *out; /* NULL: none */
	bool quiet;
	enum shape shape;
	long hitches;
};

int truth__open(struct truth *t, const struct options *o, const struct data *d, long frames); /* 0 or -errno */
void truth__hitch(struct truth *t, const struct hitch *h);
void truth__slow(struct truth *t, long frame, int64_t ns); /* a slow frame that was not intended */
int truth__close(struct truth *t, long frames);            /* 0 or -errno: the log is not complete */

#endif
