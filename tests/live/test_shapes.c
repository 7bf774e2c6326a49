// SPDX-License-Identifier: GPL-2.0-only
/* Programs of every shape that linkers make: each mark, function, text and semaphore is found where it is. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "json.h"
#include "live.h"
#include "maps.h"

#define FRAMES 300

static void expect_texts(const struct live *l)
{
	const struct live_event *e;
	size_t at = 0, messages = 0;

	e = live__next(l, &at, EV_LOCK_NAME);
	assert_non_null(e);
	assert_string_equal(live__text(e->hdr), "World::lock");
	assert_int_equal(((const struct ev_lock_name *)e->hdr)->addr, live__num(l, "lock", 0, 0));
	live__each(l, m, e, EV_MESSAGE) messages += !strcmp(live__text(e->hdr), "boss spawned");
	assert_int_equal(messages, 1);
}

static void start(struct live *l, const char *program)
{
	char *argv[] = {(char *)program, NULL};

	live__init(l);
	if (program[0] != '/') {
		live__start(l, program, NULL);
		return;
	}
	live__start_program(l, argv);
	assert_true(live__await(l, "truth", "ready\n", l->target));
}

static void marks(const char *program)
{
	const struct live_event *e;
	struct live l;
	u64 n = 0;

	start(&l, program);
	l.truth = live__read(&l, "truth");
	assert_int_equal(live__semaphore(&l, 0), 0);
	live__record(&l, "--alloc", "off", NULL);
	assert_in_range(
		live__semaphore(&l, 0), 1, 2); /* the kernel counts each mapping of the page, also those without code */
	live__go(&l);
	kill(l.redframe, SIGTERM);
	live__end_redframe(&l);
	assert_int_equal(live__semaphore(&l, 0), 0);
	live__end_target(&l);
	assert_int_equal(l.target_status | l.status, 0);
	live__load(&l);
	live__no_loss(&l);
	assert_string_equal(model__info(l.model, "frame.source"), "usdt:redframe:frame");
	live__each(&l, at, e, EV_FRAME) assert_int_equal(((const struct ev_frame *)e->hdr)->number, 1000 + n++);
	assert_int_equal(n, FRAMES);
	expect_texts(&l);
	live__free(&l);
}

static void calls(const char *program)
{
	char spec[64];
	struct live l;

	snprintf(spec, sizeof(spec), "uprobe:%s:present", path__base(program));
	start(&l, program);
	live__record(&l, "--frame", spec, "--alloc", "off", NULL);
	live__run(&l);
	assert_int_equal(live__count(&l, EV_FRAME), FRAMES);
	live__free(&l);
}

static void all_of(const char *program)
{
	marks(program);
	calls(program);
}

static void test_a_static_program_that_is_loaded_anywhere(void **state)
{
	all_of("frame_static_pie");
}
static void test_a_program_with_fixed_addresses(void **state)
{
	all_of("frame_fixed");
}
static void test_a_program_whose_code_lies_far_from_its_place_in_the_file(void **state)
{
	all_of("frame_far");
}
static void test_a_program_of_another_linker_whose_segments_share_pages_of_the_file(void **state)
{
	all_of("frame_shared_pages");
}

/* A name that nobody would choose, but a game may have. */
static void test_a_program_with_blanks_newlines_and_no_utf_8_in_its_path(void **state)
{
	char dir[64] = "/var/tmp/redframe-live.XXXXXX", path[128];
	char *copy[] = {"cp", (char *)live__target_path("frame"), path, NULL};
	char *argv[] = {(char *)live__program(), "info", NULL, "--json", NULL}, *text;
	struct json *j;
	struct live l;
	int status;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a b\n\"c\" \xff\xc3", dir);
	live__init(&l);
	assert_int_equal(live__wait(live__spawn(&l, "said", copy)), 0);
	live__free(&l);
	all_of(path);
	start(&l, path);
	live__record(&l, "--alloc", "off", NULL);
	live__run(&l);
	argv[2] = l.recording;
	text = live__output(&l, &status, argv);
	assert_int_equal(status, 0);
	j = json__parse(text);
	assert_non_null(j);
	assert_string_equal(path__base(json__text(json__get(j, "game"), "exe")), "a b\n\"c\" \xef\xbf\xbd\xef\xbf\xbd");
	json__free(j);
	free(text);
	live__free(&l);
	unlink(path);
	rmdir(dir);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_a_static_program_that_is_loaded_anywhere),
	cmocka_unit_test(test_a_program_with_fixed_addresses),
	cmocka_unit_test(test_a_program_whose_code_lies_far_from_its_place_in_the_file),
	cmocka_unit_test(test_a_program_of_another_linker_whose_segments_share_pages_of_the_file),
	cmocka_unit_test(test_a_program_with_blanks_newlines_and_no_utf_8_in_its_path),
};
LIVE_MAIN(tests)
