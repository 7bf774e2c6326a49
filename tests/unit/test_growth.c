// SPDX-License-Identifier: GPL-2.0-only
/* Which growth of memory is a suspected leak, and which is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "growth.h"
#include "model.h"

#define MIB (1ULL << 20)

struct run {
	struct growth g;
	struct model *m;
	u64 ts;
};

static struct run *begin(void)
{
	struct run *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->m = model__new();
	return r;
}

static void end(struct run *r)
{
	model__free(r->m);
	free(r);
}

static void scene(struct run *r, const char *name)
{
	u64 rec[16] = {0};
	struct ev_scene *e = (struct ev_scene *)rec;

	e->hdr = (struct ev_hdr){.ts = r->ts, .kind = EV_SCENE, .words = 8};
	memcpy(e->name, name, strlen(name));
	growth__record(&r->g, r->m, &e->hdr);
}

static void memory(struct run *r, u64 heap)
{
	struct ev_memory e = {
		.hdr = {.ts = r->ts += NSEC_PER_SEC, .kind = EV_MEMORY, .words = sizeof(e) / 8}, .heap = heap};

	growth__record(&r->g, r->m, &e.hdr);
}

static void allocate(struct run *r, u64 caller, u64 bytes)
{
	struct ev_alloc e = {
		.hdr = {.ts = r->ts, .kind = EV_ALLOC, .words = sizeof(e) / 8}, .size = bytes, .caller = caller};

	growth__record(&r->g, r->m, &e.hdr);
}

static void sample(struct run *r, u64 caller, u64 size, u64 addr)
{
	struct ev_alloc_sample e = {.hdr = {.ts = ++r->ts, .kind = EV_ALLOC_SAMPLE, .words = sizeof(e) / 8},
		.size = size,
		.period = 1 << 20,
		.caller = caller,
		.addr = addr};

	growth__record(&r->g, r->m, &e.hdr);
}

static void release(struct run *r, u64 addr)
{
	struct ev_free e = {.hdr = {.ts = ++r->ts, .kind = EV_FREE, .words = sizeof(e) / 8}, .addr = addr};

	growth__record(&r->g, r->m, &e.hdr);
}

static u32 suspects(struct run *r, char *text, size_t size)
{
	u32 n = 0;

	while (growth__suspect(&r->g, r->m, n, text, size))
		n++;
	return n;
}

static void test_a_scene_that_grows_with_each_visit_is_suspected_with_what_allocates(void **state)
{
	struct run *r = begin();
	char text[600] = "";

	for (u64 visit = 0; visit < 6; visit++) {
		scene(r, "harbour");
		allocate(r, 0x401234, 5 * MIB);
		allocate(r, 0x409999, 100 << 10);
		memory(r, 200 * MIB + visit * 5 * MIB);
		scene(r, "menu");
		memory(r, 100 * MIB);
	}
	assert_int_equal(suspects(r, text, sizeof(text)), 1);
	assert_non_null(
		strstr(text, "in scene harbour: memory grew by 5.0 MiB with each visit, 5 times, from 200.0 MiB to "
			     "225.0 MiB"));
	assert_non_null(strstr(text, ": 0x401234 30.0 MiB, 0x409999"));
	end(r);
}

static void test_memory_that_goes_up_and_down_is_none(void **state)
{
	struct run *r = begin();
	char text[600];

	for (u64 visit = 0; visit < 20; visit++) {
		scene(r, "harbour");
		memory(r, 200 * MIB + visit % 7 * 10 * MIB + visit * MIB); /* a garbage collector */
		scene(r, "menu");
		memory(r, 100 * MIB + (visit > 2 ? 50 * MIB : 0)); /* a cache that fills once */
	}
	assert_int_equal(suspects(r, text, sizeof(text)), 0);
	end(r);
}

static void test_three_visits_say_nothing(void **state)
{
	struct run *r = begin();
	char text[600];

	for (u64 visit = 0; visit < 3; visit++) {
		scene(r, "harbour");
		memory(r, 200 * MIB + visit * 50 * MIB);
		scene(r, "menu");
	}
	assert_int_equal(suspects(r, text, sizeof(text)), 0);
	end(r);
}

static void test_without_scenes_five_minutes_count_as_a_visit(void **state)
{
	struct run *r = begin();
	char text[600] = "";

	for (u64 s = 0; s < 7 * 300 + 10; s++)
		memory(r, 100 * MIB + s * (32 << 10));
	assert_int_equal(suspects(r, text, sizeof(text)), 1);
	assert_non_null(strstr(text, "with each five minutes"));
	end(r);
}

static void grow(struct run *r)
{
	for (u64 visit = 0; visit < 6; visit++) {
		scene(r, "harbour");
		memory(r, 200 * MIB + visit * 5 * MIB);
		scene(r, "menu");
		memory(r, 100 * MIB);
	}
}

static void test_small_blocks_count_as_what_their_samples_stand_for(void **state)
{
	struct run *r = begin();
	char text[600] = "";

	for (u64 i = 0; i < 40; i++)
		sample(r, 0x401234, 64, 0);
	for (u64 i = 0; i < 3; i++) { /* listed one by one as well: exactly this is allocated */
		sample(r, 0x409999, 100 << 10, 0);
		allocate(r, 0x409999, 100 << 10);
	}
	grow(r);
	assert_int_equal(suspects(r, text, sizeof(text)), 1);
	assert_non_null(strstr(text, "; what allocated most (frees are not matched): 0x401234 40.0 MiB (estimated from "
				     "40 samples), 0x409999 300 KiB"));
	assert_null(strstr(strstr(text, "0x409999"), "estimated"));
	end(r);
}

static void test_what_is_freed_is_not_held_against_who_allocates_most(void **state)
{
	struct run *r = begin();
	char text[600] = "";

	for (u64 i = 0; i < 1000; i++) {
		sample(r, 0x409999, 64, 0x7f0000000000 + i % 7 * 64);
		release(r, 0x7f0000000000 + i % 7 * 64);
		if (i % 50 == 0)
			sample(r, 0x401234, 64, 0x600000000000 + i * 64);
		release(r, 0x500000000000 + i); /* which was not sampled */
	}
	grow(r);
	suspects(r, text, sizeof(text));
	assert_non_null(strstr(text, "; what holds most: 0x401234 20.0 MiB (estimated from 20 samples)"));
	assert_null(strstr(text, "0x409999"));
	end(r);
}

static void test_allocations_that_were_left_out_are_said_to_be(void **state)
{
	struct ev_lost lost = {.hdr = {.ts = 1, .kind = EV_LOST, .words = sizeof(lost) / 8}, .class = CLASS_ALLOC};
	struct run *r = begin();
	char text[600] = "";

	sample(r, 0x401234, 64, 0);
	growth__record(&r->g, r->m, &lost.hdr);
	grow(r);
	suspects(r, text, sizeof(text));
	assert_non_null(strstr(text, ", as far as allocations were recorded: 0x401234"));
	end(r);
}

/* against a plain list */
static void test_blocks_are_found_until_they_are_taken(void **state)
{
	enum { ADDRESSES = 3 * BLOCKS_SLOTS };
	struct blocks *b = calloc(1, sizeof(*b));
	bool *there = calloc(ADDRESSES, sizeof(*there));
	struct block block;
	u32 n = 0;

	srand(3);
	for (u32 i = 0; i < 20 * BLOCKS_SLOTS; i++) {
		u32 at = (u32)rand() % ADDRESSES;

		if (rand() % 2) {
			bool room = blocks__add(b, &(struct block){16 + 16 * (u64)at, at, 1});

			assert_int_equal(room, there[at] || n < BLOCKS_MAX);
			n += room && !there[at];
			there[at] |= room;
		} else {
			assert_int_equal(blocks__take(b, 16 + 16 * (u64)at, &block), there[at]);
			assert_true(!there[at] || block.caller == at);
			n -= there[at];
			there[at] = false;
		}
		assert_int_equal(b->n, n);
	}
	assert_true(n > BLOCKS_MAX / 2);
	free(there);
	free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_scene_that_grows_with_each_visit_is_suspected_with_what_allocates),
		cmocka_unit_test(test_memory_that_goes_up_and_down_is_none),
		cmocka_unit_test(test_three_visits_say_nothing),
		cmocka_unit_test(test_without_scenes_five_minutes_count_as_a_visit),
		cmocka_unit_test(test_small_blocks_count_as_what_their_samples_stand_for),
		cmocka_unit_test(test_what_is_freed_is_not_held_against_who_allocates_most),
		cmocka_unit_test(test_allocations_that_were_left_out_are_said_to_be),
		cmocka_unit_test(test_blocks_are_found_until_they_are_taken),
	};

	return cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL);
}
