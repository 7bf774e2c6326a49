// SPDX-License-Identifier: GPL-2.0-only
/* -- CMD: the game is the process that presents frames, however CMD comes to it; and children of the game. */
#include <stdlib.h>
#include <sys/stat.h>

#include "live.h"
#include "../unit/build_fixture.h"

#define FRAMES 400

/* It presents through a made-up libGLX once that is probed, and ends with 7. It starts a child that reads a file. */
static const char game[] = AWAIT_PROBE
	"#include <dlfcn.h>\n#include <fcntl.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <sys/wait.h>\n"
	"#include <unistd.h>\n"
	"int glXSwapBuffers(void *a, long b);\n"
	"int main(void)\n{\n\tchar buf[4096];\n\tawait_probe(dlsym(RTLD_DEFAULT, \"glXSwapBuffers\"));\n"
	"\tfor (int i = 0; i < 400; i++) {\n\t\tglXSwapBuffers(0, 5);\n\t\tusleep(4000);\n"
	"\t\tif (i == 300 && !fork()) {\n\t\t\tint fd = open(\"/proc/self/exe\", O_RDONLY);\n"
	"\t\t\tfor (int k = 0; k < 50; k++) pread(fd, buf, 1000 + k, 0);\n\t\t\t_exit(0);\n\t\t}\n\t}\n"
	"\twait(NULL);\n\treturn 7;\n}\n";

static void record(struct live *l, const char *how, const char *option)
{
	char path[256], launcher[256],
		*argv[] = {(char *)live__program(), "record", "-o", l->recording, "--no-trace", (char *)option, "--",
			launcher, (char *)how, path, NULL};

	live__init(l);
	snprintf(path, sizeof(path), "%s", fixture__path("game"));
	snprintf(launcher, sizeof(launcher), "%s", live__target_path("launcher"));
	l->redframe = live__spawn(l, "said", argv);
	live__end_redframe(l);
	live__load(l);
	live__no_loss(l);
}

static size_t reads_of(const struct live *l, bool children)
{
	const struct live_event *e;
	size_t n = 0;

	live__each(l, at, e, EV_FILE_READ)
	{
		const struct ev_file_read *r = (const void *)e->hdr;
		const struct thread *t = model__find_thread(l->model, r->hdr.tid);

		if (r->ret >= 1000 && r->ret < 1050 && t && t->tgid != model__game(l->model))
			n += children ? t->recorded : 1;
	}
	return n;
}

/* every frame, from when the game is known to be one: half a second after the first one, where the machine has time */
static void expect_game(const struct live *l)
{
	const struct process *p = model__find_process(l->model, model__game(l->model));

	assert_non_null(p);
	assert_string_equal(p->name, "game");
	assert_string_equal(model__info(l->model, "game.name"), "game");
	assert_non_null(strstr(model__info(l->model, "game.exe"), "/game"));
	printf("%zu of %d frames\n", live__count(l, EV_FRAME), FRAMES);
	if (live__count(l, EV_FRAME) < FRAMES / 4 || live__count(l, EV_FRAME) > FRAMES)
		fail_msg("%zu frames; it said: %s", live__count(l, EV_FRAME), l->said);
	assert_int_equal(reads_of(l, false), 0); /* its child is not the game */
}

static void test_exec_chain_keeps_the_process_and_all_of_its_frames(void **state)
{
	struct live l;

	record(&l, "exec", "--force");
	expect_game(&l);
	assert_int_equal(live__count(&l, EV_FRAME), FRAMES);
	assert_non_null(strstr(l.said, "exited with 7"));
	live__free(&l);
}

static void test_launcher_that_waits_is_left_for_its_game(void **state)
{
	struct live l;

	record(&l, "stay", "--force");
	expect_game(&l);
	assert_non_null(strstr(l.said, "the game is game ("));
	assert_non_null(strstr(l.said, "exited with 7"));
	live__free(&l);
}

static void test_launchers_that_leave_do_not_end_the_recording(void **state)
{
	struct live l;

	record(&l, "leave", "--force");
	expect_game(&l);
	live__free(&l);
	record(&l, "twice", "--force");
	expect_game(&l);
	live__free(&l);
}

static void test_helper_without_frames_is_not_taken_for_the_game(void **state)
{
	struct live l;

	record(&l, "helper", "--force");
	expect_game(&l);
	live__free(&l);
}

static void test_children_are_recorded_and_labelled_when_asked_for(void **state)
{
	const struct live_event *e;
	char name[128] = "";
	struct live l;

	record(&l, "exec", "--children");
	assert_int_equal(live__count(&l, EV_FRAME), FRAMES);
	assert_int_equal(reads_of(&l, true), 50);
	live__each(&l, at, e, EV_FILE_READ)
	{
		const struct thread *t = model__find_thread(l.model, e->hdr->tid);

		if (t && t->recorded && !t->game)
			snprintf(name, sizeof(name), "%s", model__find_process(l.model, t->tgid)->name);
	}
	assert_string_equal(name, "game"); /* forked, not exec'ed: it bears the name, under an id of its own */
	live__free(&l);
}

static void test_children_there_already_are_recorded_when_asked_for(void **state)
{
	char path[256], *argv[] = {path, NULL};
	struct live l;

	live__init(&l);
	snprintf(path, sizeof(path), "%s", fixture__path("parent"));
	live__start_program(&l, argv);
	assert_true(live__await(&l, "truth", "ready\n", l.target));
	live__record(&l, "--children", "--frame", "none", "--events", "file", NULL);
	live__go(&l);
	live__end_target(&l);
	live__end_redframe(&l);
	live__load(&l);
	live__no_loss(&l);
	assert_int_equal(reads_of(&l, true), 50);
	live__free(&l);
}

static void test_command_that_ends_without_a_frame_ends_the_recording(void **state)
{
	char *argv[] = {(char *)live__program(), "record", "-o", NULL, "--no-trace", "--", "true", NULL};
	struct live l;

	live__init(&l);
	argv[3] = l.recording;
	l.redframe = live__spawn(&l, "said", argv);
	live__end_redframe(&l);
	assert_non_null(strstr(l.said, "true exited with 0"));
	live__load(&l); /* there was no time to look at it, and until it began it was a copy of redframe */
	assert_string_equal(model__info(l.model, "game.name"), "true");
	assert_null(strstr(model__info(l.model, "game.exe"), "redframe"));
	live__free(&l);
}

static int setup(void **state)
{
	char flags[512];

	if (fixture__setup(state))
		return -1;
	chmod(fixture_dir, 0755);
	fixture__build("libGLX.so.0", "-O1 -shared -fPIC -Wl,-soname,libGLX.so.0",
		"int glXSwapBuffers(void *a, long b) { __asm__ volatile(\"nop\"); return 1; }\n");
	snprintf(flags, sizeof(flags), "-O1 -Wl,--no-as-needed -Wl,-rpath,%s -Wl,%s/libGLX.so.0", fixture_dir,
		fixture_dir);
	fixture__build("game", flags, game);
	fixture__build("parent", "-O1",
		"#include <fcntl.h>\n#include <signal.h>\n#include <sys/wait.h>\n#include <unistd.h>\n"
		"int main(void)\n{\n\tchar b, buf[4096];\n\tint p[2];\n\tpipe(p);\n\tif (!fork()) {\n"
		"\t\tint fd = open(\"/proc/self/exe\", O_RDONLY);\n\t\tread(p[0], &b, 1);\n"
		"\t\tfor (int k = 0; k < 50; k++) pread(fd, buf, 1000 + k, 0);\n\t\t_exit(0);\n\t}\n"
		"\twrite(1, \"ready\\n\", 6);\n\tread(0, &b, 1);\n\twrite(p[1], \"x\", 1);\n\twait(0);\n"
		"\twrite(1, \"\\ndone\\n\", 6);\n\twhile (read(0, &b, 1) == 1);\n\treturn 0;\n}\n");
	return 0;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_exec_chain_keeps_the_process_and_all_of_its_frames),
	cmocka_unit_test(test_launcher_that_waits_is_left_for_its_game),
	cmocka_unit_test(test_launchers_that_leave_do_not_end_the_recording),
	cmocka_unit_test(test_helper_without_frames_is_not_taken_for_the_game),
	cmocka_unit_test(test_children_are_recorded_and_labelled_when_asked_for),
	cmocka_unit_test(test_children_there_already_are_recorded_when_asked_for),
	cmocka_unit_test(test_command_that_ends_without_a_frame_ends_the_recording),
};

static int launch_tests(void)
{
	return cmocka_run_group_tests_name(__FILE__, tests, setup, fixture__teardown);
}

int main(void)
{
	return live__main(__FILE__, live__cannot_trace(), launch_tests);
}
