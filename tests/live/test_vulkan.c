// SPDX-License-Identifier: GPL-2.0-only
/* Vulkan frames on the running kernel: a made-up loader and drivers with exact numbers of presents, and vkcube. */
#include <stdlib.h>
#include <sys/stat.h>

#include "live.h"
#include "../unit/vulkan_fixture.h"

#define WAIT_FOR_GO "\tchar byte;\n\tread(0, &byte, 1);\n"
#define DONE        "\twrite(1, \"\\ndone\\n\", 6);\n\twhile (read(0, &byte, 1) == 1);\n\treturn 0;\n"

static void start(struct live *l, const char *name, const char *body, const char *then)
{
	char text[2048], path[256], *argv[] = {path, NULL};

	live__init(l);
	snprintf(text, sizeof(text), WAIT_FOR_GO "%s" DONE, then);
	snprintf(path, sizeof(path), "%s", vulkan__game(name, body, text));
	live__start_program(l, argv);
	assert_true(live__await(l, "truth", "ready\n", l->target));
}

/* The game goes on to where it waits a second time; returns once redframe has said that. */
static void go_and_await(struct live *l, const char *said)
{
	assert_int_equal(write(l->go, "g", 1), 1);
	assert_true(live__await(l, "said", said, l->redframe));
}

/* marks of the swapchain, and finished frames of its stream */
static void expect_stream(const struct live *l, u64 chain, size_t marks)
{
	const struct live_event *e;
	const struct frame_stream *s;
	size_t n = 0;

	live__each(l, at, e, EV_FRAME) n += ((const struct ev_frame *)e->hdr)->stream == chain;
	if (n != marks)
		fail_msg("%zu marks of swapchain %#llx instead of %zu; it said: %s", n, (unsigned long long)chain,
			marks, l->said);
	for (u32 i = 0; (s = model__stream(l->model, i)); i++)
		if (s->stream == chain) {
			assert_int_equal(s->count, marks - 1);
			assert_int_equal(s->doubled, 0);
			return;
		}
	fail_msg("no stream %#llx", (unsigned long long)chain);
}

static void test_presents_through_a_pointer_are_each_one_frame_of_their_swapchain(void **state)
{
	struct live l;

	start(&l, "presents", "d = device(a_core(), a_present());",
		"for (int i = 0; i < 300; i++) { show(d, 0); usleep(3000); if (i % 3 == 0) show(d, 1); }\n");
	live__record(&l, NULL);
	live__run(&l);
	assert_memory_equal(model__info(l.model, "frame.source"), "vulkan:libdriver_a.so+0x", 24);
	expect_stream(&l, 0x5c0001, 300);
	expect_stream(&l, 0x5c0002, 100);
	assert_int_equal(live__count(&l, EV_FRAME), 400);
	live__free(&l);
}

static void test_a_layer_and_its_driver_are_one_frame_a_present(void **state)
{
	struct live l;

	/* a second device goes past the layer: both functions are probed, and the layer's presents pass both */
	start(&l, "layers", "d = device(a_core(), layer_present(a_present())); e = device(a_core(), a_present());",
		"for (int i = 0; i < 200; i++) { show(d, 0); usleep(4000); show(e, 1); }\n");
	live__record(&l, NULL);
	live__go(&l);
	live__end_target(&l);
	live__end_redframe(&l);
	live__load(&l);
	live__no_loss(&l);
	assert_int_equal(live__count(&l, EV_FRAME), 600);
	assert_int_equal(model__stats(l.model)->frames, 199 + 199);
	live__free(&l);
}

static void test_a_device_made_later_presents_as_well(void **state)
{
	struct live l;

	start(&l, "later", "d = device(a_core(), a_present()); e = 0;",
		"for (int i = 0; i < 100; i++) { show(d, 0); usleep(3000); }\n"
		"e = device(b_core(), b_present()); read(0, &byte, 1);\n"
		"for (int i = 0; i < 150; i++) { show(e, 1); usleep(3000); }\n");
	live__record(&l, NULL);
	go_and_await(&l, "frames: also vulkan:libdriver_b");
	live__run(&l);
	expect_stream(&l, 0x5c0001, 100);
	expect_stream(&l, 0x5c0002, 150);
	assert_non_null(strstr(l.said, "frames: also vulkan:libdriver_b.so"));
	live__free(&l);
}

static void test_a_game_without_a_device_yet_gets_its_frames_once_it_has_one(void **state)
{
	struct live l;

	start(&l, "loading", "d = 0;",
		"usleep(300000); d = device(a_core(), a_present()); read(0, &byte, 1);\n"
		"for (int i = 0; i < 120; i++) { show(d, 2); usleep(3000); }\n");
	live__record(&l, NULL);
	assert_true(live__await(&l, "said", "no Vulkan device (yet)", l.redframe));
	go_and_await(&l, "frames: vulkan:libdriver_a");
	live__run(&l);
	expect_stream(&l, 0x5c0003, 120);
	live__free(&l);
}

static void test_presents_from_a_command_are_found_from_its_start(void **state)
{
	char *argv[] = {(char *)live__program(), "record", "-o", NULL, "--no-trace", "--", NULL, NULL};
	char path[256];
	struct live l;

	live__init(&l);
	snprintf(path, sizeof(path), "%s",
		vulkan__game("command", "usleep(200000);",
			"d = device(a_core(), a_present()); await_probe(a_present());\n"
			"for (int i = 0; i < 200; i++) { show(d, 0); usleep(2000); }\n\treturn 0;\n"));
	argv[3] = l.recording;
	argv[6] = path;
	l.redframe = live__spawn(&l, "said", argv);
	live__end_redframe(&l);
	live__load(&l);
	expect_stream(&l, 0x5c0001, 200);
	live__free(&l);
}

static void test_a_guess_that_never_fires_makes_way_for_what_does(void **state)
{
	struct live l;

	/* a device is there, but is not presented with; another one is, which the first look could not know */
	start(&l, "guess", "d = device(a_core(), a_present());",
		"sleep(1); void *self = dlopen(\"libGLX.so.0\", RTLD_NOW); void (*swap)(int, int) = dlsym(self, "
		"\"glXSwapBuffers\");\nfor (int i = 0; i < 1500; i++) { swap(0, 77); usleep(2000); }\n");
	live__record(&l, NULL);
	live__go(&l);
	live__end_target(&l);
	live__end_redframe(&l);
	live__load(&l);
	assert_string_equal(model__info(l.model, "frame.source"), "uprobe:libGLX.so.0:glXSwapBuffers");
	printf("%zu of 1500 frames\n", live__count(&l, EV_FRAME));
	assert_in_range(live__count(&l, EV_FRAME), 100, 1500); /* the rest came before it was found */
	assert_non_null(strstr(l.said, "has not been called"));
	live__free(&l);
}

static int setup(void **state)
{
	if (fixture__setup(state))
		return -1;
	chmod(fixture_dir, 0755);
	vulkan__libraries();
	vulkan__library(
		"libGLX.so.0", "-O1", "int glXSwapBuffers(void *a, long b) { __asm__ volatile(\"\"); return 1; }\n");
	return 0;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_presents_through_a_pointer_are_each_one_frame_of_their_swapchain),
	cmocka_unit_test(test_a_layer_and_its_driver_are_one_frame_a_present),
	cmocka_unit_test(test_a_device_made_later_presents_as_well),
	cmocka_unit_test(test_a_game_without_a_device_yet_gets_its_frames_once_it_has_one),
	cmocka_unit_test(test_presents_from_a_command_are_found_from_its_start),
	cmocka_unit_test(test_a_guess_that_never_fires_makes_way_for_what_does),
};

static int vulkan_tests(void)
{
	return cmocka_run_group_tests_name(__FILE__, tests, setup, fixture__teardown);
}

int main(void)
{
	return live__main(__FILE__, live__cannot_trace(), vulkan_tests);
}
