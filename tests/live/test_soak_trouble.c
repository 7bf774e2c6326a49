// SPDX-License-Identifier: GPL-2.0-only
/* What a soak survives: a display that goes away, a clock that is set, a disk that is full, being killed. */
#include <sched.h>
#include <sys/mount.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "soak_fixture.h"

static u64 boot_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (u64)t.tv_sec * NSEC_PER_SEC + (u64)t.tv_nsec;
}

/* ---- the display ---- */

#define GEARS "/usr/bin/glxgears"

/* on a display that is there, under a name that nobody else's has; returns its pid */
static pid_t start_gears(struct live *l, const char *name)
{
	char path[160], *argv[] = {path, NULL};

	snprintf(path, sizeof(path), "%s/%s", l->dir, name);
	if (symlink(GEARS, path))
		assert_int_equal(errno, EEXIST);
	setenv("vblank_mode", "0", 1);
	return live__spawn(l, "gears", argv);
}

static void test_a_display_that_is_restarted_ends_the_game_and_not_the_soak(void **state)
{
	pid_t display, gears, pid;
	long long before;
	char name[32];
	struct live l;

	if (access("/usr/bin/Xvfb", X_OK) || access(GEARS, X_OK))
		live__skip("packages xvfb and mesa-utils are missing");
	begin(&l);
	snprintf(name, sizeof(name), "g%d", getpid());
	display = live__start_display(&l);
	gears = start_gears(&l, name);
	pid = soak(&l, "said", "-n", name, "--wait", "--events", "reclaim", NULL); /* nothing else is of interest */
	assert_true(live__await(&l, "said", "soaking g", pid));
	sleep(2);
	kill(pid, SIGUSR1);
	assert_true(live__await(&l, "said", "so far", pid));
	before = ask("select sum(frames) from blocks");
	kill(display, SIGKILL);
	live__wait(display);
	assert_true(WIFEXITED(live__wait(gears))); /* as Xlib does when its server is gone */
	assert_true(live__await(&l, "said", "the game ended", pid));
	display = live__start_display(&l);
	gears = start_gears(&l, name);
	assert_true(live__await(&l, "said", "the game runs again", pid));
	sleep(2);
	kill(pid, SIGTERM);
	assert_int_equal(ended(&l, pid, "said"), 0);
	assert_int_equal(ask("select count(*) from notes where note like 'the game ended%'"), 1);
	assert_int_equal(ask("select value from counters where name = 'games.crashed'"), 0);
	assert_true(before > 10);
	assert_true(ask("select sum(frames) from blocks") > before + 10);
	assert_int_equal(ask("select value from counters where name = 'streams'"), 2);
	assert_int_equal(ask("select value from counters where name = 'marks'"),
		ask("select sum(value) from counters where name in ('frames', 'frames.doubled', 'streams')"));
	kill(gears, SIGKILL);
	kill(display, SIGKILL);
	live__wait(gears);
	live__wait(display);
	end(&l);
}

/* ---- the clock ---- */

/* ms of each CPU that it has seen: it looks once a second, which a busy machine may not let it */
static long long soak_while_the_clock_steps(void)
{
	long long cpus_ms;
	const char *game;
	u64 from, ms;
	struct live l;
	pid_t pid;

	begin(&l);
	game = ticker(&l, NULL);
	setenv("LD_PRELOAD", LIVE_BUILD "/live/targets/clock_step.so", 1);
	from = boot_ns();
	pid = soak(&l, "said", "-d", "4", "-n", game, NULL);
	unsetenv("LD_PRELOAD");
	assert_int_equal(ended(&l, pid, "said"), 0);
	ms = (boot_ns() - from) / NSEC_PER_MSEC;
	said(&l, "said", "the wall clock steps");
	assert_in_range(ask("select ended_ms - started_ms from run_ends join runs using (run_id)"), 4000, ms);
	assert_in_range(ask("select max(start_ms) from blocks"), 0, ms);
	assert_in_range(ask("select max(max_ns) / 1000000 from blocks"), 1, ms);
	assert_int_equal(ask("select value from counters where name = 'marks'"),
		ask("select value from counters where name = 'frames'") + 1);
	assert_int_equal(ask("select value from counters where name = 'suspends'"), 0);
	/* what the CPUs had to give, by the clock that does not step */
	cpus_ms = ask("select value / 1000000 from counters where name = 'cpus.all_ns'") / get_nprocs();
	assert_in_range(cpus_ms, 0, ms + 100);
	live__end_target(&l);
	end(&l);
	return cpus_ms;
}

static void test_a_wall_clock_that_is_set_back_and_forth_moves_nothing(void **state)
{
	long long cpus_ms = 0;

	for (int i = 0; i < 3 && cpus_ms < 500; i++)
		cpus_ms = soak_while_the_clock_steps();
	assert_true(cpus_ms >= 500);
}

/* ---- the disk ---- */

static void test_on_a_full_disk_every_frame_counts_and_slow_ones_are_explained(void **state)
{
	struct live l;
	pid_t pid;

	begin(&l);
	/* in a mount namespace, which goes with this process */
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || mkdir(dir, 0700) ||
		mount("tmpfs", dir, "tmpfs", 0, "size=256k"))
		live__skip("a small file system cannot be mounted here");
	pid = soak(&l, "said", "--budget", "60", "--", LIVE_BUILD "/examples/hitches", "--quiet", "--hitch", "read",
		"--ms", "80", "--every", "40", "--rounds", "3", NULL);
	assert_int_equal(ended(&l, pid, "said"), 0);
	said(&l, "said", "slow frames are explained without names, but not kept: No space left on device");
	assert_true(ask("select value from counters where name = 'kept.no_room'") >= 1);
	assert_true(ask("select sum(hitches) from hitches where sentence <> '' and trace is null") >= 1);
	assert_int_equal(ask("select value from counters where name = 'marks'"),
		ask("select value from counters where name = 'frames'") + 1);
	assert_int_equal(
		ask("select sum(frames) from blocks"), ask("select value from counters where name = 'frames'"));
	assert_int_equal(umount2(dir, MNT_DETACH), 0);
	end(&l);
}

/* ---- the end of it ---- */

/* ts of the last record that is kept */
static u64 last_kept(void)
{
	const struct ev_hdr *rec;
	char path[PATH_MAX];
	struct recording r;
	u64 last = 0;

	for (int n = 0; kept(n, path); n++) {
		if (recording__open(&r, path))
			continue; /* it had just been begun */
		while (recording__next(&r, &rec) == 1)
			last = max(last, rec->ts);
		recording__close(&r);
	}
	return last;
}

/* A game that is slow all the time, so that all is to be kept. What others do on this machine must not count: so the
 * best of some tries. */
static void test_killed_it_loses_less_than_a_second_of_what_is_kept(void **state)
{
	u64 at, lost = ~0ULL;
	const char *game;
	struct live l;
	pid_t pid;

	begin(&l);
	game = ticker(&l, NULL);
	for (int i = 0; i < 3 && lost >= NSEC_PER_SEC; i++) {
		dir[strlen(dir) - 1] = (char)('0' + i); /* each its own */
		pid = soak(&l, "said", "--budget", "1", "-n", game, NULL);
		assert_true(live__await(&l, "said", "soaking t", pid));
		usleep(2700000 + i * 100000);
		at = boot_ns();
		kill(pid, SIGKILL);
		live__wait(pid);
		lost = at - min(at, last_kept());
		assert_int_equal(ask("select count(*) from pragma_integrity_check where integrity_check = 'ok'"), 1);
	}
	print_message("kept until %llu ms before it was killed\n", (unsigned long long)(lost / NSEC_PER_MSEC));
	assert_true(lost < NSEC_PER_SEC);
	live__end_target(&l);
	end(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_a_display_that_is_restarted_ends_the_game_and_not_the_soak),
	cmocka_unit_test(test_a_wall_clock_that_is_set_back_and_forth_moves_nothing),
	cmocka_unit_test(test_on_a_full_disk_every_frame_counts_and_slow_ones_are_explained),
	cmocka_unit_test(test_killed_it_loses_less_than_a_second_of_what_is_kept),
};

LIVE_MAIN(tests)
