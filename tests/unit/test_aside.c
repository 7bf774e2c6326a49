// SPDX-License-Identifier: GPL-2.0-only
/* Work in a thread of its own, while this one goes on: probes are taken on and off so, while the rings are emptied. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>

#include "aside.h"

#define CALLS 3

struct seen {
	u32 calls;
	bool done;
	pthread_t worker, caller;
};

/* It never ends unless the caller goes on meanwhile. */
static void wait_for_calls(void *arg)
{
	struct seen *s = arg;

	s->worker = pthread_self();
	while (__atomic_load_n(&s->calls, __ATOMIC_ACQUIRE) < CALLS)
		usleep(100);
	s->done = true;
}

static void count(void *arg)
{
	struct seen *s = arg;

	s->caller = pthread_self();
	__atomic_add_fetch(&s->calls, 1, __ATOMIC_RELEASE);
}

static void test_the_caller_goes_on_until_the_work_is_done(void **state)
{
	struct seen s = {};

	aside__run(wait_for_calls, count, &s);
	assert_true(s.done);
	assert_true(s.calls >= CALLS);
	assert_true(pthread_equal(s.caller, pthread_self()));
	assert_false(pthread_equal(s.worker, pthread_self()));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_caller_goes_on_until_the_work_is_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
