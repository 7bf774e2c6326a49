/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The hitches. Each kind is prepared some frames ahead, staged at the end of the frame before (a lock must be held when
 * the frame comes to it), run, and cleared away later; what it did is measured around it by the program itself.
 * They last a time rather than do an amount of work, so that they are hitches on any machine.
 */
#include "game.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define READ_BLOCK  ((size_t)256 << 10)
#define PAGE_STRIDE ((size_t)16 << 10)
#define FRESH_MIN   ((size_t)8 << 20)
#define FRESH_MAX   ((size_t)1 << 30)
#define ALLOC_BATCH 1000
#define PATIENCE_NS (2000 * NS_PER_MS) /* nobody waits longer for his cue: the game may have been stopped */

static void await(sem_t *s)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += PATIENCE_NS / 1000000000;
	while (sem_timedwait(s, &t) && errno == EINTR)
		;
}

static void note(struct hitch *h, const char *text)
{
	if (!h->note[0])
		snprintf(h->note, sizeof(h->note), "%s", text);
}

/* Immediately before the wait: the frame thread may lose its CPU to whom it has just woken, and must not come late. */
static void begin(struct hitch *h)
{
	h->start = now_ns();
	atomic_store(&h->begun, h->start);
}

static inline __attribute__((always_inline)) bool over(struct hitch *h)
{
	int64_t begun = atomic_load(&h->begun);

	return begun && now_ns() >= begun + h->length_ns;
}

/* Reads the cold file from its begin, block by block, until the time is over. */
static inline __attribute__((always_inline)) void read_cold(struct hitch *h, const struct data_file *f)
{
	char *block = h->map;
	off_t at = 0;
	ssize_t n;

	do {
		n = pread(f->fd, block, READ_BLOCK, at);
		if (n <= 0)
			break;
		at += n;
		h->count++;
	} while (!over(h));
	if (n <= 0)
		note(h, "the file ended before the time");
	h->bytes = at;
	if (h->cold_bytes > at)
		h->cold_bytes = at;
}

static void prepare_read(struct hitch *h, const struct data_file *f)
{
	ssize_t cold;

	/* no readahead: every block waits for the device, and what is cold is what is read */
	posix_fadvise(f->fd, 0, 0, POSIX_FADV_RANDOM);
	cold = data__chill(f);
	if (cold < (ssize_t)f->size)
		note(h, "the file was not wholly cold");
	h->cold_bytes = cold > 0 ? cold : 0;
	h->map_size = READ_BLOCK;
	h->map = mmap(NULL, h->map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (h->map == MAP_FAILED)
		h->map = NULL;
}

/* ---- a mutex held by a thread that computes ---- */

NOINLINE static void BuildNavmesh(struct hitch *h)
{
	CRUNCH_WHILE(!over(h));
}

NOINLINE static void RebuildNavmesh(void *arg)
{
	struct hitch *h = arg;

	pthread_mutex_lock(&g_navmesh_mutex);
	sem_post(&h->held);
	await(&h->go);
	BuildNavmesh(h);
	pthread_mutex_unlock(&g_navmesh_mutex);
}

static void stage_lock(struct hitch *h)
{
	h->what = "g_navmesh_mutex";
	h->who = worker__name(h->crew->loader);
	h->who_tid = worker__tid(h->crew->loader);
	worker__post(h->crew->loader, RebuildNavmesh, h);
	await(&h->held);
}

NOINLINE static void FindPath(struct hitch *h)
{
	sem_post(&h->go);
	begin(h);
	pthread_mutex_lock(&g_navmesh_mutex);
	h->end = now_ns();
	pthread_mutex_unlock(&g_navmesh_mutex);
}

/* ---- cold files ---- */

static void prepare_cold_read(struct hitch *h)
{
	prepare_read(h, &h->data->navmesh);
	h->what = h->data->navmesh.path;
}

NOINLINE static void LoadNavigationData(struct hitch *h)
{
	begin(h);
	read_cold(h, &h->data->navmesh);
	h->end = now_ns();
}

static void prepare_mapped(struct hitch *h)
{
	const struct data_file *f = &h->data->shaders;
	ssize_t cold = data__chill(f);

	if (cold < (ssize_t)f->size)
		note(h, "the file was not wholly cold");
	h->cold_bytes = cold > 0 ? cold : 0;
	h->what = f->path;
	h->map_size = f->size;
	h->map = mmap(NULL, f->size, PROT_READ, MAP_PRIVATE, f->fd, 0);
	if (h->map == MAP_FAILED) {
		h->map = NULL;
		h->map_size = 0;
		return;
	}
	madvise(h->map, h->map_size, MADV_RANDOM);
}

NOINLINE static void UploadShaders(struct hitch *h)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), at;
	struct rusage before, after;

	getrusage(RUSAGE_THREAD, &before);
	begin(h);
	for (at = 0; at < h->map_size && !over(h); at += PAGE_STRIDE) {
		crunched = *(volatile char *)(h->map + at);
		h->bytes += (int64_t)page;
	}
	h->end = now_ns();
	getrusage(RUSAGE_THREAD, &after);
	h->count = after.ru_majflt - before.ru_majflt;
	h->cold_bytes = h->count * (int64_t)page;
	if (at >= h->map_size)
		note(h, "the file ended before the time");
}

/* ---- fresh memory ---- */

NOINLINE static void GrowWorld(struct hitch *h)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), at;

	h->what = "anonymous memory";
	h->map_size = FRESH_MAX;
	begin(h);
	h->map = mmap(NULL, h->map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (h->map == MAP_FAILED) {
		h->map = NULL;
		note(h, "no memory");
		h->end = now_ns();
		return;
	}
	/* one fault a page, whatever the system thinks of huge pages */
	madvise(h->map, h->map_size, MADV_NOHUGEPAGE);
	for (at = 0; at < h->map_size && (at < FRESH_MIN || !over(h)); at += page)
		*(volatile char *)(h->map + at) = 1;
	h->end = now_ns();
	h->bytes = (int64_t)at;
	h->count = (int64_t)(at / page);
}

/* ---- preemption ---- */

/* Stays on this CPU for the while: otherwise the scheduler would carry the thread to an idle one. */
NOINLINE static void SimulateCrowd(struct hitch *h)
{
	cpu_set_t before, one;
	int cpu = sched_getcpu();
	int64_t cpu_start;

	h->what = h->who = "compiler";
	h->who_tid = rival__pid();
	if (strcmp(rival__how(), "SCHED_FIFO"))
		note(h, rival__how());
	sched_getaffinity(0, sizeof(before), &before);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		note(h, "could not stay on one CPU");
	begin(h);
	cpu_start = cpu_ns();
	rival__strike(cpu, h->length_ns);
	do {
		crunched = crunch(1.0, CRUNCH_SLICE);
	} while (rival__busy() && now_ns() < h->start + PATIENCE_NS);
	h->ns = -(cpu_ns() - cpu_start);
	h->end = now_ns();
	h->ns += h->end - h->start; /* what of the time it did not run */
	sched_setaffinity(0, sizeof(before), &before);
}

/* ---- sleep, allocations, a worker, code ---- */

NOINLINE static void LoadScript(struct hitch *h)
{
	begin(h);
	usleep((useconds_t)(h->length_ns / 1000));
	h->end = now_ns();
}

NOINLINE static void SpawnParticles(struct hitch *h)
{
	static void *batch[ALLOC_BATCH]; /* one hitch at a time */
	size_t i;

	h->what = "SpawnParticles";
	begin(h);
	do {
		for (i = 0; i < ALLOC_BATCH; i++) {
			size_t size = 24 + i % 8 * 16;

			batch[i] = malloc(size);
			if (!batch[i])
				continue;
			*(volatile char *)batch[i] = 1;
			h->count++;
			h->bytes += (int64_t)size;
		}
		for (i = 0; i < ALLOC_BATCH; i++)
			free(batch[i]);
	} while (!over(h));
	h->end = now_ns();
}

NOINLINE static void BakeLighting(void *arg)
{
	struct hitch *h = arg;

	CRUNCH_WHILE(!over(h));
	pthread_mutex_lock(&h->lock);
	h->done = true;
	pthread_cond_signal(&h->cond);
	pthread_mutex_unlock(&h->lock);
}

NOINLINE static void WaitForLighting(struct hitch *h)
{
	h->what = "BakeLighting";
	h->who = worker__name(h->crew->jobs[0]);
	h->who_tid = worker__tid(h->crew->jobs[0]);
	worker__post(h->crew->jobs[0], BakeLighting, h);
	begin(h);
	pthread_mutex_lock(&h->lock);
	while (!h->done)
		pthread_cond_wait(&h->cond, &h->lock);
	pthread_mutex_unlock(&h->lock);
	h->end = now_ns();
}

NOINLINE static void AStarExpand(struct hitch *h)
{
	h->what = "AStarExpand";
	begin(h);
	CRUNCH_WHILE(!over(h));
	h->end = now_ns();
}

/* ---- chains ---- */

static void prepare_chain(struct hitch *h)
{
	prepare_read(h, &h->data->level);
}

static void prepare_chain_locks(struct hitch *h)
{
	prepare_read(h, &h->data->textures);
}

NOINLINE static void StreamLevel(void *arg)
{
	struct hitch *h = arg;

	pthread_mutex_lock(&g_renderer->upload_lock);
	sem_post(&h->held);
	await(&h->go);
	read_cold(h, &h->data->level);
	pthread_mutex_unlock(&g_renderer->upload_lock);
}

NOINLINE static void LoadTextures(void *arg)
{
	struct hitch *h = arg;

	pthread_mutex_lock(&g_texture_mutex);
	sem_post(&h->held2);
	await(&h->go2);
	read_cold(h, &h->data->textures);
	pthread_mutex_unlock(&g_texture_mutex);
}

NOINLINE static void BindTextures(void *arg)
{
	struct hitch *h = arg;

	pthread_mutex_lock(&g_renderer->upload_lock);
	sem_post(&h->held);
	await(&h->go);
	sem_post(&h->go2);
	pthread_mutex_lock(&g_texture_mutex);
	pthread_mutex_unlock(&g_texture_mutex);
	pthread_mutex_unlock(&g_renderer->upload_lock);
}

static void stage_middle(struct hitch *h, void (*fn)(void *))
{
	h->what = "Renderer::upload_lock";
	h->who = worker__name(h->crew->middle);
	h->who_tid = worker__tid(h->crew->middle);
	worker__post(h->crew->middle, fn, h);
	await(&h->held);
}

static void stage_chain(struct hitch *h)
{
	stage_middle(h, StreamLevel);
}

static void stage_chain_locks(struct hitch *h)
{
	worker__post(h->crew->loader, LoadTextures, h);
	await(&h->held2);
	stage_middle(h, BindTextures);
}

NOINLINE static void SubmitScene(struct hitch *h)
{
	sem_post(&h->go);
	begin(h);
	pthread_mutex_lock(&g_renderer->upload_lock);
	h->end = now_ns();
	g_renderer->submitted++;
	pthread_mutex_unlock(&g_renderer->upload_lock);
}

/* ---- the table of kinds ---- */

static const struct kind_row {
	const char *name, *cause, *where;
	void (*prepare)(struct hitch *h), (*stage)(struct hitch *h), (*run)(struct hitch *h);
} kinds[KIND_COUNT] = {
	[KIND_LOCK] = {"lock", "lock_wait", "FindPath", NULL, stage_lock, FindPath},
	[KIND_READ] = {"read", "file_read", "LoadNavigationData", prepare_cold_read, NULL, LoadNavigationData},
	[KIND_MAPPED] = {"mapped", "page_fault", "UploadShaders", prepare_mapped, NULL, UploadShaders},
	[KIND_MEMORY] = {"memory", "page_fault", "GrowWorld", NULL, NULL, GrowWorld},
	[KIND_PREEMPT] = {"preempt", "cpu_wait", "SimulateCrowd", NULL, NULL, SimulateCrowd},
	[KIND_SLEEP] = {"sleep", "sleep", "LoadScript", NULL, NULL, LoadScript},
	[KIND_ALLOC] = {"alloc", "code", "SpawnParticles", NULL, NULL, SpawnParticles},
	[KIND_CHAIN] = {"chain", "lock_wait", "SubmitScene", prepare_chain, stage_chain, SubmitScene},
	[KIND_CHAIN_LOCKS] = {"chain_locks", "lock_wait", "SubmitScene", prepare_chain_locks, stage_chain_locks,
		SubmitScene},
	[KIND_CONDVAR] = {"condvar", "thread_wait", "WaitForLighting", NULL, NULL, WaitForLighting},
	[KIND_CODE] = {"code", "code", "AStarExpand", NULL, NULL, AStarExpand},
};

const char *kind__name(enum kind k)
{
	return kinds[k].name;
}

const char *kind__cause(enum kind k)
{
	return kinds[k].cause;
}

const char *kind__where(enum kind k)
{
	return kinds[k].where;
}

int kind__find(const char *name, size_t len)
{
	int k;

	for (k = 0; k < KIND_COUNT; k++)
		if (strlen(kinds[k].name) == len && !memcmp(kinds[k].name, name, len))
			return k;
	return -1;
}

void hitch__init(
	struct hitch *h, long frame, enum kind kind, int64_t length_ns, const struct crew *c, const struct data *d)
{
	memset(h, 0, sizeof(*h));
	h->frame = frame;
	h->kind = kind;
	h->length_ns = length_ns;
	h->crew = c;
	h->data = d;
	h->middle_name = worker__name(c->middle);
	h->middle_tid = worker__tid(c->middle);
	sem_init(&h->ready, 0, 0);
	sem_init(&h->held, 0, 0);
	sem_init(&h->go, 0, 0);
	sem_init(&h->held2, 0, 0);
	sem_init(&h->go2, 0, 0);
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->cond, NULL);
}

void hitch__prepare(struct hitch *h)
{
	if (kinds[h->kind].prepare)
		kinds[h->kind].prepare(h);
	sem_post(&h->ready);
}

void hitch__stage(struct hitch *h)
{
	if (sem_trywait(&h->ready)) {
		note(h, "the frame before waited for the preparation");
		await(&h->ready);
	}
	if (kinds[h->kind].stage)
		kinds[h->kind].stage(h);
}

void hitch__run(struct hitch *h)
{
	h->tid = gettid();
	pthread_getname_np(pthread_self(), h->thread, sizeof(h->thread));
	kinds[h->kind].run(h);
	if (!h->ns)
		h->ns = h->end - h->start;
}

void hitch__release(struct hitch *h)
{
	begin(h);
	sem_post(&h->go);
	sem_post(&h->go2);
}

void hitch__clear(struct hitch *h)
{
	if (h->map)
		munmap(h->map, h->map_size);
	h->map = NULL;
}

void hitch__free(struct hitch *h)
{
	pthread_cond_destroy(&h->cond);
	pthread_mutex_destroy(&h->lock);
	sem_destroy(&h->go2);
	sem_destroy(&h->held2);
	sem_destroy(&h->go);
	sem_destroy(&h->held);
	sem_destroy(&h->ready);
}
