// SPDX-License-Identifier: GPL-2.0-only
/* The allocator's calls, counted and summed, and the calls that change the address space. */
#include <stdlib.h>
#include <unistd.h>

#include "live.h"
#include "syscalls.h"

static const char *const fn_names[] = {
	[ALLOC_MALLOC] = "malloc",
	[ALLOC_CALLOC] = "calloc",
	[ALLOC_REALLOC] = "realloc",
	[ALLOC_ALIGNED] = "aligned",
	[ALLOC_POSIX_MEMALIGN] = "posix_memalign",
	[ALLOC_NEW] = "new",
	[ALLOC_NEW_ARRAY] = "new[]",
};

static void record(struct live *l, const char *target, const char *mode, const char *frame)
{
	live__init(l);
	live__start(l, target, NULL);
	live__record(l, "--frame", frame, "--alloc", mode, NULL);
	live__run(l);
}

static bool in_window(const struct live *l, const struct ev_hdr *h)
{
	return h->ts >= (u64)live__num(l, "window", 0, 0) && h->ts <= (u64)live__num(l, "window", 0, 1);
}

static size_t count_allocs(const struct live *l, const char *fn, u64 size)
{
	const struct live_event *e;
	size_t n = 0;

	live__each(l, at, e, EV_ALLOC)
	{
		const struct ev_alloc *a = (const void *)e->hdr;

		if (in_window(l, e->hdr) && a->size == size && a->fn < ARRAY_SIZE(fn_names) &&
			!strcmp(fn_names[a->fn], fn))
			n++;
	}
	return n;
}

static size_t count_in_window(const struct live *l, u8 kind)
{
	const struct live_event *e;
	size_t n = 0;

	live__each(l, at, e, kind) n += in_window(l, e->hdr);
	return n;
}

/* each kind of call as often as it was made, and nothing besides: a call inside another is not counted */
static void same_counts(const struct live *l)
{
	size_t all = 0;
	char fn[32];

	for (size_t i = 0; i < live__rows(l, "alloc"); i++) {
		size_t want = (size_t)live__num(l, "alloc", i, 2), got;

		live__word(l, "alloc", i, 0, fn, sizeof(fn));
		got = count_allocs(l, fn, (u64)live__num(l, "alloc", i, 1));
		if (got != want)
			fail_msg(
				"%s(%lld): %zu calls were recorded as %zu", fn, live__num(l, "alloc", i, 1), want, got);
		all += want;
	}
	assert_int_equal(count_in_window(l, EV_ALLOC), all);
	assert_int_equal(count_in_window(l, EV_FREE), live__num(l, "frees", 0, 0));
}

static void test_with_alloc_all_every_call_of_the_allocator_is_recorded_once(void **state)
{
	struct live l;

	record(&l, "alloc", "all", "none");
	same_counts(&l);
	live__free(&l);
}

/* ---- whose malloc it is ---- */

static void expect_site(const struct live *l, const char *file)
{
	char label[128];

	snprintf(label, sizeof(label), "uprobe:%s:malloc", file);
	for (int i = 0; i < 64; i++) {
		const char *site;
		char key[16];

		snprintf(key, sizeof(key), "probe.%d", i);
		site = model__info(l->model, key);
		if (site && !strncmp(site, label, strlen(label)))
			return;
	}
	fail_msg("no probe is on the malloc of %s; it said: %s", file, l->said);
}

static void preloaded(const char *package, const char *file)
{
	static const char dir[] = "/usr/lib/x86_64-linux-gnu";
	char path[256], why[256], real[PATH_MAX];
	struct live l;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (access(path, R_OK)) {
		snprintf(why, sizeof(why), "%s is not installed: an allocator of another make is not tested", package);
		live__skip(why);
	}
	live__init(&l);
	setenv("LD_PRELOAD", path, 1);
	live__start(&l, "alloc", NULL);
	unsetenv("LD_PRELOAD");
	live__record(&l, "--frame", "none", "--alloc", "all", NULL);
	live__run(&l);
	same_counts(&l);
	assert_non_null(realpath(path, real));
	expect_site(&l, strrchr(real, '/') + 1);
	live__free(&l);
}

static void test_jemalloc_that_is_preloaded_is_covered(void **state)
{
	preloaded("libjemalloc2", "libjemalloc.so.2");
}
static void test_mimalloc_that_is_preloaded_is_covered(void **state)
{
	preloaded("libmimalloc2.0", "libmimalloc.so.2");
}
static void test_tcmalloc_that_is_preloaded_is_covered(void **state)
{
	preloaded("libtcmalloc-minimal4", "libtcmalloc_minimal.so.4");
}

static void linked_in(const char *program)
{
	struct live l;

	record(&l, program, "all", "none");
	same_counts(&l);
	expect_site(&l, program);
	live__free(&l);
}

static void test_an_allocator_that_the_program_exports_is_covered(void **state)
{
	linked_in("alloc_own");
}
static void test_an_allocator_that_the_program_keeps_to_itself_is_covered(void **state)
{
	linked_in("alloc_hidden");
}
static void test_the_c_librarys_allocator_within_a_static_program_is_covered(void **state)
{
	linked_in("alloc_static");
}

static void test_where_no_allocator_is_found_it_says_that_allocations_are_not_covered(void **state)
{
	char *argv[] = {(char *)live__program(), "record", "-o", NULL, "--no-trace", "--frame", "none", "--",
		(char *)live__target_path("alloc_nameless"), NULL};
	struct live l;

	record(&l, "alloc_nameless", "all", "none");
	assert_int_equal(live__count(&l, EV_ALLOC) + live__count(&l, EV_FREE), 0);
	assert_non_null(strstr(l.said, "allocations not covered"));
	live__free(&l);
	/* of a program that is started that is known at the end */
	live__init(&l);
	argv[3] = l.recording;
	l.redframe = live__spawn(&l, "said", argv);
	live__end_redframe(&l);
	assert_non_null(strstr(l.said, "allocations not covered"));
	live__free(&l);
}

static void test_operators_new_and_delete_are_recorded_once_though_they_call_malloc_and_free(void **state)
{
	struct live l;

	record(&l, "alloc_cxx", "all", "none");
	same_counts(&l);
	live__free(&l);
}

static void test_with_alloc_large_small_calls_are_summed_and_large_ones_listed(void **state)
{
	u64 calls = 0, bytes = 0, frees = 0, want_calls = 0, want_bytes = 0;
	const struct live_event *e;
	struct live l;

	record(&l, "alloc", "large", "usdt:redframe:frame");
	live__each(&l, at, e, EV_ALLOC_SUM)
	{
		const struct ev_alloc_sum *s = (const void *)e->hdr;

		/* the marker after the work tells what is left; what came before the first is told there */
		if (s->since < (u64)live__num(&l, "window", 0, 0) || s->since > (u64)live__num(&l, "window", 0, 1))
			continue;
		calls += s->calls;
		bytes += s->bytes;
		frees += s->frees;
		assert_true(s->largest < 65536);
	}
	for (size_t i = 0; i < live__rows(&l, "alloc"); i++) {
		if (live__num(&l, "alloc", i, 1) >= 65536)
			continue;
		want_calls += (u64)live__num(&l, "alloc", i, 2);
		want_bytes += (u64)(live__num(&l, "alloc", i, 1) * live__num(&l, "alloc", i, 2));
	}
	assert_int_equal(calls, want_calls);
	assert_int_equal(bytes, want_bytes);
	assert_true(frees == 0 || frees == (u64)live__num(&l, "frees", 0, 0));
	assert_int_equal(count_allocs(&l, "malloc", 1 << 20), 1);
	assert_int_equal(count_in_window(&l, EV_ALLOC), 1);
	live__free(&l);
}

static void test_a_large_allocation_names_the_function_that_asked_for_it(void **state)
{
	const struct live_event *e;
	struct live l;
	size_t n = 0;

	record(&l, "alloc", "large", "none");
	live__each(&l, at, e, EV_ALLOC)
	{
		const struct ev_alloc *a = (const void *)e->hdr;
		u64 code = (u64)live__num(&l, "code", 0, 0);

		if (a->size != 1 << 20)
			continue;
		assert_in_range(a->caller, code, code + (u64)live__num(&l, "code", 0, 1));
		n++;
	}
	assert_int_equal(n, 1);
	live__free(&l);
}

static void same_call(const struct live *l, size_t i, const struct ev_mem_call *c)
{
	char sys[32], buf[32];

	live__word(l, "call", i, 0, sys, sizeof(sys));
	if (strcmp(syscall__name(c->sys, buf, sizeof(buf)), sys) || c->addr != (u64)live__num(l, "call", i, 1) ||
		c->len != (u64)live__num(l, "call", i, 2) || c->ret != live__num(l, "call", i, 3) ||
		c->was != (u64)live__num(l, "call", i, 4))
		fail_msg("call %zu, %s(%#llx, %lld) = %#llx, was recorded as %s(%#llx, %llu) = %#llx, was %#llx", i,
			sys, (unsigned long long)live__num(l, "call", i, 1), live__num(l, "call", i, 2),
			(unsigned long long)live__num(l, "call", i, 3), syscall__name(c->sys, buf, sizeof(buf)),
			(unsigned long long)c->addr, (unsigned long long)c->len, (unsigned long long)c->ret,
			(unsigned long long)c->was);
}

static void test_every_change_of_the_address_space_is_recorded_once_with_sizes_and_result(void **state)
{
	const struct live_event *e;
	struct live l;
	size_t i = 0;

	record(&l, "memory", "off", "none");
	live__each(&l, at, e, EV_MEM_CALL) if (i < live__rows(&l, "call")) same_call(&l, i++, (const void *)e->hdr);
	assert_int_equal(i, live__rows(&l, "call"));
	assert_int_equal(i, 50 * 5 + 2 + 40);
	live__free(&l);
}

static void test_with_alloc_off_no_call_of_the_allocator_is_probed(void **state)
{
	struct live l;

	record(&l, "alloc", "off", "none");
	assert_int_equal(live__count(&l, EV_ALLOC) + live__count(&l, EV_FREE) + live__count(&l, EV_ALLOC_SUM), 0);
	live__free(&l);
}

static const struct ev_heap *heap_of(struct live *l, const char *pieces)
{
	const struct live_event *e;
	const struct ev_heap *found = NULL;

	live__init(l);
	live__start(l, "heap", pieces, NULL);
	live__record(l, "--frame", "usdt:redframe:frame", NULL);
	live__run(l);
	live__each(l, at, e, EV_HEAP) found = found ?: (const void *)e->hdr;
	assert_non_null(found);
	return found;
}

static void test_what_was_free_when_the_heap_grew_is_as_the_allocator_itself_counts(void **state)
{
	struct live l;
	const struct ev_heap *h = heap_of(&l, "1500");

	assert_int_equal(h->size, live__num(&l, "heap", 0, 0));
	if (h->cut) {
		assert_true(h->free < (u64)live__num(&l, "heap", 0, 1));
		live__free(&l);
		print_message("this machine did not get through 1,500 blocks in the time for one look (%llu us)\n",
			(unsigned long long)h->took / 1000);
		skip();
	}
	assert_int_equal(h->free, live__num(&l, "heap", 0, 1));
	assert_int_equal(h->top, live__num(&l, "heap", 0, 2));
	assert_int_equal(h->largest, live__num(&l, "heap", 0, 3));
	assert_in_range(h->pieces, 1490, 1510);
	live__free(&l);
}

static void test_of_a_heap_with_too_many_free_pieces_what_was_counted_is_told_as_such(void **state)
{
	struct live l;
	const struct ev_heap *h = heap_of(&l, "20000");

	assert_int_equal(h->cut, 1);
	assert_in_range(h->pieces, 100, 4096); /* the time may be over before */
	assert_true(h->free < (u64)live__num(&l, "heap", 0, 1));
	assert_in_range(h->free, h->pieces * h->largest * 9 / 10, h->pieces * h->largest);
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_with_alloc_all_every_call_of_the_allocator_is_recorded_once),
	cmocka_unit_test(test_jemalloc_that_is_preloaded_is_covered),
	cmocka_unit_test(test_mimalloc_that_is_preloaded_is_covered),
	cmocka_unit_test(test_tcmalloc_that_is_preloaded_is_covered),
	cmocka_unit_test(test_an_allocator_that_the_program_exports_is_covered),
	cmocka_unit_test(test_an_allocator_that_the_program_keeps_to_itself_is_covered),
	cmocka_unit_test(test_the_c_librarys_allocator_within_a_static_program_is_covered),
	cmocka_unit_test(test_where_no_allocator_is_found_it_says_that_allocations_are_not_covered),
	cmocka_unit_test(test_operators_new_and_delete_are_recorded_once_though_they_call_malloc_and_free),
	cmocka_unit_test(test_with_alloc_large_small_calls_are_summed_and_large_ones_listed),
	cmocka_unit_test(test_a_large_allocation_names_the_function_that_asked_for_it),
	cmocka_unit_test(test_every_change_of_the_address_space_is_recorded_once_with_sizes_and_result),
	cmocka_unit_test(test_with_alloc_off_no_call_of_the_allocator_is_probed),
	cmocka_unit_test(test_what_was_free_when_the_heap_grew_is_as_the_allocator_itself_counts),
	cmocka_unit_test(test_of_a_heap_with_too_many_free_pieces_what_was_counted_is_told_as_such),
};
LIVE_MAIN(tests)
