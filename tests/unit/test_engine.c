// SPDX-License-Identifier: GPL-2.0-only
/* soak's engine: what it keeps, counts and survives. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "engine_fixture.h"
#include "history.h"
#include "log.h"
#include "shedding.h"

/* ---- explaining a segment again ---- */

struct seen {
	u64 frames, number;
	char sentence[512];
};

static void see(const struct verdict *v, const struct model *m, void *arg)
{
	struct seen *s = arg;

	s->frames++;
	if (v->frame.number == s->number)
		snprintf(s->sentence, sizeof(s->sentence), "%s", v->sentence ?: "");
}

static struct seen explain_file(const char *path, u64 number)
{
	struct seen s = {.number = number};
	struct explained x;

	explain_fd(&x, open(path, O_RDONLY), NULL, see, &s);
	assert_false(x.r.truncated);
	explained__free(&x);
	return s;
}

static const char *segment_path(const struct told *t, u32 number)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/segment-%06u.redframe", t->dir, number);
	return path;
}

/* ---- what is kept ---- */

static void test_only_what_surrounds_slow_frames_is_kept(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g = begin(&o);
	struct seen s;

	frames(&g, 200);
	hitch(&g, 40);
	frames(&g, 300);
	hitch(&g, 60);
	frames(&g, 100);
	end(&g);
	assert_int_equal(t.frames, 602);
	assert_int_equal(t.slow, 2);
	assert_int_equal(files_in(t.dir, false), 2);
	assert_int_equal(t.n_hitches, 2);
	assert_int_equal(t.hitches[0].number, 201);
	assert_non_null(strstr(t.hitches[0].sentence, "reading /data/big.pak from disk"));
	assert_int_equal(t.hitches[0].cause, CAUSE_FILE_READ);
	assert_true(t.hitches[0].fingerprint == t.hitches[1].fingerprint);
	s = explain_file(segment_path(&t, 2), 502);
	assert_true(s.frames >= 30 + 1 + 10 && s.frames <= 30 + 1 + 10 + 20);
	clean(&t, &g);
}

static void test_a_segment_explains_its_frame_as_the_whole_recording_does(void **state)
{
	struct recording_writer whole;
	struct told t;
	struct engine_options o = options(&t);
	struct game g = {.e = engine__new(&o), .ts = START, .whole = &whole, .busy = 3};
	int fd = memfd_create("whole", 0);
	char path[64];
	struct seen all;

	assert_int_equal(recording__create(&whole, fcntl(fd, F_DUPFD, 0), START), 0);
	begin_game(&g);
	scene(&g, "harbour");
	frames(&g, 200);
	hitch(&g, 40);
	frames(&g, 100);
	end(&g);
	assert_int_equal(recording__finish(&whole, true), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	all = explain_file(path, 201);
	assert_string_not_equal(all.sentence, "");
	assert_int_equal(t.n_hitches, 1);
	assert_string_equal(t.hitches[0].sentence, all.sentence);
	assert_string_equal(t.hitches[0].scene, "harbour");
	assert_string_equal(explain_file(segment_path(&t, 1), 201).sentence, all.sentence);
	close(fd);
	clean(&t, &g);
}

static void test_a_hitch_in_another_ones_shadow_is_kept_with_it(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g = begin(&o);

	frames(&g, 200);
	hitch(&g, 40);
	frames(&g, 5);
	hitch(&g, 50);
	frames(&g, 100);
	end(&g);
	assert_int_equal(files_in(t.dir, false), 1);
	assert_int_equal(t.n_hitches, 2);
	clean(&t, &g);
}

static void test_a_segment_that_is_full_is_followed_by_another(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g;
	struct stat st;

	o.segment_bytes = 64 << 10;
	o.explain = (struct explain_options){.from = BUDGET_OPTION, .budget_ns = 5 * MS};
	g = begin(&o);
	g.busy = 50;
	frames(&g, 300); /* all of them slow */
	end(&g);
	assert_true(files_in(t.dir, false) > 5);
	assert_int_equal(t.slow, 300);
	assert_true(t.n_hitches > 200);
	assert_int_equal(stat(segment_path(&t, 2), &st), 0);
	assert_true(st.st_size < 4 * (64 << 10) + (64 << 10));
	assert_true(explain_file(segment_path(&t, 3), 0).frames > 10);
	clean(&t, &g);
}

static void test_limits_keep_frames_that_are_not_slow(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g;

	o.keep.of[LIMIT_ALLOC] = 1 << 20;
	o.fail.of[LIMIT_FAULTS] = 100;
	g = begin(&o);
	frames(&g, 100);
	PUT(&g, ALLOC, alloc, g.ts + 2 * MS, GAME, .size = 2 << 20, .caller = 0x400000);
	frames(&g, 100);
	g.busy = 200;
	frame(&g, PACE, 0);
	g.busy = 0;
	frames(&g, 100);
	end(&g);
	assert_int_equal(t.slow, 0);
	assert_int_equal(t.n_hitches, 2);
	assert_int_equal(t.hitches[0].crossed, 1 << LIMIT_ALLOC);
	assert_int_equal(t.hitches[1].crossed, 1 << LIMIT_FAULTS);
	assert_int_equal(t.failed, 1);
	clean(&t, &g);
}

/* ---- naming ---- */

static int gate[2];

/* not before the test closes the gate's other end */
static int name_at_last(void *arg, struct recording_writer *w, struct stacks *stacks)
{
	char c;

	close(gate[1]);
	gate[1] = -1; /* the next segment's comes here as well */
	return (int)read(gate[0], &c, 1);
}

/* As live: the stream does not wait. What it would take to name all of them is not there. */
static void test_hitches_that_there_is_no_time_to_explain_are_counted_and_the_worst_are_explained(void **state)
{
	u32 unexplained = 0, n = 4 * NAMER_WAITING;
	struct told t;
	struct engine_options o = options(&t);
	struct game g;

	o.patient = false;
	o.name = name_at_last;
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	g = begin(&o);
	frames(&g, 100);
	for (u32 i = 0; i < n; i++) {
		hitch(&g, i == 150 ? 90 : 40);
		frames(&g, 20);
		engine__tend(g.e);
	}
	close(gate[1]);
	gate[1] = -1; /* its number may be another file's by now */
	end(&g);
	close(gate[0]);
	assert_int_equal(engine__stats(g.e)->kept, n);
	assert_int_equal(t.n_hitches, n);
	assert_true(engine__stats(g.e)->not_named > 0);
	assert_non_null(strstr(t.note, "more than its share"));
	for (u32 i = 0; i < ARRAY_SIZE(t.hitches); i++)
		unexplained += t.hitches[i].cause == CAUSE_NONE && !!strstr(t.hitches[i].sentence, "not explained");
	assert_true(unexplained > 0);
	for (u32 i = 0; i < ARRAY_SIZE(t.hitches); i++)
		assert_true(t.hitches[i].cause == CAUSE_FILE_READ ||
			    t.hitches[i].end - t.hitches[i].start < PACE + 90 * MS);
	clean(&t, &g);
}

static void finding(void *arg, const struct finding *f)
{
}

static void done(void *arg, u32 segment, u64 bytes, int err)
{
	*(int *)arg = err;
}

static void test_naming_waits_until_its_share_of_a_cpu_is_earned(void **state)
{
	struct explain_options explain = {};
	struct segment s = {};
	struct told t;
	int err = 1;
	struct namer n = {.explain = &explain, .found = finding, .done = done, .arg = &err};

	options(&t);
	assert_int_equal(segment__open(&s, t.dir, 1, START), 0);
	namer__tend(&n, START, false);
	assert_int_equal(n.credit_ns, NAMER_SAVED_NS);
	n.credit_ns = -(s64)NSEC_PER_SEC; /* the last child took more than there was */
	namer__take(&n, &s);
	namer__tend(&n, START + NAMER_SHARE * NSEC_PER_SEC, false);
	assert_int_equal(n.child, 0);
	namer__tend(&n, START + (NAMER_SHARE + 1) * NSEC_PER_SEC, false);
	assert_true(n.child > 0);
	namer__finish(&n);
	assert_int_equal(err, 0);
	assert_true(n.credit_ns < (s64)NSEC_PER_SEC / NAMER_SHARE && n.cpu_ns > 0);
	namer__free(&n);
	files_in(t.dir, true);
	rmdir(t.dir);
}

/* what is not named yet is lost if the soak is killed */
static void test_naming_begins_at_once_where_little_is_to_be_named(void **state)
{
	struct explain_options explain = {};
	struct told t;
	int err;
	struct namer n = {.explain = &explain, .found = finding, .done = done, .arg = &err};

	options(&t);
	namer__tend(&n, START, false);
	for (u32 saved = 0; saved < 2; saved++) {
		struct segment s = {};

		n.credit_ns = (s64)(NAMER_SAVED_NS - !saved);
		assert_int_equal(segment__open(&s, t.dir, 1 + saved, START), 0);
		namer__take(&n, &s);
		namer__tend(&n, START, false);
		assert_int_equal(n.child > 0, saved);
		namer__finish(&n);
	}
	namer__free(&n);
	files_in(t.dir, true);
	rmdir(t.dir);
}

static int die(void *arg, struct recording_writer *w, struct stacks *stacks)
{
	raise(SIGKILL);
	return 0;
}

static void test_hitches_whose_naming_fails_are_told_without_a_cause(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g;

	o.name = die;
	g = begin(&o);
	for (u32 i = 0; i < 3; i++) {
		frames(&g, 100);
		hitch(&g, 40);
	}
	frames(&g, 100);
	end(&g);
	assert_int_equal(engine__stats(g.e)->not_named, 3);
	assert_int_equal(t.n_hitches, 3);
	for (u32 i = 0; i < t.n_hitches; i++)
		assert_non_null(strstr(t.hitches[i].sentence, "not explained: the process that names code failed"));
	clean(&t, &g);
}

static char pids[80];

static int note_pid(void *arg, struct recording_writer *w, struct stacks *stacks)
{
	FILE *f = fopen(pids, "ae");

	if (f)
		fprintf(f, "%d\n", getpid());
	return f ? fclose(f) : -errno;
}

static void test_segments_share_a_child_that_names_them(void **state)
{
	u32 segments = 0, children = 0;
	struct told t;
	struct engine_options o = options(&t);
	struct game g;
	int pid, last = 0;
	FILE *f;

	snprintf(pids, sizeof(pids), "%s/pids", t.dir);
	o.name = note_pid;
	g = begin(&o);
	frames(&g, 100);
	for (u32 i = 0; i < 2 * NAMER_TOGETHER; i++) {
		hitch(&g, 40);
		frames(&g, 20);
	}
	end(&g);
	assert_int_equal(t.n_hitches, 2 * NAMER_TOGETHER);
	f = fopen(pids, "re");
	assert_non_null(f);
	for (; fscanf(f, "%d", &pid) == 1; last = pid) {
		segments++;
		children += pid != last;
	}
	fclose(f);
	assert_int_equal(segments, 2 * NAMER_TOGETHER);
	assert_int_equal(children, 2);
	clean(&t, &g);
}

/* ---- room ---- */

static void test_the_first_and_the_worst_of_a_kind_stay_when_room_is_short(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g;

	o.max_bytes = 2200 << 10;
	g = begin(&o);
	g.busy = 60;
	for (u32 i = 0; i < 12; i++) {
		frames(&g, 100);
		hitch(&g, i == 6 ? 90 : 40 + i);
		engine__tend(g.e);
	}
	frames(&g, 50);
	end(&g);
	assert_int_equal(t.n_hitches, 12); /* all are told of */
	assert_true(engine__kept(g.e)->dropped > 0);
	assert_true(engine__kept(g.e)->bytes <= o.max_bytes);
	assert_true(kept__has(engine__kept(g.e), 1));
	assert_true(kept__has(engine__kept(g.e), 7));
	assert_int_equal(files_in(t.dir, false), 12 - engine__kept(g.e)->dropped);
	assert_int_equal(access(segment_path(&t, 1), F_OK) | access(segment_path(&t, 7), F_OK), 0);
	clean(&t, &g);
}

static void test_where_nothing_can_be_written_every_frame_counts_and_slow_ones_are_explained(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g;

	rmdir(t.dir);
	g = begin(&o);
	frames(&g, 100);
	hitch(&g, 40);
	frames(&g, 100);
	end(&g);
	assert_int_equal(t.frames, 201);
	assert_int_equal(t.slow, 1);
	assert_int_equal(engine__stats(g.e)->not_kept, 1);
	assert_non_null(strstr(t.note, "not kept"));
	assert_int_equal(t.n_hitches, 1); /* and is explained */
	assert_int_equal(t.hitches[0].number, 101);
	assert_non_null(strstr(t.hitches[0].sentence, "reading /data/big.pak from disk"));
	engine__free(g.e);
}

static void limit_files(rlim_t bytes)
{
	struct rlimit l;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &l), 0);
	l.rlim_cur = bytes ?: l.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static void test_a_disk_that_is_full_for_a_while_costs_what_is_kept_meanwhile_and_no_more(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g;

	signal(SIGXFSZ, SIG_IGN);
	g = begin(&o);
	g.busy = 100;
	limit_files(100 << 10);
	frames(&g, 100);
	hitch(&g, 40);
	frames(&g, 35);    /* merge has let go of the hitch */
	engine__tend(g.e); /* what is kept reaches the disk, or not */
	frames(&g, 100);
	assert_int_equal(files_in(t.dir, false), 0);
	assert_int_equal(engine__stats(g.e)->not_kept, 1);
	hitch(&g, 40); /* so soon after it is not tried again */
	frames(&g, 100);
	assert_int_equal(engine__stats(g.e)->not_kept, 2);
	limit_files(0);
	frames(&g, 600);
	hitch(&g, 40);
	frames(&g, 100);
	end(&g);
	assert_int_equal(files_in(t.dir, false), 1);
	assert_int_equal(t.frames, 35 + 600 + 400 + 3);
	assert_int_equal(t.slow, 3);
	assert_int_equal(t.n_hitches, 3);
	for (u32 i = 0; i < t.n_hitches; i++) { /* each is told once, whether there was room for it or not */
		assert_int_equal(t.hitches[i].segment != 0, i == 2);
		assert_non_null(strstr(t.hitches[i].sentence, "reading /data/big.pak from disk"));
		assert_true(t.hitches[i].slow && t.hitches[i].fingerprint == t.hitches[2].fingerprint);
	}
	clean(&t, &g);
}

/* ---- what happens in days ---- */

static void test_a_game_that_crashes_leaves_its_last_seconds_and_the_next_one_counts_on(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g = begin(&o);
	u32 code;

	frames(&g, 600);
	PUT(&g, EXIT, exit, g.ts + 1000, GAME, .tgid = GAME, .code = 11);
	assert_int_equal(engine__game_ended(g.e, false, &code), 0);
	assert_int_equal(code, 11);
	assert_int_equal(files_in(t.dir, false), 1);
	assert_true(explain_file(segment_path(&t, 1), 0).frames >= 60);
	g.ts += 10 * NSEC_PER_SEC;
	begin_game(&g);
	frames(&g, 100);
	hitch(&g, 40);
	frames(&g, 100);
	end(&g);
	assert_int_equal(t.frames, 801);
	assert_int_equal(t.n_hitches, 1);
	clean(&t, &g);
}

static void test_a_frame_in_which_the_machine_slept_is_none_of_the_games_hitches(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g = begin(&o);

	frames(&g, 100);
	PUT(&g, CLOCK, clock, g.ts, 0, .monotonic = g.ts - 5, .realtime = 1);
	frame(&g, PACE + 3600 * NSEC_PER_SEC, 0);
	PUT(&g, CLOCK, clock, g.ts + 1000, 0, .monotonic = g.ts - 3600 * NSEC_PER_SEC, .realtime = 1);
	frames(&g, 100);
	end(&g);
	assert_int_equal(t.frames, 201);
	assert_true(t.suspended >= 1 && t.suspended <= 2); /* and perhaps the frame of the second look */
	assert_int_equal(t.n_hitches, 0);
	assert_int_equal(engine__stats(g.e)->suspends, 1);
	clean(&t, &g);
}

/* one that goes right, and one that is set back and forth by hours while the game runs */
static struct told played_by_a_wall_clock(bool stepped)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g = begin(&o);

	for (u64 i = 0; i < 20; i++) {
		u64 wall = 1700000000 * NSEC_PER_SEC + (g.ts - START);

		PUT(&g, CLOCK, clock, g.ts, 0, .monotonic = g.ts - 5,
			.realtime = stepped && i % 2 ? wall - 3 * 3600 * NSEC_PER_SEC : wall);
		frames(&g, 60);
		if (i % 5 == 4)
			hitch(&g, 40 + i);
	}
	end(&g);
	clean(&t, &g);
	return t;
}

static void test_a_wall_clock_that_steps_changes_no_frame(void **state)
{
	struct told a = played_by_a_wall_clock(false), b = played_by_a_wall_clock(true);

	assert_int_equal(a.frames, 20 * 60 + 4);
	assert_int_equal(b.frames, a.frames);
	assert_int_equal(b.suspended, 0);
	assert_int_equal(a.n_hitches, 4);
	assert_int_equal(b.n_hitches, 4);
	for (u32 i = 0; i < 4; i++) {
		assert_int_equal(b.hitches[i].start, a.hitches[i].start);
		assert_int_equal(b.hitches[i].end, a.hitches[i].end);
		assert_int_equal(b.hitches[i].excess_ns, a.hitches[i].excess_ns);
		assert_string_equal(b.hitches[i].sentence, a.hitches[i].sentence);
	}
}

static void test_what_is_shed_is_told_as_lost_and_no_frame_is(void **state)
{
	struct told t;
	struct engine_options o = options(&t);
	struct game g = begin(&o);

	g.busy = 5;
	frames(&g, 100);
	engine__shed(g.e, shedding__levels(), g.ts);
	frames(&g, 100);
	engine__shed(g.e, 0, g.ts);
	frames(&g, 100);
	end(&g);
	assert_int_equal(t.frames, 300);
	assert_true(t.lost >= 99 && t.lost <= 102);
	assert_int_equal(engine__stats(g.e)->shed[CLASS_FAULT], 500);
	assert_int_equal(shedding__class(1), CLASS_SAMPLE);
	clean(&t, &g);
}

/* ---- the history ---- */

struct left {
	u64 n, last;
};

static int on_left(void *arg, const struct ev_hdr *rec)
{
	struct left *l = arg;

	assert_true(rec->ts > l->last);
	l->last = rec->ts;
	l->n++;
	return 0;
}

static void test_history_gives_every_record_out_once_in_order(void **state)
{
	struct left left = {};
	struct history h;
	u64 rec[EV_MAX_BYTES / 8] = {0}, at, seen = 0;
	struct ev_hdr *hdr = (struct ev_hdr *)rec;
	const struct ev_hdr *next;
	u64 n = 20000;

	assert_int_equal(history__init(&h, 64 << 10, on_left, &left), 0);
	for (u64 i = 1; i <= n; i++) {
		*hdr = (struct ev_hdr){.ts = i, .kind = EV_INFO, .words = (u8)(2 + i * i % 250)};
		assert_int_equal(history__push(&h, hdr), 0);
		if (i % 777 == 0)
			assert_int_equal(history__trim(&h, i - 3), 0);
	}
	for (at = 0; (next = history__next(&h, &at));)
		assert_int_equal(next->ts, left.n + ++seen);
	assert_int_equal(left.n + seen, n);
	assert_int_equal(history__oldest(&h), left.n + 1);
	history__free(&h);
}

/* ---- limits ---- */

static void test_limits_are_read_as_documented(void **state)
{
	struct amounts a = {};

	assert_int_equal(limits__parse("keep", "frame=33.5,alloc=16M,faults=300,cold=64K,lock=5ms,allocs=10", &a), 0);
	assert_int_equal(a.of[LIMIT_FRAME], 33500000);
	assert_int_equal(a.of[LIMIT_ALLOC], 16 << 20);
	assert_int_equal(a.of[LIMIT_FAULTS], 300);
	assert_int_equal(a.of[LIMIT_COLD], 64 << 10);
	assert_int_equal(a.of[LIMIT_LOCK], 5000000);
	assert_int_equal(a.of[LIMIT_ALLOCS], 10);
	log_level = LOG_QUIET;
	for (const char *const *bad = (const char *[]){"frame", "frame=", "frame=-1", "frame=0", "frame=5s", "cold=x",
		     "what=1", "=5", "frame=nan", NULL};
		*bad; bad++)
		assert_int_equal(limits__parse("keep", *bad, &a), -EINVAL);
	log_level = LOG_NORMAL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_what_surrounds_slow_frames_is_kept),
		cmocka_unit_test(test_a_segment_explains_its_frame_as_the_whole_recording_does),
		cmocka_unit_test(test_a_hitch_in_another_ones_shadow_is_kept_with_it),
		cmocka_unit_test(test_a_segment_that_is_full_is_followed_by_another),
		cmocka_unit_test(test_limits_keep_frames_that_are_not_slow),
		cmocka_unit_test(test_hitches_that_there_is_no_time_to_explain_are_counted_and_the_worst_are_explained),
		cmocka_unit_test(test_naming_waits_until_its_share_of_a_cpu_is_earned),
		cmocka_unit_test(test_naming_begins_at_once_where_little_is_to_be_named),
		cmocka_unit_test(test_hitches_whose_naming_fails_are_told_without_a_cause),
		cmocka_unit_test(test_segments_share_a_child_that_names_them),
		cmocka_unit_test(test_the_first_and_the_worst_of_a_kind_stay_when_room_is_short),
		cmocka_unit_test(test_where_nothing_can_be_written_every_frame_counts_and_slow_ones_are_explained),
		cmocka_unit_test(test_a_disk_that_is_full_for_a_while_costs_what_is_kept_meanwhile_and_no_more),
		cmocka_unit_test(test_a_game_that_crashes_leaves_its_last_seconds_and_the_next_one_counts_on),
		cmocka_unit_test(test_a_frame_in_which_the_machine_slept_is_none_of_the_games_hitches),
		cmocka_unit_test(test_a_wall_clock_that_steps_changes_no_frame),
		cmocka_unit_test(test_what_is_shed_is_told_as_lost_and_no_frame_is),
		cmocka_unit_test(test_history_gives_every_record_out_once_in_order),
		cmocka_unit_test(test_limits_are_read_as_documented),
	};

	return cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL);
}
