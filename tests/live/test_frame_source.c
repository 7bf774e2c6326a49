// SPDX-License-Identifier: GPL-2.0-only
/*
 * On the running kernel: --frame auto among libraries that are made to look like the real ones. Needs the right to load
 * BPF programs and to open uprobes (root).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "../unit/build_fixture.h"
#include "sites.h"

static char why[4096], source[128];

/* a function that ends with a call of what `below` says */
#define LAYER(name, below) "void " name "(void *a, void *b) { __asm__ volatile(\"\" ::: \"memory\"); " below " }\n"

static void library(const char *file, const char *needs, const char *code)
{
	char flags[1400];

	snprintf(flags, sizeof(flags), "-O1 -shared -fPIC -Wl,-soname,%s -Wl,-rpath,%s -Wl,--no-as-needed%s%s%s%s",
		file, fixture_dir, *needs ? " -Wl," : "", *needs ? fixture_dir : "", *needs ? "/" : "", needs);
	fixture__build(file, flags, code);
}

/* a game that maps all of the libraries in `needs` and calls `call` 200 times a second */
static pid_t game(const char *name, const char *needs, const char *call)
{
	char flags[1400], text[1400];
	size_t at = (size_t)snprintf(flags, sizeof(flags), "-O1 -Wl,--no-as-needed -Wl,-rpath,%s", fixture_dir);
	char list[256], *lib, *save;

	snprintf(list, sizeof(list), "%s", needs);
	for (lib = strtok_r(list, " ", &save); lib; lib = strtok_r(NULL, " ", &save))
		at += (size_t)snprintf(flags + at, sizeof(flags) - at, " -Wl,%s/%s", fixture_dir, lib);
	snprintf(text, sizeof(text),
		"#include <unistd.h>\nint main(void) { write(1, \"x\", 1); for (;;) { %s; usleep(5000); } }\n", call);
	return fixture__run(fixture__build(name, flags, text), name);
}

static void expect(pid_t pid, const char *want, int sites)
{
	struct site_list l = {0};
	int n = sites__frame(&l, (u32)pid, "auto", source, sizeof(source), why, sizeof(why));

	fixture__kill(pid);
	if (n != sites || strcmp(source, want))
		fail_msg("%d sites of %s instead of %d of %s: %s", n, source, sites, want, why);
	if (n > 0 && strcmp(want, "none"))
		assert_true(l.sites[0].desc.args[1].from == ARG_REG);
	sites__free(&l);
}

#define ALL "libSDL2-2.0.so.0 libEGL.so.1 libGLX.so.0"

static int build_libraries(void **state)
{
	if (fixture__setup(state))
		return -1;
	library("libGLX.so.0", "", LAYER("glXSwapBuffers", ""));
	library("libEGL.so.1", "", LAYER("eglSwapBuffers", "") LAYER("eglSwapBuffersWithDamageKHR", ""));
	library("libSDL2-2.0.so.0", "libGLX.so.0",
		LAYER("SDL_UpdateWindowSurfaceRects", "") LAYER("SDL_UpdateWindowSurface", "")
			LAYER("SDL_RenderPresent", "glXSwapBuffers(a, b);")
				LAYER("SDL_GL_SwapWindow", "glXSwapBuffers(a, b);"));
	library("libGLX_some.so.0", "", LAYER("driver", ""));
	library("libvulkan.so.1", "", LAYER("vkQueuePresentKHR", ""));
	library("libX11.so.6", "", LAYER("XPutImage", ""));
	library("libxcb-shm.so.0", "", LAYER("xcb_shm_put_image", ""));
	library("libXext.so.6", "", LAYER("XShmPutImage", ""));
	library("libxcb-present.so.0", "", LAYER("xcb_present_pixmap", ""));
	library("libwayland-client.so.0", "", LAYER("wl_proxy_marshal_array_flags", ""));
	library("libGL.so.1", "", LAYER("glXSwapBuffers", ""));
	return 0;
}

static void test_only_present_function_is_taken_untried(void **state)
{
	expect(game("glx", "libGLX.so.0", "pause()"), "uprobe:libGLX.so.0:glXSwapBuffers", 1);
	expect(game("gl", "libGL.so.1", "pause()"), "uprobe:libGL.so.1:glXSwapBuffers", 1);
}

static void test_both_entries_of_egl_are_one_source(void **state)
{
	expect(game("egl", "libEGL.so.1", "eglSwapBuffersWithDamageKHR(0, 0)"), "uprobe:libEGL.so.1:eglSwapBuffers", 2);
}

static void test_of_two_layers_of_one_present_the_lower_is_taken(void **state)
{
	expect(game("layers", ALL, "SDL_RenderPresent(0, 0)"), "uprobe:libGLX.so.0:glXSwapBuffers", 1);
	expect(game("swap", ALL, "SDL_GL_SwapWindow(0, 0)"), "uprobe:libGLX.so.0:glXSwapBuffers", 1);
}

static void test_mapped_library_that_is_not_used_is_not_taken(void **state)
{
	expect(game("useegl", ALL, "eglSwapBuffers(0, 0)"), "uprobe:libEGL.so.1:eglSwapBuffers", 2);
	expect(game("useglx", ALL, "glXSwapBuffers(0, 0)"), "uprobe:libGLX.so.0:glXSwapBuffers", 1);
}

static void test_software_sdl_is_found_beside_mapped_gl_libraries(void **state)
{
	struct site_list l = {0};
	pid_t pid = game("soft", ALL, "SDL_UpdateWindowSurface(0, 0)");

	assert_int_equal(sites__frame(&l, (u32)pid, "auto", source, sizeof(source), why, sizeof(why)), 1);
	assert_string_equal(source, "uprobe:libSDL2-2.0.so.0:SDL_UpdateWindowSurface");
	assert_int_equal(l.sites[0].desc.args[1].reg, 112); /* the window */
	fixture__kill(pid);
	sites__free(&l);
}

static void test_busiest_of_two_windows_is_taken(void **state)
{
	expect(game("overlay", "libEGL.so.1 libGLX.so.0",
		       "static int n; if (++n % 8 == 0) eglSwapBuffers(0, 0); glXSwapBuffers(0, 0)"),
		"uprobe:libGLX.so.0:glXSwapBuffers", 1);
}

static void test_calls_of_another_process_do_not_count(void **state)
{
	pid_t busy = game("busy", ALL, "glXSwapBuffers(0, 0)");

	expect(game("quiet", ALL, "eglSwapBuffers(0, 0)"), "uprobe:libEGL.so.1:eglSwapBuffers", 2);
	fixture__kill(busy);
}

static void test_vulkan_without_a_readable_loader_is_said_and_what_fires_is_taken(void **state)
{
	expect(game("vk", "libvulkan.so.1", "vkQueuePresentKHR(0, 0)"), "none", 0);
	assert_non_null(strstr(why, "the game maps libvulkan, but"));
	assert_non_null(strstr(why, "--frame uprobe:"));
	expect(game("vkgl", "libvulkan.so.1 libGLX.so.0", "vkQueuePresentKHR(0, 0)"), "none", 0);
	assert_non_null(strstr(why, "no other present function fires"));
	/* mapped, but it presents through GLX */
	expect(game("glvk", "libvulkan.so.1 libGLX.so.0", "glXSwapBuffers(0, 0)"), "uprobe:libGLX.so.0:glXSwapBuffers",
		1);
	/* Vulkan's present is seen where it comes out */
	expect(game("vkx", "libvulkan.so.1 libxcb-shm.so.0", "vkQueuePresentKHR(0, 0); xcb_shm_put_image(0, 0)"),
		"uprobe:libxcb-shm.so.0:xcb_shm_put_image", 1);
	assert_non_null(strstr(why, "Vulkan: how libvulkan's vkQueuePresentKHR"));
	assert_non_null(strstr(why, "sent to the display server"));
}

static void test_what_is_sent_to_the_display_is_the_last_resort(void **state)
{
	expect(game("x", "libX11.so.6 libxcb-shm.so.0", "XPutImage(0, 0)"), "uprobe:libX11.so.6:XPutImage", 1);
	assert_non_null(strstr(why, "sent to the display server"));
	expect(game("xshm", "libXext.so.6", "XShmPutImage(0, 0)"), "uprobe:libXext.so.6:XShmPutImage", 1);
	expect(game("xpresent", "libxcb-present.so.0", "xcb_present_pixmap(0, 0)"),
		"uprobe:libxcb-present.so.0:xcb_present_pixmap", 1);
	expect(game("wl", "libwayland-client.so.0", "wl_proxy_marshal_array_flags(0, 6)"),
		"uprobe:libwayland-client.so.0:wl_proxy_marshal_array_flags", 1);
	/* a driver's present sends its picture so: one of the two is taken, not both */
	expect(game("driver", "libxcb-present.so.0 libGLX.so.0", "glXSwapBuffers(0, 0); xcb_present_pixmap(0, 0)"),
		"uprobe:libGLX.so.0:glXSwapBuffers", 1);
	expect(game("wlegl", "libwayland-client.so.0 libEGL.so.1",
		       "eglSwapBuffers(0, 0); for (int i = 0; i < 9; i++) wl_proxy_marshal_array_flags(0, 6)"),
		"uprobe:libEGL.so.1:eglSwapBuffers", 2);
	/* however much more often it is called */
	expect(game("xgl", "libX11.so.6 libGLX.so.0 libEGL.so.1",
		       "for (int i = 0; i < 10; i++) XPutImage(0, 0); glXSwapBuffers(0, 0)"),
		"uprobe:libGLX.so.0:glXSwapBuffers", 1);
	/* every program with a window maps these: alone they promise nothing */
	expect(game("still", "libX11.so.6 libxcb-shm.so.0", "pause()"), "none", 0);
	assert_non_null(strstr(why, "nothing that shows pictures is called"));
}

static void test_silence_is_said_and_the_likeliest_taken(void **state)
{
	expect(game("silent", ALL, "pause()"), "uprobe:libEGL.so.1:eglSwapBuffers", 2);
	assert_non_null(strstr(why, "no present function fired"));
	/* a driver is mapped once its library is really used */
	expect(game("loading", ALL " libGLX_some.so.0", "pause()"), "uprobe:libGLX.so.0:glXSwapBuffers", 1);
}

#define STEPPED "uprobe:libGLX.so.0:glXSwapBuffers"

static void expect_cost(pid_t pid, const char *spec, const char *want, int sites, const char *said)
{
	struct site_list l = {0};
	int n = sites__frame(&l, (u32)pid, spec, source, sizeof(source), why, sizeof(why));

	fixture__kill(pid);
	if (n != sites || strcmp(source, want) || !strstr(why, said))
		fail_msg("%d sites of %s instead of %d of %s: %s", n, source, sites, want, why);
	sites__free(&l);
}

static void test_frame_source_that_would_be_stepped_too_often_is_left_out_and_named(void **state)
{
	/* no instruction that the kernel emulates */
	library("libGLX.so.0", "",
		"__asm__(\".globl glXSwapBuffers\\n.type glXSwapBuffers,@function\\nglXSwapBuffers: xor %eax,%eax\\n"
		"ret\\n.size glXSwapBuffers,.-glXSwapBuffers\");\n");
	expect_cost(game("hot", "libGLX.so.0", "for (int i = 0; i < 60; i++) glXSwapBuffers(0, 0)"), "auto", "none", 0,
		"more than 1000 times a second: " STEPPED);
	/* the layer above it fires as often, at less cost */
	expect_cost(game("hotsdl", ALL, "for (int i = 0; i < 60; i++) SDL_RenderPresent(0, 0)"), "auto",
		"uprobe:libSDL2-2.0.so.0:SDL_RenderPresent", 1, "left out");
	/* called rarely it is taken, and what it costs is said; so it is where the user names it */
	expect_cost(game("mild", "libGLX.so.0", "glXSwapBuffers(0, 0)"), "auto", STEPPED, 1, "% of a CPU");
	expect_cost(game("named", "libGLX.so.0", "for (int i = 0; i < 60; i++) glXSwapBuffers(0, 0)"), STEPPED, STEPPED,
		1, "% of a CPU");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_present_function_is_taken_untried),
		cmocka_unit_test(test_both_entries_of_egl_are_one_source),
		cmocka_unit_test(test_of_two_layers_of_one_present_the_lower_is_taken),
		cmocka_unit_test(test_mapped_library_that_is_not_used_is_not_taken),
		cmocka_unit_test(test_software_sdl_is_found_beside_mapped_gl_libraries),
		cmocka_unit_test(test_busiest_of_two_windows_is_taken),
		cmocka_unit_test(test_calls_of_another_process_do_not_count),
		cmocka_unit_test(test_vulkan_without_a_readable_loader_is_said_and_what_fires_is_taken),
		cmocka_unit_test(test_what_is_sent_to_the_display_is_the_last_resort),
		cmocka_unit_test(test_silence_is_said_and_the_likeliest_taken),
		/* last: it puts another libGLX in place */
		cmocka_unit_test(test_frame_source_that_would_be_stepped_too_often_is_left_out_and_named),
	};

	return cmocka_run_group_tests(tests, build_libraries, fixture__teardown);
}
