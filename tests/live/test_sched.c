// SPDX-License-Identifier: GPL-2.0-only
/* Switches, wakeups, and the life of threads. */
#include <stdlib.h>
#include <unistd.h>

#include "live.h"

#define MAX_CPUS 1024

static void record(struct live *l)
{
	live__init(l);
	live__start(l, "sched", NULL);
	live__record(l, "--frame", "none", NULL);
	live__run(l);
}

/* Some kernels hide from every tracer that a thread of pid 1 leaves its CPU: there, and nowhere else, a record is
 * missing. */
static bool of_pid_1(const struct live *l, u32 tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/1/task/%u", tid);
	return !access(path, F_OK) || model__thread(l->model, tid)->tgid == 1;
}

static void test_switches_of_each_cpu_follow_on_each_other_without_a_gap(void **state)
{
	static u32 runs[MAX_CPUS];
	static bool known[MAX_CPUS];
	const struct live_event *e;
	size_t n = 0, hidden = 0;
	struct live l;

	record(&l);
	live__each(&l, at, e, EV_SWITCH)
	{
		const struct ev_switch *s = (const void *)e->hdr;
		u16 cpu = s->hdr.cpu;

		assert_true(cpu < MAX_CPUS);
		if (known[cpu] && runs[cpu] != s->hdr.tid) {
			if (!of_pid_1(&l, runs[cpu]))
				fail_msg("CPU %u: %u came, then %u left (%zu switches before)", cpu, runs[cpu],
					s->hdr.tid, n);
			hidden++;
		}
		runs[cpu] = s->next_tid;
		known[cpu] = true;
		n++;
	}
	assert_true(n > 200);
	if (hidden)
		fprintf(stderr, "%zu of %zu switches, all of threads of pid 1, are hidden by this kernel\n", hidden, n);
	live__free(&l);
}

/* what the game's own thread did is marked as such, and no other's */
static void test_switches_of_the_game_are_marked_and_no_others(void **state)
{
	const struct live_event *e;
	struct live l;
	size_t marked = 0;

	record(&l);
	live__each(&l, at, e, EV_SWITCH)
	{
		const struct ev_switch *s = (const void *)e->hdr;
		bool prev = model__thread(l.model, s->hdr.tid)->game, next = model__thread(l.model, s->next_tid)->game;

		if (s->hdr.tid && prev != !!(s->flags & SWITCH_GAME))
			fail_msg("thread %u: game %d, marked %d", s->hdr.tid, prev, !prev);
		if (s->next_tid && next != !!(s->flags & SWITCH_NEXT_GAME))
			fail_msg("next thread %u: game %d, marked %d", s->next_tid, next, !next);
		marked += prev;
	}
	assert_true(marked > 50);
	assert_int_equal(model__stats(l.model)->counts[CLASS_SCHED], marked);
	live__free(&l);
}

static void test_every_wakeup_out_of_a_sleep_has_its_waker(void **state)
{
	const struct live_event *e;
	struct live l;
	u32 partner, waker;
	size_t n = 0;

	record(&l);
	partner = live__tid(&l, live__num(&l, "partner", 0, 0));
	waker = live__tid(&l, live__num(&l, "main", 0, 0));
	live__each(&l, at, e, EV_WAKING)
	{
		const struct ev_waking *w = (const void *)e->hdr;

		if (w->hdr.tid != partner)
			continue;
		if (w->waker != waker || w->flags)
			fail_msg("wakeup %zu: waker %u, not %u; flags %#x", n, w->waker, waker, w->flags);
		n++;
	}
	assert_int_equal(n, live__num(&l, "wakes", 0, 0));
	live__free(&l);
}

static const struct live_event *only(const struct live *l, u8 kind, u32 tid)
{
	const struct live_event *e, *found = NULL;

	live__each(l, at, e, kind)
	{
		if (e->hdr->tid != tid)
			continue;
		if (found)
			fail_msg("thread %u has more than one %s", tid, ev__desc(kind)->name);
		found = e;
	}
	if (!found)
		fail_msg("thread %u has no %s", tid, ev__desc(kind)->name);
	return found;
}

static void test_every_thread_has_its_begin_name_and_end(void **state)
{
	struct live l;
	u32 game;

	record(&l);
	game = model__game(l.model);
	assert_int_equal(live__rows(&l, "thread"), 20);
	for (size_t i = 0; i < 20; i++) {
		/* the target's ids are the host's, or the model could not know threads that began later */
		u32 tid = (u32)live__num(&l, "thread", i, 0);
		const struct ev_fork *f = (const void *)only(&l, EV_FORK, tid)->hdr;
		const struct ev_rename *r = (const void *)only(&l, EV_RENAME, tid)->hdr;
		const struct ev_exit *x = (const void *)only(&l, EV_EXIT, tid)->hdr;
		char name[16];

		snprintf(name, sizeof(name), "Worker%02zu \033[m", i);
		assert_string_equal(r->comm, name);
		assert_int_equal(f->tgid, game);
		assert_int_equal(f->parent, game);
		assert_int_equal(x->tgid, game);
		assert_true(f->hdr.ts < r->hdr.ts && r->hdr.ts < x->hdr.ts);
		assert_true(model__thread(l.model, tid)->game && model__thread(l.model, tid)->exited);
	}
	live__free(&l);
}

static void test_a_child_that_runs_another_program_is_seen_and_not_taken_for_the_game(void **state)
{
	struct live l;
	u32 child;
	const struct ev_exec *x;

	record(&l);
	child = (u32)live__num(&l, "child", 0, 0);
	assert_int_equal(((const struct ev_fork *)only(&l, EV_FORK, child)->hdr)->parent, model__game(l.model));
	x = (const void *)only(&l, EV_EXEC, child)->hdr;
	assert_int_equal(x->tgid, child);
	assert_string_equal(x->comm, "sleep");
	only(&l, EV_EXIT, child);
	assert_false(model__thread(l.model, child)->game);
	for (size_t i = 0; i < l.n; i++)
		if (l.ev[i].hdr->tid == child && ev__desc(l.ev[i].hdr->kind)->class == CLASS_FILE)
			fail_msg("a file call of the child was recorded");
	live__free(&l);
}

static void test_every_move_of_a_thread_to_another_cpu_is_recorded(void **state)
{
	const struct live_event *e;
	struct live l;
	size_t i = 0;
	u32 mover;

	record(&l);
	if (!live__rows(&l, "move")) {
		live__free(&l);
		live__skip("only one CPU: nothing can move");
	}
	mover = (u32)live__num(&l, "mover", 0, 0);
	live__each(&l, at, e, EV_MIGRATE)
	{
		const struct ev_migrate *m = (const void *)e->hdr;

		if (m->hdr.tid != mover)
			continue;
		/* the first may be the way to where it begins */
		if (!i && m->from_cpu != (u32)live__num(&l, "move", 0, 0))
			continue;
		assert_int_equal(m->from_cpu, live__num(&l, "move", i, 0));
		assert_int_equal(m->to_cpu, live__num(&l, "move", i, 1));
		i++;
	}
	assert_int_equal(i, live__rows(&l, "move"));
	live__free(&l);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_switches_of_each_cpu_follow_on_each_other_without_a_gap),
	cmocka_unit_test(test_switches_of_the_game_are_marked_and_no_others),
	cmocka_unit_test(test_every_wakeup_out_of_a_sleep_has_its_waker),
	cmocka_unit_test(test_every_thread_has_its_begin_name_and_end),
	cmocka_unit_test(test_a_child_that_runs_another_program_is_seen_and_not_taken_for_the_game),
	cmocka_unit_test(test_every_move_of_a_thread_to_another_cpu_is_recorded),
};
LIVE_MAIN(tests)
