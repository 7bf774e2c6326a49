// SPDX-License-Identifier: GPL-2.0-only
/* redframe probe: of a running game, of all that look like one, and of a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "../unit/build_fixture.h"
#include "live.h"

static struct live l;

static char *probe(const char *option, const char *target, int want)
{
	char *argv[] = {(char *)live__program(), "probe", (char *)option, (char *)target, NULL};
	int status;
	char *said = live__output(&l, &status, argv);

	if (!WIFEXITED(status) || WEXITSTATUS(status) != want)
		fail_msg("status %#x; it said: %s", status, said);
	return said;
}

static void says(const char *said, const char *text)
{
	if (!strstr(said, text))
		fail_msg("'%s' is not among what it said: %s", text, said);
}

static const char game[] = "#include <stdlib.h>\n#include <unistd.h>\nvoid glXSwapBuffers(void *a, long b);\n"
			   "void eglSwapBuffers(void *a, void *b);\nvoid *volatile p;\n"
			   "int main(int c, char **v) { p = malloc(9); write(1, \"x\", 1);\n"
			   "\tfor (;;) { glXSwapBuffers(0, 1); usleep(5000); if (c > 9) eglSwapBuffers(0, 0); } }\n";

static void build_game(const char *name)
{
	char flags[512];

	fixture__build("libGLX.so.0", "-O1 -shared -fPIC -Wl,-soname,libGLX.so.0",
		"void glXSwapBuffers(void *a, long b) { __asm__ volatile(\"\" ::: \"memory\"); }\n");
	fixture__build("libEGL.so.1", "-O1 -shared -fPIC -Wl,-soname,libEGL.so.1",
		"void eglSwapBuffers(void *a, void *b) { __asm__ volatile(\"\" ::: \"memory\"); }\n");
	snprintf(flags, sizeof(flags),
		"-O1 -fno-builtin -Wl,--no-as-needed -Wl,-rpath,%s -Wl,%s/libGLX.so.0 -Wl,%s/libEGL.so.1", fixture_dir,
		fixture_dir, fixture_dir);
	fixture__build(name, flags, game);
}

static void test_a_running_game_is_shown_with_what_record_takes_and_why(void **state)
{
	char number[16], *said;
	pid_t pid;

	build_game("probed");
	pid = fixture__run(fixture__path("probed"), "probed");
	snprintf(number, sizeof(number), "%d", pid);
	said = probe("-p", number, 0);
	fixture__kill(pid);
	says(said, "  probed\n");
	says(said, "threads      1\n");
	says(said, "container    no\n");
	says(said, "frames       uprobe:libGLX.so.0:glXSwapBuffers\n");
	says(said, "libEGL.so.1:eglSwapBuffers fired 0 times; libGLX.so.0:glXSwapBuffers fired ");
	says(said, "  not taken  uprobe:libEGL.so.1:eglSwapBuffers");
	says(said, "allocator    uprobe:libc.so.6:malloc");
	free(said);
}

static void test_without_a_target_all_that_look_like_games_are_listed_with_the_choice(void **state)
{
	char row[64], *said, *at;
	pid_t pid;

	build_game("listed");
	pid = fixture__run(fixture__path("listed"), "listed");
	said = probe(NULL, NULL, 0);
	fixture__kill(pid);
	snprintf(row, sizeof(row), "%8u  listed ", pid);
	says(said, row);
	at = strstr(said, row);
	says(at, "uprobe:libEGL.so.1:eglSwapBuffers, uprobe:libGLX.so.0:glXSwapBuffers; allocator libc.so.6\n");
	says(at, "record takes uprobe:libGLX.so.0:glXSwapBuffers: libEGL.so.1:eglSwapBuffers fired 0 times");
	free(said);
}

static void test_of_a_file_the_markers_present_functions_and_allocators_are_shown_with_their_places(void **state)
{
	char *said = probe(live__target_path("frame"), NULL, 0);

	says(said, "redframe:frame  1 site with a semaphore in frame  arguments 8@%r");
	says(said, "engine:swap  1 site in frame  arguments -8@%r");
	says(said, "allocator    none in this file");
	free(said);
	build_game("unused");
	said = probe(fixture__path("libGLX.so.0"), NULL, 0);
	says(said, "presents     uprobe:libGLX.so.0:glXSwapBuffers");
	says(said, "a call)\n"); /* what the chosen place costs */
	says(said, "usdt         none");
	free(said);
	said = probe("/lib/x86_64-linux-gnu/libc.so.6", NULL, 0);
	says(said, "uprobe:libc.so.6:free+0x3  (emulated: about 0.5 µs a call)");
	free(said);
}

static void test_what_is_no_program_and_what_is_not_there_end_in_3_with_the_reason(void **state)
{
	char *said;

	fixture__write("text", "#!/bin/sh\n", 10);
	said = probe(fixture__path("text"), NULL, 3);
	says(said, "no ELF file");
	free(said);
	said = probe("/no/such/file", NULL, 3);
	says(said, "No such file");
	free(said);
	said = probe("-p", "2147483000", 3);
	says(said, "2147483000");
	free(said);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_a_running_game_is_shown_with_what_record_takes_and_why),
	cmocka_unit_test(test_without_a_target_all_that_look_like_games_are_listed_with_the_choice),
	cmocka_unit_test(test_of_a_file_the_markers_present_functions_and_allocators_are_shown_with_their_places),
	cmocka_unit_test(test_what_is_no_program_and_what_is_not_there_end_in_3_with_the_reason),
};

static int setup(void **state)
{
	live__init(&l);
	return fixture__setup(state);
}

static int cleanup(void **state)
{
	live__free(&l);
	return fixture__teardown(state);
}

static int probe_tests(void)
{
	return cmocka_run_group_tests_name(__FILE__, tests, setup, cleanup);
}

int main(void)
{
	return live__main(__FILE__, live__cannot_trace(), probe_tests);
}
