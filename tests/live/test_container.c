// SPDX-License-Identifier: GPL-2.0-only
/* A game in namespaces of its own (process ids, mounts, root folder), with its own copy of the libraries. */
#include <stdlib.h>
#include <sys/stat.h>

#include "live.h"
#include "../unit/build_fixture.h"

#define FRAMES 300

/* Frames, allocations by the container's own libc, and a lock that another thread holds: all by its own ids. */
static const char game[] =
	"#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n"
	"int glXSwapBuffers(void *a, long b);\nstatic pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n"
	"static volatile int held;\n"
	"static void *holder(void *arg)\n{\n\tpthread_mutex_lock(&lock);\n\theld = 1;\n\tusleep(50000);\n"
	"\tpthread_mutex_unlock(&lock);\n\treturn arg;\n}\n"
	"int main(void)\n{\n\tpthread_t t;\n\tchar b;\n\twrite(1, \"ready\\n\", 6);\n\tread(0, &b, 1);\n"
	"\tfor (int i = 0; i < 300; i++) {\n\t\tglXSwapBuffers(0, 9);\n\t\tusleep(2000);\n"
	"\t\tif (i % 3 == 0)\n\t\t\tfree(malloc(70000 + i));\n\t}\n"
	"\tpthread_create(&t, NULL, holder, NULL);\n\twhile (!held);\n\tpthread_mutex_lock(&lock);\n"
	"\tpthread_join(t, NULL);\n\twrite(1, \"\\ndone\\n\", 6);\n\twhile (read(0, &b, 1) == 1);\n\treturn 0;\n}\n";

/* As Wine does: started as wine64-preloader, it takes the game's Windows path for its command line and 15 bytes of its
 * name for its own. Of three such, one presents frames, by a library that it loads once the others are recorded. */
static const char wine_game[] = AWAIT_PROBE
	"#include <dlfcn.h>\n#include <signal.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/prctl.h>\n"
	"#include <sys/wait.h>\n#include <unistd.h>\n"
	"static void present_all(void)\n{\n\tvoid *lib = dlopen(\"libGLX.so.0\", RTLD_NOW);\n"
	"\tint (*swap)(void *, long) = (int (*)(void *, long))(lib ? dlsym(lib, \"glXSwapBuffers\") : 0);\n"
	"\tawait_probe((void *)swap);\n\tfor (int i = 0; i < 300; i++) {\n\t\tswap(0, 9);\n\t\tusleep(2000);\n\t}\n}\n"
	"int main(int argc, char **argv)\n{\n\tsize_t room = argv[argc - 1] + strlen(argv[argc - 1]) - argv[0];\n"
	"\tchar b, *path = strdup(argv[1]);\n\tint go[2], helper;\n"
	"\tprctl(PR_SET_NAME, strrchr(path, '\\\\') + 1);\n\tmemset(argv[0], 0, room);\n\tstrcpy(argv[0], path);\n"
	"\tpipe(go);\n\thelper = fork();\n\tif (!helper)\n\t\tpause();\n\tusleep(50000);\n"
	"\tif (!fork()) {\n\t\tread(go[0], &b, 1);\n\t\tpresent_all();\n\t\t_exit(0);\n\t}\n"
	"\tusleep(50000);\n\twrite(1, \"ready\\n\", 6);\n\tread(0, &b, 1);\n\twrite(go[1], \"g\", 1);\n"
	"\twait(NULL);\n\tkill(helper, SIGKILL);\n\twrite(1, \"\\ndone\\n\", 6);\n"
	"\twhile (read(0, &b, 1) == 1);\n\treturn 0;\n}\n";
#define WINE_EXE  "A Game Of Long Name.exe"
#define WINE_PATH "Z:\\my games\\" WINE_EXE

static char root[128], name[16];

static void sh(const char *fmt, ...)
{
	char cmd[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	if (system(cmd))
		fail_msg("%s", cmd);
}

/* how it is kept apart; what is mounted as its root folder is `in` */
static const char *const own_pids[] = {"unshare", "--mount", "--pid", "--fork", "--kill-child", "chroot", NULL};
static const char *const own_user[] = {
	"unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "chroot", NULL};
/* a game's container within that of the shop's program */
static const char *const own_user_twice[] = {"unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork",
	"--kill-child", "unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "chroot",
	NULL};
static const char *const only_root[] = {"chroot", NULL};

static void start_program(struct live *l, const char *const how[], const char *in, const char *program)
{
	char *argv[24], path[32];
	int n = 0;

	live__init(l);
	snprintf(path, sizeof(path), "/%s", program);
	while (how[n]) {
		argv[n] = (char *)how[n];
		n++;
	}
	argv[n++] = (char *)in;
	argv[n++] = path;
	argv[n++] = (char *)WINE_PATH; /* of which the other program takes no notice */
	argv[n] = NULL;
	live__start_program(l, argv);
	assert_true(live__await(l, "truth", "ready\n", l->target));
}

static void start(struct live *l, const char *const how[], const char *in)
{
	start_program(l, how, in, name);
}

static void record(struct live *l)
{
	char *argv[] = {(char *)live__program(), "record", "-n", name, "-o", l->recording, "--no-trace", NULL};

	l->redframe = live__spawn(l, "said", argv);
	assert_true(live__await(l, "said", "redframe: recording ", l->redframe));
	live__run(l);
}

/* host id of the thread that was born with this id in its own namespace */
static u32 born_as(const struct live *l, u32 nstid)
{
	const struct live_event *e;

	live__each(l, at, e, EV_FORK)
	{
		const struct ev_fork *f = (const void *)e->hdr;

		if (f->tgid == model__game(l->model) && f->nstid == nstid)
			return f->hdr.tid;
	}
	return 0;
}

static void expect_all(struct live *l, bool own_ids)
{
	const struct live_event *e;
	size_t frames = 0, allocs = 0, waits = 0;

	live__each(l, at, e, EV_FRAME) frames += ((const struct ev_frame *)e->hdr)->stream == 9;
	live__each(l, at, e, EV_ALLOC)
	{
		const struct ev_alloc *a = (const void *)e->hdr;

		allocs += a->size >= 70000 && a->size < 70300 && a->fn == ALLOC_MALLOC;
	}
	live__each(l, at, e, EV_LOCK_WAIT)
	{
		const struct ev_lock_wait *w = (const void *)e->hdr;
		u32 owner = w->owner ? born_as(l, w->owner) : 0;

		/* the mutex bears the owner's id inside the container; recorded is one on the host */
		waits += owner && (owner != w->owner) == own_ids && owner == w->waker;
	}
	if (frames != FRAMES || allocs != FRAMES / 3)
		fail_msg("%zu frames, %zu allocations; it said: %s", frames, allocs, l->said);
	assert_int_equal(waits, 1);
	/* the thread that was there before is known by both of its ids */
	assert_int_equal(
		model__find_thread(l->model, model__game(l->model))->nstid, own_ids ? 1 : model__game(l->model));
	assert_int_equal(model__info(l->model, "game.container") != NULL, own_ids);
}

static void test_frames_allocations_and_lock_owners_in_namespaces_of_its_own(void **state)
{
	struct live l;

	start(&l, own_pids, root);
	record(&l);
	expect_all(&l, true);
	live__free(&l);
}

static void test_libraries_deleted_on_disk_while_it_runs(void **state)
{
	struct live l;

	start(&l, own_pids, root);
	sh("rm -r '%s'/lib* && mkdir '%s'/lib && echo no library >'%s'/lib/libc.so.6", root, root, root);
	record(&l);
	expect_all(&l, true);
	live__free(&l);
}

static void test_a_root_folder_of_its_own_without_namespaces(void **state)
{
	struct live l;

	start(&l, only_root, root);
	record(&l);
	expect_all(&l, false);
	live__free(&l);
}

static void test_a_user_namespace(void **state)
{
	struct live l;

	start(&l, own_user, root);
	record(&l);
	expect_all(&l, true);
	live__free(&l);
}

static void test_a_windows_game_two_namespaces_deep_is_found_by_its_name_among_three(void **state)
{
	char *all[] = {(char *)live__program(), "record", "-n", WINE_EXE, "-o", NULL, "--no-trace", "--force", NULL};
	char *one[] = {(char *)live__program(), "record", "-n", WINE_EXE, "-o", NULL, "--no-trace", "--newest", NULL};
	const struct live_event *e;
	size_t frames = 0;
	struct live l;

	start_program(&l, own_user_twice, root, "wine64-preloader");
	all[5] = one[5] = l.recording;
	l.redframe = live__spawn(&l, "said", all);
	live__end_redframe(&l);
	assert_int_equal(WEXITSTATUS(l.status), 1);
	if (!strstr(l.said, "3 processes are called " WINE_EXE) || !strstr(l.said, "redframe probe"))
		fail_msg("it said: %s", l.said);
	l.redframe = live__spawn(&l, "said", one);
	assert_true(live__await(&l, "said", "redframe: recording ", l.redframe));
	live__run(&l);
	live__each(&l, at, e, EV_FRAME) frames += ((const struct ev_frame *)e->hdr)->stream == 9;
	if (frames != FRAMES)
		fail_msg("%zu frames; it said: %s", frames, l.said);
	assert_string_equal(model__info(l.model, "game.name"), WINE_EXE);
	assert_non_null(strstr(model__info(l.model, "game.exe"), "/wine64-preloader"));
	assert_non_null(model__info(l.model, "game.container"));
	assert_true(model__find_thread(l.model, model__game(l.model))->nstid < 10);
	live__free(&l);
}

/* ---- overlay file systems, as container engines use them ---- */

static char merged[160];

static void mount_overlay(void)
{
	snprintf(merged, sizeof(merged), "%s.merged", root);
	sh("mkdir -p '%s' '%s.upper' '%s.work'", merged, root, root);
	sh("mount -t overlay overlay -o 'lowerdir=%s,upperdir=%s.upper,workdir=%s.work' '%s'", root, root, root,
		merged);
}

static int unmount_overlay(void **state)
{
	sh("umount -l '%s'; rm -rf '%s' '%s.upper' '%s.work'", merged, merged, root, root);
	return 0;
}

static void test_an_overlay_file_system(void **state)
{
	struct live l;

	mount_overlay();
	start(&l, own_pids, merged);
	record(&l);
	expect_all(&l, true);
	live__free(&l);
}

/* Writing to a file of a lower layer makes a copy of it in the upper one, which bears its name from then on; what the
 * game runs cannot be reached any more. */
static void test_a_library_of_an_overlay_that_was_written_to_is_said_to_be_out_of_reach(void **state)
{
	char *argv[] = {(char *)live__program(), "record", "-n", name, "-o", NULL, "--no-trace", NULL};
	struct live l;

	mount_overlay();
	start(&l, own_pids, merged);
	sh("f='%s%s/libGLX.so.0'; chmod u+s \"$f\"; chmod u-s \"$f\"", merged, fixture_dir);
	argv[5] = l.recording;
	l.redframe = live__spawn(&l, "said", argv);
	assert_true(live__await(&l, "said", "redframe: recording ", l.redframe));
	live__go(&l);
	live__end_target(&l);
	live__end_redframe(&l);
	assert_int_equal(l.target_status, 0);
	assert_int_equal(WEXITSTATUS(l.status), 3); /* it ended without a frame */
	if (!strstr(l.said, "libGLX.so.0: its probes (1) are not in the code that the game runs") ||
		strstr(l.said, "libc.so.6: its"))
		fail_msg("it said: %s", l.said);
	live__free(&l);
}

static void fill_root(void)
{
	char path[256];

	snprintf(path, sizeof(path), "%s", fixture__path(name));
	sh("rm -rf '%s' && mkdir -p '%s' && chmod 755 '%s' && cp '%s' '%s' '%s'/", root, root, root, path,
		fixture__path("wine64-preloader"), root);
	/* every library that it needs, where it looks for it */
	sh("ldd '%s' | grep -o '/[^ ]*' | while read f; do mkdir -p \"%s$(dirname \"$f\")\" && cp -L \"$f\" \"%s$f\" "
	   "|| exit 1; "
	   "done",
		path, root, root);
}

static int setup(void **state)
{
	char flags[512];

	if (fixture__setup(state))
		return -1;
	chmod(fixture_dir, 0755);
	snprintf(name, sizeof(name), "boxed%d", getpid());
	snprintf(root, sizeof(root), "/var/tmp/redframe-root-%d", getpid());
	fixture__build("libGLX.so.0", "-O1 -shared -fPIC -Wl,-soname,libGLX.so.0",
		"int glXSwapBuffers(void *a, long b) { __asm__ volatile(\"nop\"); return 1; }\n");
	snprintf(flags, sizeof(flags), "-O1 -fno-builtin -Wl,--no-as-needed -Wl,-rpath,%s -Wl,%s/libGLX.so.0 -lpthread",
		fixture_dir, fixture_dir);
	fixture__build(name, flags, game);
	snprintf(flags, sizeof(flags), "-O1 -Wl,-rpath,%s", fixture_dir);
	fixture__build("wine64-preloader", flags, wine_game);
	return 0;
}

static int fresh_root(void **state)
{
	fill_root();
	return 0;
}

static int teardown(void **state)
{
	sh("rm -rf '%s'", root);
	return fixture__teardown(state);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup(test_frames_allocations_and_lock_owners_in_namespaces_of_its_own, fresh_root),
	cmocka_unit_test_setup(test_libraries_deleted_on_disk_while_it_runs, fresh_root),
	cmocka_unit_test_setup(test_a_root_folder_of_its_own_without_namespaces, fresh_root),
	cmocka_unit_test_setup(test_a_user_namespace, fresh_root),
	cmocka_unit_test_setup(test_a_windows_game_two_namespaces_deep_is_found_by_its_name_among_three, fresh_root),
	cmocka_unit_test_setup_teardown(test_an_overlay_file_system, fresh_root, unmount_overlay),
	cmocka_unit_test_setup_teardown(test_a_library_of_an_overlay_that_was_written_to_is_said_to_be_out_of_reach,
		fresh_root, unmount_overlay),
};

static int container_tests(void)
{
	return cmocka_run_group_tests_name(__FILE__, tests, setup, teardown);
}

int main(void)
{
	return live__main(__FILE__, live__cannot_trace(), container_tests);
}
