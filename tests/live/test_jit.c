// SPDX-License-Identifier: GPL-2.0-only
/* Code made at run time has the names that the game's perf map gave it at that time. */
#include "live.h"
#include "maps.h"
#include "names.h"
#include "where.h"

struct chain {
	char text[1024];
	bool begun;
};

/* from nap on; the C library's functions are not compared */
static bool add(const struct where_step *s, void *arg)
{
	struct chain *c = arg;
	const char *path = s->map && s->map->path ? s->map->path : "";
	size_t len = strlen(c->text);
	char name[256];

	where__name(s, name, sizeof(name));
	if (strstr(path, ".so") || !strncmp(name, "_start", 6))
		return false;
	snprintf(c->text + len, sizeof(c->text) - len, "%s%s", len ? "<" : "", name);
	return false;
}

static void chain_between(const struct live *l, u64 begin, u64 end, char *text, size_t size)
{
	const struct live_event *e;
	struct chain c = {};

	live__each(l, at, e, EV_STACK)
	{
		const struct ev_stack *s = (const struct ev_stack *)e->hdr;

		if (s->reason == STACK_WAIT && e->hdr->ts >= begin && e->hdr->ts <= end)
			where__each(l->model, s->chain, add, &c);
	}
	snprintf(text, size, "%s", c.text);
}

static void record(struct live *l, const char *arg)
{
	live__init(l);
	live__start(l, "jit", l->dir, arg, NULL);
	live__record(l, "--frame", "none", "--events", "syscall,sched,sample", NULL);
	live__run(l);
	assert_int_equal(live__rows(l, "chain"), 2);
}

static void test_call_chains_have_the_names_of_their_time(void **state)
{
	char want[256], text[1024];
	struct live l;

	record(&l, NULL);
	for (size_t i = 0; i < 2; i++) {
		live__word(&l, "chain", i, 3, want, sizeof(want));
		chain_between(
			&l, (u64)live__num(&l, "chain", i, 1), (u64)live__num(&l, "chain", i, 2), text, sizeof(text));
		if (strcmp(text, want))
			fail_msg("the chain is\n%s\nand was recorded as\n%s", want, text);
	}
	live__free(&l);
}

static void test_samples_in_made_code_have_its_name(void **state)
{
	const struct live_event *e;
	u32 inside = 0, named = 0;
	struct live l;
	u64 code;

	record(&l, NULL);
	code = (u64)live__num(&l, "spin", 0, 0);
	live__each(&l, at, e, EV_SAMPLE)
	{
		const struct ev_sample *s = (const struct ev_sample *)e->hdr;
		char name[64];

		if (s->ip < code || s->ip >= code + 64)
			continue;
		inside++;
		named += code__name(l.model, code__at(l.model, s->ip, e->hdr->ts), name, sizeof(name)) &&
			 !strcmp(name, "Spin");
	}
	if (inside < 20 || named != inside)
		fail_msg("%u of %u samples have the name", named, inside);
	live__free(&l);
}

static void test_a_map_that_is_a_link_is_left_alone_and_said_so(void **state)
{
	const struct live_event *e;
	struct live l;
	bool said = false;

	record(&l, "link");
	assert_int_equal(live__count(&l, EV_JIT_SYMBOL), 0);
	live__each(&l, at, e, EV_NOTE) said |= !!strstr(live__text(e->hdr), "it is a symbolic link");
	assert_true(said);
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_call_chains_have_the_names_of_their_time),
	cmocka_unit_test(test_samples_in_made_code_have_its_name),
	cmocka_unit_test(test_a_map_that_is_a_link_is_left_alone_and_said_so),
};
LIVE_MAIN(tests)
