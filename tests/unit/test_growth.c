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
	growth__record(&r->g, &e->hdr);
}

static void memory(struct run *r, u64 heap)
{
	struct ev_memory e = {
		.hdr = {.ts = r->ts += NSEC_PER_SEC, .kind = EV_MEMORY, .words = sizeof(e) / 8}, .heap = heap};

	growth__record(&r->g, &e.hdr);
}

static void allocate(struct run *r, u64 caller, u64 bytes)
{
	struct ev_alloc e = {
		.hdr = {.ts = r->ts, .kind = EV_ALLOC, .words = sizeof(e) / 8}, .size = bytes, .caller = caller};

	growth__record(&r->g, &e.hdr);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_scene_that_grows_with_each_visit_is_suspected_with_what_allocates),
		cmocka_unit_test(test_memory_that_goes_up_and_down_is_none),
		cmocka_unit_test(test_three_visits_say_nothing),
		cmocka_unit_test(test_without_scenes_five_minutes_count_as_a_visit),
	};

	return cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL);
}
