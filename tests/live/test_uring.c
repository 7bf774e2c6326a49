// SPDX-License-Identifier: GPL-2.0-only
/* io_uring: each request once when it is submitted and once when it is complete. */
#include "live.h"

static void own_path(const struct live *l, const struct live_event *e)
{
	assert_non_null(e->path);
	assert_int_equal(strncmp(e->path, l->dir, strlen(l->dir)), 0);
}

static void same_submissions(const struct live *l)
{
	const struct live_event *e;
	size_t i = 0;

	live__each(l, at, e, EV_URING_SUBMIT)
	{
		const struct ev_uring_submit *s = (const void *)e->hdr;

		assert_int_equal(s->user_data, live__num(l, "read", i, 0));
		assert_int_equal(s->offset, live__num(l, "read", i, 1));
		assert_int_equal(s->bytes, live__num(l, "read", i, 2));
		assert_int_equal(s->op, 22); /* IORING_OP_READ */
		if (i++ < 50)                /* of a registered file only the completion knows */
			own_path(l, e);
	}
	assert_int_equal(i, 100);
}

/* in any order */
static void same_completions(const struct live *l)
{
	const struct live_event *e;
	bool seen[100] = {};
	size_t n = 0;

	live__each(l, at, e, EV_URING_DONE)
	{
		const struct ev_uring_done *d = (const void *)e->hdr;
		size_t i = d->user_data - 7000;

		assert_in_range(d->user_data, 7000, 7099);
		assert_false(seen[i]);
		seen[i] = true;
		assert_int_equal(d->offset, live__num(l, "read", i, 1));
		assert_int_equal(d->ret, live__num(l, "read", i, 3));
		assert_true(d->dur > 0);
		own_path(l, e);
		n++;
	}
	assert_int_equal(n, 100);
}

static void test_every_request_is_recorded_when_submitted_and_when_complete(void **state)
{
	struct live l;

	live__init(&l);
	live__start(&l, "uring", l.dir, NULL);
	live__record(&l, "--frame", "none", NULL);
	live__run(&l);
	if (live__rows(&l, "none")) {
		live__free(&l);
		live__skip("this kernel gives no io_uring");
	}
	same_submissions(&l);
	same_completions(&l);
	live__free(&l);
}

static void test_after_a_close_through_io_uring_a_descriptor_is_another_file(void **state)
{
	const struct live_event *e;
	struct live l;
	size_t n = 0;

	live__init(&l);
	live__start(&l, "uring", l.dir, "close", NULL);
	live__record(&l, "--frame", "none", NULL);
	live__run(&l);
	if (live__rows(&l, "none")) {
		live__free(&l);
		live__skip("this kernel gives no io_uring");
	}
	live__each(&l, at, e, EV_FILE_READ)
	{
		if (((const struct ev_file_read *)e->hdr)->ret != 100)
			continue;
		own_path(&l, e);
		if (!strstr(e->path, n < 3 ? "/data.bin" : "/other.bin"))
			fail_msg("read %zu is of %s", n, e->path);
		n++;
	}
	assert_int_equal(n, 6);
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_every_request_is_recorded_when_submitted_and_when_complete),
	cmocka_unit_test(test_after_a_close_through_io_uring_a_descriptor_is_another_file),
};
LIVE_MAIN(tests)
