// SPDX-License-Identifier: GPL-2.0-only
/* The reading side of a ring: in order, over the ends of chunks and of the ring, and no further than what is complete.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ring.h"

#define CHUNK  4096u
#define CHUNKS 4u
#define SIZE   (CHUNK * CHUNKS)

struct fixture {
	struct ring_ends ends;
	struct ring ring;
	u64 told[4096]; /* the first words of the records that were taken */
	size_t bytes[4096];
	u32 n;
	int answer;
};

static int take(void *arg, void *record, size_t bytes)
{
	struct fixture *f = arg;

	f->told[f->n] = *(u64 *)record;
	f->bytes[f->n++] = bytes;
	return f->answer;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->ring = (struct ring){.ends = &f->ends,
		.chunks = calloc(CHUNKS, ring__stride(CHUNK)),
		.chunk_bytes = CHUNK,
		.n_chunks = CHUNKS};
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	free(f->ring.chunks);
	free(f);
	return 0;
}

/* As bpf/ring.bpf.h: NULL where there is no room. */
static u64 *reserve(struct fixture *f, u32 bytes)
{
	u64 head = f->ends.head;

	if (head + bytes + RING_WORD - f->ends.tail > SIZE)
		return NULL;
	f->ends.head += bytes + RING_WORD;
	return (u64 *)(f->ring.chunks + head / CHUNK % CHUNKS * ring__stride(CHUNK) + head % CHUNK + RING_WORD);
}

static void complete(u64 *record, u32 bytes, u64 flags)
{
	record[-1] = (bytes + RING_WORD) | flags;
}

static bool put(struct fixture *f, u64 value, u32 bytes)
{
	u64 *r = reserve(f, bytes);

	if (!r)
		return false;
	memset(r, 0xff, bytes); /* as hostile as it gets: what stays behind must not look like a record */
	*r = value;
	complete(r, bytes, 0);
	return true;
}

static void test_records_of_all_lengths_come_in_order(void **state)
{
	static const u32 lengths[] = {16, 24, 40, 272, 1032, 4096, 8192};
	struct fixture *f = *state;
	u64 sent = 0;

	for (u32 round = 0; round < 300; round++) {
		u64 first = sent;

		while (put(f, sent, lengths[(sent * 5 + round) % ARRAY_SIZE(lengths)]))
			sent++;
		f->n = 0;
		assert_int_equal(ring__consume(&f->ring, take, f), 0);
		assert_int_equal(f->n, sent - first);
		for (u32 i = 0; i < f->n; i++) {
			assert_int_equal(f->told[i], first + i);
			assert_int_equal(f->bytes[i], lengths[((first + i) * 5 + round) % ARRAY_SIZE(lengths)]);
		}
		assert_int_equal(f->ends.head, f->ends.tail);
	}
	assert_true(f->ends.head > 100 * SIZE);
}

static void test_it_leaves_nothing_but_zeroes(void **state)
{
	struct fixture *f = *state;

	for (u64 i = 0; put(f, i, 104); i++)
		;
	assert_int_equal(ring__consume(&f->ring, take, f), 0);
	for (size_t i = 0; i < CHUNKS * ring__stride(CHUNK); i++)
		assert_int_equal(f->ring.chunks[i], 0);
}

static void test_it_stops_at_one_that_is_not_complete(void **state)
{
	struct fixture *f = *state;
	u64 *r;

	put(f, 1, 24);
	r = reserve(f, 40);
	put(f, 3, 24);
	assert_int_equal(ring__consume(&f->ring, take, f), 0);
	assert_int_equal(f->n, 1);
	assert_int_equal(ring__unread(&f->ring), 40 + 24 + 2 * RING_WORD);
	*r = 2;
	complete(r, 40, 0);
	assert_int_equal(ring__consume(&f->ring, take, f), 0);
	assert_int_equal(f->n, 3);
	assert_int_equal(f->told[1], 2);
	assert_int_equal(f->told[2], 3);
	assert_int_equal(ring__unread(&f->ring), 0);
}

static void test_what_was_dropped_is_passed_over(void **state)
{
	struct fixture *f = *state;

	put(f, 1, 24);
	complete(reserve(f, 264), 264, RING_DROPPED);
	put(f, 3, 24);
	assert_int_equal(ring__consume(&f->ring, take, f), 0);
	assert_int_equal(f->n, 2);
	assert_int_equal(f->told[1], 3);
}

static void test_an_error_ends_the_pass_and_keeps_the_rest(void **state)
{
	struct fixture *f = *state;

	for (u64 i = 0; i < 3; i++)
		put(f, i, 24);
	f->answer = -ENOSPC;
	assert_int_equal(ring__consume(&f->ring, take, f), -ENOSPC);
	assert_int_equal(f->n, 1);
	f->answer = 0;
	assert_int_equal(ring__consume(&f->ring, take, f), 0);
	assert_int_equal(f->n, 3);
	assert_int_equal(f->told[2], 2);
}

static void test_whoever_takes_may_leave_a_record(void **state)
{
	struct fixture *f = *state;

	put(f, 0, 24);
	put(f, 1, 24);
	f->answer = 1;
	assert_int_equal(ring__consume(&f->ring, take, f), 1);
	assert_int_equal(f->n, 1);
	assert_int_equal(ring__unread(&f->ring), 2 * (24 + RING_WORD));
	f->answer = 0;
	assert_int_equal(ring__consume(&f->ring, take, f), 0);
	assert_int_equal(f->n, 3);
	assert_int_equal(f->told[1], 0);
	assert_int_equal(f->told[2], 1);
}

static void test_a_word_that_cannot_be_is_refused(void **state)
{
	static const u64 words[] = {1, RING_WORD + 4, RING_TAIL + 8, 64 + RING_WORD, UINT32_MAX};
	struct fixture *f = *state;

	for (u32 i = 0; i < ARRAY_SIZE(words); i++) {
		f->ends = (struct ring_ends){.head = 32};
		*(u64 *)f->ring.chunks = words[i];
		assert_int_equal(ring__consume(&f->ring, take, f), -EPROTO);
		assert_int_equal(f->ends.tail, 0);
	}
	assert_int_equal(f->n, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_records_of_all_lengths_come_in_order),
		TEST(test_it_leaves_nothing_but_zeroes),
		TEST(test_it_stops_at_one_that_is_not_complete),
		TEST(test_what_was_dropped_is_passed_over),
		TEST(test_an_error_ends_the_pass_and_keeps_the_rest),
		TEST(test_whoever_takes_may_leave_a_record),
		TEST(test_a_word_that_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
