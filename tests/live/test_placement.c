// SPDX-License-Identifier: GPL-2.0-only
/*
 * On the running kernel: at the place that was chosen, a uprobe is hit exactly as often as at the function's first
 * byte. Needs the right to open uprobe perf events (root).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "objects.h"
#include "placement.h"

#define CALLS 2000

static struct objects objects;
static volatile double sink;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *blocks[CALLS];

static void call_malloc(int i)
{
	blocks[i] = malloc((size_t)i);
}
static void call_free(int i)
{
	free(blocks[i]);
}
static void call_calloc(int i)
{
	blocks[i] = calloc(3, (size_t)i);
}
static void call_realloc(int i)
{
	blocks[i] = realloc(i & 1 ? blocks[i] : NULL, (size_t)i + 100);
}
static void call_posix_memalign(int i)
{
	assert_int_equal(posix_memalign(&blocks[i], 64, (size_t)i), 0);
}
static void call_aligned_alloc(int i)
{
	blocks[i] = aligned_alloc(64, 64u * (size_t)i);
}
static void call_lock(int i)
{
	assert_int_equal(pthread_mutex_lock(&mutex), 0);
	pthread_mutex_unlock(&mutex);
}
static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}
static void call_qsort(int i)
{
	int v[4] = {i, 3, 2, 1};

	qsort(v, 4, sizeof(int), by_value);
}
static void call_getenv(int i)
{
	sink = getenv("PATH") != NULL;
}
static void call_strtol(int i)
{
	sink = (double)strtol("1234", NULL, 10);
}
static void call_cbrt(int i)
{
	sink = cbrt((double)i);
}
static void call_erf(int i)
{
	sink = erf(i / 100.0);
}
static void call_lgamma(int i)
{
	sink = lgamma(i / 7.0);
}
static void call_hypot(int i)
{
	sink = hypot((double)i, 4.0);
}
static void call_fmod(int i)
{
	sink = fmod((double)i, 4.0);
}
static void call_memcpy_like(int i)
{
	char buf[64];

	sink = (double)(uintptr_t)mempcpy(buf, "0123456789", (size_t)(i % 10));
}

static const struct {
	const char *lib, *name;
	void (*call)(int i);
	u32 need; /* arguments that must be live */
} cases[] = {
	{"libc", "malloc", call_malloc, 1},
	{"libc", "free", call_free, 1},
	{"libc", "calloc", call_calloc, 3},
	{"libc", "free", call_free, 1},
	{"libc", "posix_memalign", call_posix_memalign, 7},
	{"libc", "free", call_free, 1},
	{"libc", "aligned_alloc", call_aligned_alloc, 3},
	{"libc", "realloc", call_realloc, 3},
	{"libc", "pthread_mutex_lock", call_lock, 1},
	{"libc", "pthread_mutex_unlock", call_lock, 1},
	{"libc", "qsort", call_qsort, 1},
	{"libc", "getenv", call_getenv, 1},
	{"libc", "strtol", call_strtol, 1},
	{"libc", "mempcpy", call_memcpy_like, 1},
	{"libm", "cbrt", call_cbrt, 0},
	{"libm", "erf", call_erf, 0},
	{"libm", "lgamma", call_lgamma, 0},
	{"libm", "hypot", call_hypot, 0},
	{"libm", "fmod", call_fmod, 0},
};

static u32 pmu_type(void)
{
	char *text = proc__read("/sys/bus/event_source/devices/uprobe/type", 64, NULL);
	u32 type;

	if (!text)
		fail_msg("this kernel has no uprobe PMU: the test cannot run here");
	type = (u32)atoi(text);
	free(text);
	return type;
}

static int count_at(const struct object *obj, u64 offset)
{
	char path[64];
	struct perf_event_attr attr = {.size = sizeof(attr),
		.type = pmu_type(),
		.config1 = (u64)(uintptr_t)path,
		.config2 = offset,
		.disabled = 1};
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", obj->fd);
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		fail_msg("perf_event_open: %s: this test needs root and uprobes", strerror(errno));
	return fd;
}

static u64 measure(int fd, void (*call)(int i), u64 *ns)
{
	struct timespec a, b;
	u64 count;

	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < CALLS; i++)
		call(i);
	clock_gettime(CLOCK_MONOTONIC, &b);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
	*ns = (u64)((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec) / CALLS;
	return count;
}

static struct object *library(const char *lib)
{
	for (int i = 0; i < objects.n; i++)
		if (object__is(&objects.v[i], lib) && !object__open(&objects, &objects.v[i]))
			return &objects.v[i];
	fail_msg("%s is not mapped", lib);
	return NULL;
}

static void compare(const char *lib, const char *name, void (*call)(int i), u32 need)
{
	struct object *obj = library(lib);
	struct elf_symbol s;
	struct placement p;
	u64 at, ns, entry_count, place_count;
	int entry, place;

	assert_int_equal(elf_file__find(&obj->elf, &name, 1, false, &s), 1);
	if (s.type == STT_GNU_IFUNC) {
		print_message("%-22s chosen at run time: not comparable\n", name);
		return;
	}
	assert_int_equal(placement__of_symbol(&obj->elf, &s, need, &p), 0);
	assert_int_equal(elf_file__offset(&obj->elf, s.vaddr, &at), 0);
	entry = count_at(obj, at);
	place = count_at(obj, at + p.offset);
	/* both at once: the same calls are counted twice */
	ioctl(entry, PERF_EVENT_IOC_ENABLE, 0);
	place_count = measure(place, call, &ns);
	ioctl(entry, PERF_EVENT_IOC_DISABLE, 0);
	assert_int_equal(read(entry, &entry_count, sizeof(entry_count)), sizeof(entry_count));
	close(entry);
	print_message("%-22s +0x%-3x %s: %" PRIu64 " hits, byte 0 %" PRIu64 "\n", name, p.offset,
		p.stepped ? "stepped" : "emulated", place_count, entry_count);
	assert_int_equal(place_count, entry_count);
	assert_int_equal(entry_count, CALLS);
	close(place);
}

static void test_chosen_place_is_hit_as_often_as_the_first_byte(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		compare(cases[i].lib, cases[i].name, cases[i].call, cases[i].need);
}

/* What it is all for: where the first byte is single-stepped and another place is not, the other one is cheaper. */
static void test_emulated_place_of_free_costs_less_than_its_first_byte(void **state)
{
	const char *name = "free";
	struct object *obj = library("libc");
	struct elf_symbol s;
	struct placement p;
	u64 at, best[2] = {~0ULL, ~0ULL}, ns;
	u8 first[16];

	assert_int_equal(elf_file__find(&obj->elf, &name, 1, false, &s), 1);
	assert_int_equal(placement__of_symbol(&obj->elf, &s, 1, &p), 0);
	assert_int_equal(elf_file__offset(&obj->elf, s.vaddr, &at), 0);
	assert_int_equal(elf_file__read_vaddr(&obj->elf, s.vaddr, first, sizeof(first)), sizeof(first));
	if (placement__emulated(obj->elf.machine, first, sizeof(first))) {
		print_message("free of this libc begins well: nothing to compare\n");
		skip();
	}
	assert_false(p.stepped);
	for (int round = 0; round < 6; round++) {
		int fd = count_at(obj, at + (round & 1 ? p.offset : 0));

		for (int i = 0; i < CALLS; i++)
			blocks[i] = malloc(16);
		measure(fd, call_free, &ns);
		best[round & 1] = min(best[round & 1], ns);
		close(fd);
	}
	print_message("free at byte 0 %" PRIu64 " ns a call, at +0x%x %" PRIu64 " ns\n", best[0], p.offset, best[1]);
	assert_true(best[1] < best[0]);
}

static int setup(void **state)
{
	sink = cbrt(2.0);
	return objects__read(&objects, (u32)getpid());
}

static int teardown(void **state)
{
	objects__free(&objects);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chosen_place_is_hit_as_often_as_the_first_byte),
		cmocka_unit_test(test_emulated_place_of_free_costs_less_than_its_first_byte),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
