// SPDX-License-Identifier: GPL-2.0-only
/* Functions at which the kernel must single-step: whether they get a probe depends on how often they are called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "../unit/build_fixture.h"
#include "live.h"
#include "sites.h"

static char why[4096];
static struct site_list list;

/* free() has no instruction that the kernel emulates */
static pid_t game(const char *name, const char *loop)
{
	char text[1024];

	snprintf(text, sizeof(text),
		"#include <stdlib.h>\n#include <unistd.h>\n"
		"__asm__(\".globl free\\n.type free,@function\\nfree: xor %%eax,%%eax\\nret\\n.size free,.-free\");\n"
		"int main(void) { write(1, \"x\", 1); for (;;) { %s } }\n",
		loop);
	return fixture__run(fixture__build(name, "-O1 -rdynamic -fno-builtin -fcf-protection=none", text), name);
}

static bool takes_free(pid_t pid)
{
	bool found = false;

	sites__free(&list);
	assert_true(sites__alloc(&list, (u32)pid, true, why, sizeof(why)) >= 3);
	fixture__kill(pid);
	for (int i = 0; i < list.n; i++) {
		found |= strstr(list.sites[i].label, ":free") != NULL;
		assert_int_equal(list.sites[i].desc.site, i);
		assert_false(list.sites[i].gone);
	}
	return found;
}

static void test_rarely_called_function_is_probed_though_it_is_stepped(void **state)
{
	assert_true(takes_free(game("rare", "free(0); usleep(10000);")));
	assert_null(strstr(why, "free"));
}

static void test_often_called_function_is_left_out_and_named(void **state)
{
	assert_false(takes_free(game("often", "free(0); if (rand() % 16 == 0) usleep(100);")));
	assert_non_null(strstr(why, "more than 1000 times a second"));
	assert_non_null(strstr(why, "often:free"));
}

static void test_functions_that_the_user_names_are_recorded_with_their_size(void **state)
{
	char path[256], *argv[] = {path, NULL};
	const struct live_event *e;
	size_t n = 0;
	struct live l;

	live__init(&l);
	snprintf(path, sizeof(path), "%s",
		fixture__build("engine", "-O1",
			"#include <stddef.h>\n#include <unistd.h>\n"
			"static char heap[64];\n"
			"__attribute__((noinline)) void *engine_alloc(int pool, size_t n) { __asm__ volatile(\"\"); "
			"return heap "
			"+ n % 8 + pool; }\n"
			"int main(void) { char b; write(1, \"ready\\n\", 6); read(0, &b, 1);\n"
			"for (int i = 0; i < 1000; i++) engine_alloc(1, 100000 + i);\n"
			"write(1, \"\\ndone\\n\", 6); while (read(0, &b, 1) == 1); return 0; }\n"));
	live__start_program(&l, argv);
	assert_true(live__await(&l, "truth", "ready\n", l.target));
	live__record(&l, "--frame", "none", "--alloc-fn", "engine_alloc:size=1", NULL);
	live__run(&l);
	live__each(&l, at, e, EV_ALLOC)
	{
		const struct ev_alloc *a = (const void *)e->hdr;

		if (a->fn == ALLOC_CUSTOM)
			assert_int_equal(a->size, 100000 + n++);
	}
	assert_int_equal(n, 1000);
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_rarely_called_function_is_probed_though_it_is_stepped),
	cmocka_unit_test(test_often_called_function_is_left_out_and_named),
	cmocka_unit_test(test_functions_that_the_user_names_are_recorded_with_their_size),
};

static int cleanup(void **state)
{
	sites__free(&list);
	return fixture__teardown(state);
}

static int alloc_tests(void)
{
	return cmocka_run_group_tests_name(__FILE__, tests, fixture__setup, cleanup);
}

int main(void)
{
	return live__main(__FILE__, live__cannot_trace(), alloc_tests);
}
