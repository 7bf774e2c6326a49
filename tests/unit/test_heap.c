// SPDX-License-Identifier: GPL-2.0-only
/* Where the bins of glibc's main arena are found, and where they are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heap.h"
#include "bpf_options.h"

#define AT    0x7f0000001000ull
#define HEAP  0x550000000000ull
#define BYTES 0x21000ull
#define FIRST 20 /* word at which the bins begin */
#define WORDS 512

static u64 words[WORDS];
static u64 *const bins = words + FIRST;

static void make_arena(void)
{
	memset(words, 0, sizeof(words));
	bins[HEAP_TOP / 8] = HEAP + 0x1000;
	bins[HEAP_SIZE / 8] = BYTES;
	for (u64 i = 0; i < HEAP_BINS; i++)
		bins[2 * i] = bins[2 * i + 1] = AT + 8 * FIRST + 16 * i - 16;
	for (int i = 40; i < 60; i++) /* these have blocks */
		bins[2 * i] = bins[2 * i + 1] = HEAP + 0x100 * (u64)i;
}

static u64 find(size_t n)
{
	return heap__find_in(words, n, AT, HEAP, HEAP + BYTES);
}

static void test_the_bins_of_an_arena_are_found(void **state)
{
	make_arena();
	assert_int_equal(find(WORDS), AT + 8 * FIRST);
}

static void test_what_is_no_arena_is_not_taken_for_one(void **state)
{
	make_arena();
	bins[100] = 0x1234; /* a list that leads elsewhere */
	assert_int_equal(find(WORDS), 0);
	make_arena();
	bins[HEAP_TOP / 8] = HEAP + BYTES; /* its end is not in the heap */
	assert_int_equal(find(WORDS), 0);
	make_arena();
	bins[HEAP_SIZE / 8] = BYTES + 4096; /* larger than the heap */
	assert_int_equal(find(WORDS), 0);
	memset(words, 0, sizeof(words)); /* not made yet */
	assert_int_equal(find(WORDS), 0);
}

static void test_an_arena_that_is_cut_off_is_not_read_beyond_the_end(void **state)
{
	u64 *copy;

	make_arena();
	for (size_t n = 0; n <= FIRST + HEAP_SIZE / 8; n++) { /* to the byte, for the sanitizer */
		copy = malloc(n * 8 + 1);
		assert_non_null(copy);
		memcpy(copy, words, n * 8);
		assert_int_equal(heap__find_in(copy, n, AT, HEAP, HEAP + BYTES), 0);
		free(copy);
	}
	assert_int_equal(find(FIRST + HEAP_SIZE / 8 + 1), AT + 8 * FIRST);
}

#ifndef __SANITIZE_ADDRESS__
/* The emulator of arm64 programs does not show it among the mappings; every kernel does. */
static void need_a_heap(void)
{
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");
	bool found = false;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		found |= strstr(line, "[heap]") != NULL;
	fclose(f);
	if (found)
		return;
	print_message("NOT TESTED: no [heap] among the mappings here\n");
	skip();
}
#endif

static void test_in_a_real_process_they_are_those_that_the_allocator_tells_of(void **state)
{
#ifdef __SANITIZE_ADDRESS__
	assert_int_equal(heap__find((u32)getpid()), 0); /* its allocator is another one */
#else
	u64 at;

	free(malloc(1000));
	need_a_heap();
	at = heap__find((u32)getpid());
	assert_true(at);
	assert_int_equal(*(u64 *)(at + HEAP_SIZE), mallinfo2().arena);
#endif
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_the_bins_of_an_arena_are_found),
	cmocka_unit_test(test_what_is_no_arena_is_not_taken_for_one),
	cmocka_unit_test(test_an_arena_that_is_cut_off_is_not_read_beyond_the_end),
	cmocka_unit_test(test_in_a_real_process_they_are_those_that_the_allocator_tells_of),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
