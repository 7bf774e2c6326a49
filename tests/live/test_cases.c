// SPDX-License-Identifier: GPL-2.0-only
/* Programs that do with their functions what kills or blinds tracers: every call is seen, and the program lives. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "live.h"

static void seen(struct live *l, size_t calls)
{
	const struct live_event *e;

	live__run(l);
	live__each(l, at, e, EV_FRAME) if (!model__thread(l->model, e->hdr->tid)->game)
		fail_msg("a call of thread %u, which is not the game's, was recorded", e->hdr->tid);
	assert_int_equal(live__count(l, EV_FRAME), calls);
	live__free(l);
}

static void check(const char *mode, const char *arg, size_t calls)
{
	struct live l;

	live__init(&l);
	live__start(&l, "cases", mode, arg, NULL);
	live__record(&l, "--frame", "uprobe:cases:job", NULL);
	seen(&l, calls);
}

static void test_fibers_that_leave_in_another_order_survive(void **state)
{
	check("fibers", "200", 200);
}
static void test_fibers_that_leave_on_another_thread_survive(void **state)
{
	check("migrate", "20", 20);
}
static void test_calls_left_by_longjmp_are_all_seen(void **state)
{
	check("longjmp", "200", 200);
}
static void test_calls_that_never_return_are_all_seen(void **state)
{
	check("abandon", "200", 200);
}
static void test_deep_recursion_is_seen_to_its_end(void **state)
{
	check("recursion", "5000", 5001);
}
static void test_a_game_that_may_only_write_survives(void **state)
{
	check("seccomp", "1000", 1000);
}

static void test_exceptions_pass_through_a_probed_function(void **state)
{
	struct live l;

	live__init(&l);
	live__start(&l, "exception", NULL);
	live__record(&l, "--frame", "uprobe:exception:job", NULL);
	seen(&l, 10);
}

/* Lets the target go on, which waits for the file `go`, once redframe says that it has the frames. */
static void let_go(struct live *l, const char *go)
{
	int fd;

	assert_true(live__await(l, "said", "redframe: frames: uprobe:", l->redframe));
	fd = open(go, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
}

static void test_a_library_that_comes_late_is_probed_and_a_forked_child_not_counted(void **state)
{
	char file[PATH_MAX], go[128];
	struct live l;

	snprintf(file, sizeof(file), "%s", live__target_path("plugin.so"));
	live__init(&l);
	snprintf(go, sizeof(go), "%s/go", l.dir);
	live__start(&l, "cases", "plugin", file, go, NULL);
	live__record(&l, "--frame", "uprobe:plugin.so:plug", NULL);
	assert_int_equal(write(l.go, "x", 1), 1);
	let_go(&l, go);
	seen(&l, 10);
}

/* A tracer cannot fault a page in: what it cannot read must not look like an empty text. */
static void test_a_text_on_an_untouched_page_is_read_or_said_to_be_unreadable(void **state)
{
	static const char text[] = "texture/hull.dds";
	const struct live_event *e;
	char file[128];
	struct live l;
	int fd, n = 0;

	live__init(&l);
	snprintf(file, sizeof(file), "%s/name.txt", l.dir);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
	close(fd);
	live__start(&l, "cases", "strings", file, NULL);
	live__record(&l, "--frame", "none", NULL);
	live__run(&l);
	live__each(&l, at, e, EV_MESSAGE)
	{
		if (strcmp(live__text(e->hdr), text) && (n % 2 || strcmp(live__text(e->hdr), "<unreadable>")))
			fail_msg("message %d is '%s'", n, live__text(e->hdr));
		n++;
	}
	assert_int_equal(n, 10);
	live__free(&l);
}

static void test_a_program_whose_file_was_replaced_is_probed_where_it_runs(void **state)
{
	char game[128], other[160];
	char *copy[] = {"cp", (char *)live__target_path("cases"), game, NULL};
	char *copy_other[] = {"cp", "/bin/true", other, NULL}, *move[] = {"mv", other, game, NULL};
	char *argv[] = {game, "ticks", "300", NULL};
	struct live l;

	live__init(&l);
	snprintf(game, sizeof(game), "%s/game", l.dir);
	snprintf(other, sizeof(other), "%s/other", l.dir);
	assert_int_equal(live__wait(live__spawn(&l, "said", copy)), 0);
	assert_int_equal(live__wait(live__spawn(&l, "said", copy_other)), 0);
	live__start_program(&l, argv);
	assert_true(live__await(&l, "truth", "ready\n", l.target));
	assert_int_equal(live__wait(live__spawn(&l, "said", move)), 0);
	live__record(&l, "--frame", "uprobe:game:job", NULL);
	snprintf(other, sizeof(other), "%s (deleted)", game);
	assert_true(live__await(&l, "said", other, l.redframe));
	seen(&l, 300);
}

/* ---- -- CMD ---- */

static void launch(struct live *l, const char *go, char *const extra[])
{
	char *argv[24] = {(char *)live__program(), "record", "-o", l->recording, "--no-trace"};
	int n = 5;

	for (; *extra; extra++)
		argv[n++] = *extra;
	l->redframe = live__spawn(l, "said", argv);
	if (go)
		let_go(l, go);
	live__end_redframe(l);
}

static void test_a_launched_program_is_traced_from_its_first_instruction(void **state)
{
	char path[PATH_MAX], go[128];
	char *extra[] = {"--frame", "uprobe:cases:job", "--", path, "launched", "300", go, NULL};
	const struct live_event *e;
	bool loader = false;
	struct live l;
	u32 game;

	snprintf(path, sizeof(path), "%s", live__target_path("cases"));
	live__init(&l);
	snprintf(go, sizeof(go), "%s/go", l.dir);
	launch(&l, go, extra);
	if (l.status)
		fail_msg("status %#x; it said: %s", l.status, l.said);
	assert_non_null(strstr(l.said, "exited with 7"));
	assert_non_null(strstr(l.said, "uid 0\n"));
	live__load(&l);
	live__no_loss(&l);
	game = model__game(l.model);
	assert_int_equal(live__count(&l, EV_FRAME), 300);
	live__each(&l, at, e, EV_FILE_META) loader |= e->hdr->tid == game && e->path && strstr(e->path, "libc.so");
	assert_true(loader); /* the loader opened libc before main() */
	live__free(&l);
}

static void test_a_launched_program_runs_as_the_invoking_user(void **state)
{
	char path[160], go[128];
	char *copy[] = {"cp", (char *)live__target_path("cases"), path, NULL};
	char *extra[] = {"--frame", "uprobe:cases:job", "--", path, "launched", "30", go, NULL};
	struct live l;

	live__init(&l);
	snprintf(path, sizeof(path), "%s/cases", l.dir);
	snprintf(go, sizeof(go), "%s/go", l.dir);
	assert_int_equal(live__wait(live__spawn(&l, "said", copy)), 0);
	setenv("SUDO_UID", "65534", 1);
	setenv("SUDO_GID", "65534", 1);
	launch(&l, go, extra);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	if (l.status)
		fail_msg("status %#x; it said: %s", l.status, l.said);
	assert_non_null(strstr(l.said, "uid 65534\n"));
	live__free(&l);
}

static void test_a_program_that_cannot_be_launched_ends_in_3_and_is_named(void **state)
{
	char *extra[] = {"--", "/no/such/program", NULL};
	struct live l;

	live__init(&l);
	launch(&l, NULL, extra);
	assert_int_equal(WEXITSTATUS(l.status), 3);
	assert_non_null(strstr(l.said, "/no/such/program"));
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_fibers_that_leave_in_another_order_survive),
	cmocka_unit_test(test_fibers_that_leave_on_another_thread_survive),
	cmocka_unit_test(test_calls_left_by_longjmp_are_all_seen),
	cmocka_unit_test(test_calls_that_never_return_are_all_seen),
	cmocka_unit_test(test_deep_recursion_is_seen_to_its_end),
	cmocka_unit_test(test_a_game_that_may_only_write_survives),
	cmocka_unit_test(test_exceptions_pass_through_a_probed_function),
	cmocka_unit_test(test_a_library_that_comes_late_is_probed_and_a_forked_child_not_counted),
	cmocka_unit_test(test_a_text_on_an_untouched_page_is_read_or_said_to_be_unreadable),
	cmocka_unit_test(test_a_program_whose_file_was_replaced_is_probed_where_it_runs),
	cmocka_unit_test(test_a_launched_program_is_traced_from_its_first_instruction),
	cmocka_unit_test(test_a_launched_program_runs_as_the_invoking_user),
	cmocka_unit_test(test_a_program_that_cannot_be_launched_ends_in_3_and_is_named),
};
LIVE_MAIN(tests)
