// SPDX-License-Identifier: GPL-2.0-only
/* What recording costs is in the recording, and it is bounded: what costs too much is left out. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "live.h"

static const struct ev_shed *shed(const struct live *l, bool out, const char *what)
{
	const struct live_event *e;

	live__each(l, at, e, EV_SHED)
	{
		const struct ev_shed *s = (const void *)e->hdr;

		if (!!s->out == out && !strcmp(live__text(e->hdr), what))
			return s;
	}
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* the frames of the storm, as the target measured them: how long they were below 97 % of their speed, and the speed
 * then */
static void print_what_the_storm_saw(const struct live *l, u64 shed_ts)
{
	u64 bare = (u64)live__num(l, "bare", 0, 0), begun = (u64)live__num(l, "storm", 0, 0), back = 0;
	size_t n = live__rows(l, "frame"), k = 0, good = 0;
	u64 *after = calloc(n, sizeof(*after));

	assert_non_null(after);
	for (size_t i = 0; i < n; i++) {
		u64 end = (u64)live__num(l, "frame", i, 0), cpu = (u64)live__num(l, "frame", i, 1);

		if (!live__num(l, "frame", i, 2))
			continue;
		if (end > shed_ts + 200 * NSEC_PER_MSEC)
			after[k++] = cpu;
		good = (double)cpu * 0.97 <= (double)bare ? good + 1 : 0;
		if (good == 3 && !back)
			back = end;
	}
	qsort(after, k, sizeof(*after), by_value);
	printf("  allocator calls were left out %.0f ms after the storm began; back at 97 %% of its speed after %.0f "
	       "ms; "
	       "then %.1f %% (median of %zu frames, CPU time)\n",
		(double)(shed_ts - begun) / 1e6, back ? (double)(back - begun) / 1e6 : -1.0,
		k ? 100.0 * (double)bare / (double)after[k / 2] : 0, k);
	free(after);
}

static void test_a_storm_of_allocations_is_left_out_and_frames_say_so(void **state)
{
	const struct ev_shed *out;
	struct live l;
	char *json;
	int status;

	live__init(&l);
	live__start(&l, "storm", NULL);
	live__record(&l, "--frame", "auto", "--max-overhead", "3", NULL);
	live__run(&l);
	out = shed(&l, true, "allocator calls");
	assert_non_null(out);
	assert_true(out->hdr.ts > (u64)live__num(&l, "storm", 0, 0));
	assert_true(out->hdr.ts < (u64)live__num(&l, "storm", 0, 1));
	assert_int_equal(out->class, CLASS_ALLOC);
	assert_true(out->percent > 3);
	assert_true(model__thinned_in(l.model, out->hdr.ts, out->hdr.ts + 1) & 1u << CLASS_ALLOC);
	assert_false(model__thinned_in(l.model, 0, (u64)live__num(&l, "storm", 0, 0)) & 1u << CLASS_ALLOC);
	print_what_the_storm_saw(&l, out->hdr.ts);
	json = live__output(&l, &status,
		(char *const[]){(char *)live__program(), "explain", "--json", "--worst", "3", l.recording, NULL});
	assert_int_equal(status, 0);
	assert_non_null(json);
	free(json);
	live__free(&l);
}

static void test_without_a_bound_nothing_is_left_out(void **state)
{
	struct live l;

	live__init(&l);
	live__start(&l, "storm", NULL);
	live__record(&l, "--frame", "auto", NULL);
	live__run(&l);
	assert_int_equal(live__count(&l, EV_SHED), 0);
	live__free(&l);
}

static char *info_json(struct live *l)
{
	int status;
	char *json = live__output(
		l, &status, (char *const[]){(char *)live__program(), "info", "--json", l->recording, NULL});

	assert_int_equal(status, 0);
	return json;
}

/* a process beside the game whose reads go into fresh pages, as those of an X server do */
static pid_t start_reader(void)
{
	const size_t size = 1 << 20;
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	pid_t pid = zero < 0 ? -1 : fork();

	if (pid)
		return pid;
	for (;;) {
		void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED || madvise(p, size, MADV_NOHUGEPAGE) || read(zero, p, size) < 0)
			_exit(1);
		munmap(p, size);
	}
}

static u64 kernel_faults(const struct live *l, u64 from, u64 to)
{
	const struct live_event *e;
	u64 n = 0;

	live__each(l, at, e, EV_FAULT)
	{
		const struct ev_fault *f = (const void *)e->hdr;

		n += f->flags & FAULT_KERNEL && f->hdr.ts >= from && f->hdr.ts < to;
	}
	return n;
}

static size_t true_kernel_faults(const struct live *l)
{
	size_t n = 0;
	char word[16];

	for (size_t i = 0; i < live__rows(l, "fault"); i++) {
		live__word(l, "fault", i, 1, word, sizeof(word));
		n += !strcmp(word, "kernel");
	}
	return n;
}

static void test_faults_in_the_kernel_are_left_out_while_other_processes_pay_for_them(void **state)
{
	const char *what = "page faults within system calls";
	const struct ev_shed *out, *again;
	char *json;
	pid_t reader;
	struct live l;

	live__init(&l);
	live__start(&l, "fault", l.dir, "0", NULL);
	live__record(&l, "--frame", "none", "--max-overhead", "0.5", NULL);
	reader = start_reader();
	assert_true(reader > 0);
	assert_true(live__await(&l, "said", "page faults within system calls are left out", l.redframe));
	kill(reader, SIGKILL);
	live__wait(reader);
	assert_true(live__await(&l, "said", "page faults within system calls are recorded again", l.redframe));
	live__run(&l);
	out = shed(&l, true, what);
	again = shed(&l, false, what);
	assert_non_null(out);
	assert_non_null(again);
	assert_true(model__thinned_in(l.model, out->hdr.ts, out->hdr.ts + 1) & 1u << CLASS_FAULT);
	assert_int_equal(kernel_faults(&l, out->hdr.ts + NSEC_PER_SEC, again->hdr.ts - NSEC_PER_SEC), 0);
	assert_true(true_kernel_faults(&l) > 0);
	assert_true(kernel_faults(&l, again->hdr.ts, UINT64_MAX) >= true_kernel_faults(&l));
	json = info_json(&l);
	assert_non_null(strstr(json, "\"others\": {\"user_faults\": "));
	assert_null(strstr(json, "\"kernel_faults\": 0,"));
	free(json);
	live__free(&l);
}

/* Records that end in [from, to) of the row's thread: each within a span that the target measured, and nearly as many.
 */
static void same_waits(const struct live *l, u64 from, u64 to)
{
	u32 tid = live__tid(l, live__num(l, "waiter", 0, 0)), holder = live__tid(l, live__num(l, "holder", 0, 0));
	size_t n = live__rows(l, "wait"), i = 0, within = 0, recorded = 0, by_holder = 0;
	const struct live_event *e;

	live__each(l, at, e, EV_LOCK_WAIT)
	{
		const struct ev_lock_wait *w = (const void *)e->hdr;
		u64 begin = w->hdr.ts - w->dur;

		if (w->hdr.tid != tid || w->hdr.ts < from || w->hdr.ts >= to)
			continue;
		while (i < n && (u64)live__num(l, "wait", i, 1) < begin)
			i++;
		assert_true(i < n);
		if (begin < (u64)live__num(l, "wait", i, 0) || w->hdr.ts > (u64)live__num(l, "wait", i, 1))
			fail_msg("a wait of %llu ns is none of those that the target measured",
				(unsigned long long)w->dur);
		by_holder += w->owner == holder && w->waker == holder;
		recorded++;
	}
	for (i = 0; i < n; i++)
		within += (u64)live__num(l, "wait", i, 0) >= from && (u64)live__num(l, "wait", i, 1) < to;
	assert_true(within > 20);
	/* who comes late, on a busy machine, meets the lock as it is given back */
	assert_in_range(recorded, within * 9 / 10, within * 11 / 10 + 2);
	assert_true(by_holder >= recorded * 9 / 10);
}

/* The file that each call read, by its place in time. */
static size_t same_reads(const struct live *l, u64 from, u64 to)
{
	const struct live_event *e;
	size_t n = live__rows(l, "file"), i = 0, same = 0;

	live__each(l, at, e, EV_FILE_READ)
	{
		const struct ev_file_read *r = (const void *)e->hdr;

		if (r->hdr.ts < from || r->hdr.ts >= to)
			continue;
		while (i < n && (u64)live__num(l, "file", i, 2) < r->hdr.ts)
			i++;
		if (i == n || r->hdr.ts < (u64)live__num(l, "file", i, 1))
			continue; /* of another file, before or after */
		assert_int_equal(r->ino, (u64)live__num(l, "file", i, 0));
		assert_true(r->dur <= (u64)(live__num(l, "file", i, 2) - live__num(l, "file", i, 1)));
		same++;
	}
	return same;
}

static void test_a_flood_of_calls_is_left_out_and_lock_waits_are_not(void **state)
{
	const char *what = "system calls other than lock waits";
	const struct ev_shed *out, *again;
	struct live l;

	live__init(&l);
	live__start(&l, "polls", "3000", "13000", l.dir, NULL);
	live__record(&l, "--frame", "none", "--max-overhead", "3", NULL);
	live__run(&l);
	out = shed(&l, true, what);
	again = shed(&l, false, what);
	assert_non_null(out);
	assert_non_null(again);
	assert_true(out->hdr.ts < (u64)live__num(&l, "quiet", 0, 0));
	assert_true(again->hdr.ts < (u64)live__num(&l, "over", 0, 0));
	assert_int_equal(model__thinned_in(l.model, out->hdr.ts + NSEC_PER_SEC, again->hdr.ts) &
				 (1u << CLASS_SYSCALL | 1u << CLASS_FILE | 1u << CLASS_ALLOC | 1u << CLASS_LOCK),
		1u << CLASS_SYSCALL | 1u << CLASS_FILE | 1u << CLASS_ALLOC);
	same_waits(&l, out->hdr.ts + NSEC_PER_SEC, again->hdr.ts - NSEC_PER_SEC);
	same_waits(&l, again->hdr.ts, UINT64_MAX);
	assert_int_equal(same_reads(&l, out->hdr.ts + NSEC_PER_SEC, again->hdr.ts - NSEC_PER_SEC), 0);
	assert_true(same_reads(&l, again->hdr.ts, UINT64_MAX) > 20);
	live__free(&l);
}

/* the time of the last frame, ns after the flood began */
static s64 last_frame_ns(const struct live *l)
{
	const struct live_event *e;
	u64 last = 0;

	live__each(l, at, e, EV_FRAME) last = max(last, e->hdr->ts);
	return (s64)(last - (u64)live__num(l, "hot", 0, 0));
}

#define FLOOD_S  "5" /* a machine that is busy notices later than after 2 s */
#define FLOOD_NS (5 * (s64)NSEC_PER_SEC)

/* each hit of it costs 14 us: that it is called often turns out while it is recorded */
static void test_a_stepped_frame_source_that_gets_hot_is_left_and_said_and_not_if_it_was_named(void **state)
{
	const char *said = "each single-stepped: no frames are recorded from here on";
	char named[PATH_MAX + 64];
	struct live l;

	snprintf(named, sizeof(named), "uprobe:%s:SDL_UpdateWindowSurface", live__target_path("hot_source"));
	live__init(&l);
	live__start(&l, "hot_source", FLOOD_S, NULL);
	live__record(&l, "--frame", "auto", NULL);
	live__run(&l);
	assert_non_null(strstr(l.said, said));
	assert_non_null(strstr(l.said, "--frame uprobe:hot_source:SDL_UpdateWindowSurface records them"));
	assert_non_null(strstr(l.said, "no other frame source was found"));
	/* 2 s of it at least, to the end of a window; and not to its end */
	assert_in_range(last_frame_ns(&l), 1900 * NSEC_PER_MSEC, FLOOD_NS);
	assert_true(live__count(&l, EV_FRAME) > 2000);
	assert_true((s64)live__count(&l, EV_FRAME) < live__num(&l, "hot", 0, 2));
	live__free(&l);

	live__init(&l);
	live__start(&l, "hot_source", "3", NULL);
	live__record(&l, "--frame", named, NULL);
	live__run(&l);
	assert_null(strstr(l.said, said));
	assert_int_equal(live__count(&l, EV_FRAME), 50 + live__num(&l, "hot", 0, 2));
	live__free(&l);
}

/* how many frames are from that function, and the first of them */
static size_t frames_by(const struct live *l, const char *function, u64 *first)
{
	const struct live_event *e;
	char key[24];
	size_t n = 0;

	live__each(l, at, e, EV_FRAME)
	{
		const char *label;

		snprintf(key, sizeof(key), "probe.%u", ((const struct ev_frame *)e->hdr)->site);
		label = model__info(l->model, key);
		assert_non_null(label);
		if (strstr(label, function) && !n++)
			*first = e->hdr->ts;
	}
	return n;
}

static void test_after_a_hot_frame_source_the_next_that_fires_is_recorded_and_said(void **state)
{
	const char *taken = "frames are from uprobe:hot_layers:SDL_UpdateWindowSurface, from ";
	u64 hot = 0, next = 0;
	struct live l;
	char *json;

	live__init(&l);
	live__start(&l, "hot_layers", FLOOD_S, NULL);
	live__record(&l, "--frame", "auto", NULL);
	live__run(&l);
	assert_non_null(strstr(l.said, "uprobe:hot_layers:SDL_RenderPresent has been called"));
	assert_non_null(strstr(l.said, taken));
	assert_true(frames_by(&l, "SDL_RenderPresent", &hot) > 2000);
	assert_true(frames_by(&l, "SDL_UpdateWindowSurface", &next) > 10);
	assert_true(hot < next);
	assert_true(last_frame_ns(&l) > FLOOD_NS - 500 * (s64)NSEC_PER_MSEC);
	json = info_json(&l);
	assert_non_null(strstr(json, "\"frame_source\": \"uprobe:hot_layers:SDL_UpdateWindowSurface\""));
	assert_non_null(strstr(json, "\"frame_source_left\": \"uprobe:hot_layers:SDL_RenderPresent until "));
	free(json);
	live__free(&l);
}

static void test_the_estimate_counts_every_call_of_the_allocator(void **state)
{
	const struct live_event *e;
	u64 hits = 0, ns = 0;
	struct live l;

	live__init(&l);
	live__start(&l, "alloc", NULL);
	live__record(&l, "--frame", "none", "--alloc", "all", NULL);
	live__run(&l);
	live__each(&l, at, e, EV_EFFECT)
	{
		const struct ev_effect *f = (const void *)e->hdr;

		if (f->class != CLASS_ALLOC)
			continue;
		assert_true(f->hits >= hits && f->ns >= ns);
		hits = f->hits;
		ns = f->ns;
	}
	assert_true(hits >= live__count(&l, EV_ALLOC) + live__count(&l, EV_FREE));
	assert_true(ns > hits * 50); /* a trap takes longer, anywhere */
	assert_true(model__info(l.model, "cost.calibrated") && !strcmp(model__info(l.model, "cost.calibrated"), "yes"));
	live__free(&l);
}

/* a frame probe where no instruction is emulated */
static void test_the_estimate_knows_that_a_frame_probe_is_single_stepped(void **state)
{
	const struct ev_effect *last = NULL;
	const struct live_event *e;
	u64 emulated, stepped;
	char frame[512];
	struct live l;

	live__init(&l);
	live__start(&l, "stepped", NULL);
	snprintf(frame, sizeof(frame), "uprobe:%s:stepped", live__target_path("stepped"));
	live__record(&l, "--frame", frame, NULL);
	live__run(&l);
	live__each(&l, at, e, EV_EFFECT)
	{
		if (((const struct ev_effect *)e->hdr)->class == CLASS_FRAME)
			last = (const void *)e->hdr;
	}
	assert_non_null(last);
	emulated = strtoull(model__info(l.model, "cost.probe_ns"), NULL, 10);
	stepped = strtoull(model__info(l.model, "cost.stepped_probe_ns"), NULL, 10);
	assert_true(last->hits >= live__count(&l, EV_FRAME) && last->hits > 0);
	assert_true(stepped > 2 * emulated);
	assert_true(last->ns >= last->hits * stepped);
	live__free(&l);
}

static void test_the_kernels_statistics_count_the_runs_of_each_program(void **state)
{
	unsigned long long runs = 0, ns = 0;
	const char *value;
	struct live l;

	live__init(&l);
	live__start(&l, "file", l.dir, NULL);
	live__record(&l, "--frame", "none", "--bpf-stats", NULL);
	live__run(&l);
	value = model__info(l.model, "cost.program.syscall__enter");
	assert_non_null(value);
	assert_int_equal(sscanf(value, "runs=%llu ns=%llu", &runs, &ns), 2);
	assert_true(runs >= live__count(&l, EV_FILE_READ));
	assert_true(ns >= runs);
	live__free(&l);
}

static void test_redframe_waits_for_its_turn_and_the_program_that_it_starts_need_not(void **state)
{
	struct live l;
	char *text;

	live__init(&l);
	live__start(&l, "file", l.dir, NULL);
	live__record(&l, "--frame", "none", NULL);
	assert_int_equal(sched_getscheduler(l.target), SCHED_OTHER);
	assert_int_equal(sched_getscheduler(l.redframe), SCHED_BATCH);
	live__run(&l);
	live__free(&l);

	live__init(&l);
	text = live__output(&l, NULL,
		(char *const[]){(char *)live__program(), "record", "-o", l.recording, "--no-trace", "--frame", "none",
			"--", "sh", "-c", "sleep 1; chrt -p $$", NULL});
	assert_non_null(strstr(text, "SCHED_OTHER"));
	free(text);
	live__free(&l);
}

/* threads of redframe are other processes' to the analysis; what it reads and writes is in no record */
static void test_redframe_itself_never_appears_as_the_games(void **state)
{
	const struct live_event *e;
	u32 redframe;
	struct live l;

	live__init(&l);
	live__start(&l, "file", l.dir, NULL);
	live__record(&l, "--frame", "none", NULL);
	redframe = (u32)l.redframe;
	live__run(&l);
	assert_true(redframe > 0);
	for (size_t i = 0; i < l.n; i++) {
		e = &l.ev[i];
		if (e->hdr->tid != redframe)
			continue;
		switch (e->hdr->kind) {
		case EV_SWITCH:
			assert_false(((const struct ev_switch *)e->hdr)->flags & SWITCH_GAME);
			break;
		case EV_FAULT:
		case EV_LOCK_WAIT:
		case EV_FILE_READ:
		case EV_FILE_WRITE:
		case EV_FILE_META:
		case EV_ALLOC:
		case EV_SYSCALL:
		case EV_SAMPLE:
			fail_msg("a %s record of redframe's own thread", ev__desc(e->hdr->kind)->name);
		}
		assert_false(model__recorded(l.model, redframe));
	}
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_a_storm_of_allocations_is_left_out_and_frames_say_so),
	cmocka_unit_test(test_without_a_bound_nothing_is_left_out),
	cmocka_unit_test(test_faults_in_the_kernel_are_left_out_while_other_processes_pay_for_them),
	cmocka_unit_test(test_a_flood_of_calls_is_left_out_and_lock_waits_are_not),
	cmocka_unit_test(test_a_stepped_frame_source_that_gets_hot_is_left_and_said_and_not_if_it_was_named),
	cmocka_unit_test(test_after_a_hot_frame_source_the_next_that_fires_is_recorded_and_said),
	cmocka_unit_test(test_the_estimate_counts_every_call_of_the_allocator),
	cmocka_unit_test(test_the_estimate_knows_that_a_frame_probe_is_single_stepped),
	cmocka_unit_test(test_the_kernels_statistics_count_the_runs_of_each_program),
	cmocka_unit_test(test_redframe_waits_for_its_turn_and_the_program_that_it_starts_need_not),
	cmocka_unit_test(test_redframe_itself_never_appears_as_the_games),
};
LIVE_MAIN(tests)
