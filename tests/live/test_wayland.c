// SPDX-License-Identifier: GPL-2.0-only
/* Frames of a Wayland client that draws by itself: a made-up libwayland-client with exact numbers of requests. */
#include <stdlib.h>
#include <sys/stat.h>

#include "live.h"
#include "../unit/build_fixture.h"

#define SPEC    "uprobe:libwayland-client.so.0:wl_proxy_marshal_array_flags"
#define COMMITS 200

/* An object begins with its interface, an interface with its name. Request 6 of other objects is another, and one of an
 * object that is none leads nowhere. */
static const char client[] =
	"#include <unistd.h>\n"
	"int wl_proxy_marshal_array_flags(void *object, unsigned request, void *interface, int version, int flags);\n"
	"static struct { const char *name; } surface = {\"wl_surface\"}, region = {\"wl_region\"}, longer = "
	"{\"wl_surface_ex\"};\n"
	"static struct object { void *interface; int id; } a = {&surface, 1}, b = {&surface, 2}, c = {&region, 3}, d = "
	"{&longer, 4};\n"
	"#define ask(object, request) wl_proxy_marshal_array_flags(object, request, 0, 4, 0)\n"
	"int main(void)\n{\n\tchar byte;\n"
	"\twrite(1, \"ready\\n\", 6);\n\tread(0, &byte, 1);\n"
	"\tfor (int i = 0; i < 200; i++) {\n"
	"\t\task(&a, 1); ask(&a, 2); ask(&c, 6); ask(&d, 6); ask((void *)16, 6); ask(&a, 6);\n"
	"\t\tif (i % 4 == 0) ask(&b, 6);\n\t\tusleep(3000);\n\t}\n"
	"\twrite(1, \"\\ndone\\n\", 6);\n\twhile (read(0, &byte, 1) == 1);\n\treturn 0;\n}\n";

static void test_each_commit_of_a_surface_is_a_frame_and_no_other_request_is(void **state)
{
	char path[256], *argv[] = {path, NULL};
	const struct live_event *e;
	const struct frame_stream *s;
	size_t marks = 0, streams = 0;
	struct live l;

	live__init(&l);
	snprintf(path, sizeof(path), "%s", fixture__path("wlclient"));
	live__start_program(&l, argv);
	assert_true(live__await(&l, "truth", "ready\n", l.target));
	live__record(&l, "--frame", SPEC, NULL);
	live__run(&l);
	live__each(&l, at, e, EV_FRAME)
	{
		const struct ev_frame *f = (const void *)e->hdr;

		marks++;
		assert_true(f->number == FRAME_NO_NUMBER && f->mark == FRAME_MARK);
	}
	if (marks != COMMITS + COMMITS / 4)
		fail_msg("%zu marks; it said: %s", marks, l.said);
	for (u32 i = 0; (s = model__stream(l.model, i)); i++, streams++)
		assert_true(s->count == (i ? COMMITS / 4 : COMMITS) - 1);
	assert_int_equal(streams, 2);
	live__free(&l);
}

static int setup(void **state)
{
	char flags[600];

	if (fixture__setup(state))
		return -1;
	chmod(fixture_dir, 0755);
	fixture__build("libwayland-client.so.0", "-O1 -shared -fPIC -Wl,-soname,libwayland-client.so.0",
		"int wl_proxy_marshal_array_flags(void *object, unsigned request, void *interface, int version, int "
		"flags)\n"
		"{ __asm__ volatile(\"\" ::: \"memory\"); return request == 1 ? version : 0; }\n");
	snprintf(flags, sizeof(flags), "-O1 -Wl,--no-as-needed -Wl,-rpath,%s -Wl,%s/libwayland-client.so.0",
		fixture_dir, fixture_dir);
	fixture__build("wlclient", flags, client);
	return 0;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_each_commit_of_a_surface_is_a_frame_and_no_other_request_is),
};

static int wayland_tests(void)
{
	return cmocka_run_group_tests_name(__FILE__, tests, setup, fixture__teardown);
}

int main(void)
{
	return live__main(__FILE__, live__cannot_trace(), wayland_tests);
}
