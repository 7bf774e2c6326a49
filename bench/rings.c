/* SPDX-License-Identifier: GPL-2.0-only
 *
 * rings: drain and merge of a machine with many CPUs, simulated. Each CPU makes records at the same rate, some held up
 * between the clock and the ring; a pass comes each 5 ms, and finds in each ring what its CPUs have made since, in the
 * order of their reservations. Prints how many records a second one core of this machine gets through drain (into
 * a file), and through drain and merge (live, as soak does it): at more than that it breaks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "drain.h"
#include "merge.h"
#include "recording.h"

#define PASS_NS    (5 * NSEC_PER_MSEC)
#define RECORDS    4000000u
#define HELD_UP    997 /* one record in so many comes … */
#define HELD_UP_NS 40000
#define RATE       10000000ULL /* records a second that are offered */
#define CPUS_MOST  128
#define START      NSEC_PER_SEC

struct made {
	u64 at; /* when it got its place in the ring */
	u32 ring;
	struct ev_switch rec;
};

struct sim {
	struct made *v; /* in the order in which drain finds them */
	u32 n;
	struct merge *merge; /* NULL: into a file */
	u64 out, last;
	bool disordered;
};

static int by_pass(const void *a, const void *b)
{
	const struct made *x = a, *y = b;
	u64 px = x->at / PASS_NS, py = y->at / PASS_NS;

	if (px != py)
		return px < py ? -1 : 1;
	if (x->ring != y->ring)
		return x->ring < y->ring ? -1 : 1;
	return x->at != y->at ? (x->at < y->at ? -1 : 1) : (int)x->rec.hdr.cpu - (int)y->rec.hdr.cpu;
}

static void make(struct sim *s, u32 cpus, u32 rings)
{
	u64 seed = 1;

	for (u32 i = 0; i < s->n; i++) {
		u64 ts = START + i * NSEC_PER_SEC / RATE;
		u32 cpu = i % cpus;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		s->v[i] = (struct made){.at = ts + 60 + (seed >> 40) % 100 + (i % HELD_UP ? 0 : HELD_UP_NS),
			.ring = cpu * rings / cpus,
			.rec = {.hdr = {.ts = ts,
					.tid = i,
					.cpu = (u16)cpu,
					.kind = EV_SWITCH,
					.words = sizeof(struct ev_switch) / 8},
				.next_tid = i + 1}};
	}
	qsort(s->v, s->n, sizeof(*s->v), by_pass);
}

static int into_merge(void *arg, const struct ev_hdr *rec)
{
	struct sim *s = arg;
	int err = merge__push(s->merge, rec);

	while (!err && (rec = merge__pop(s->merge, false))) {
		s->disordered |= rec->ts < s->last;
		s->last = rec->ts;
		s->out++;
	}
	return err;
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Records a second; 0 after an error. */
static double run(struct sim *s, bool live)
{
	struct recording_writer w;
	struct drain d = {.out = &w};
	struct drain_ring ring = {.drain = &d};
	double before;
	int err = 0;

	s->out = s->last = 0;
	s->merge = live ? merge__new(MERGE_WINDOW_NS, MERGE_MAX_BYTES) : NULL;
	if (live)
		recording__to(&w, into_merge, s);
	else
		err = recording__create(&w, open("/dev/null", O_WRONLY | O_CLOEXEC), START);
	before = cpu_seconds();
	for (u32 i = 0; i < s->n && !err; i++)
		err = drain__take(&ring, &s->v[i].rec, sizeof(s->v[i].rec));
	before = cpu_seconds() - before;
	if (live && merge__late(s->merge))
		s->disordered = true;
	merge__free(s->merge);
	recording__finish(&w, false);
	return err ? 0 : s->n / before;
}

static int row(struct sim *s, u32 cpus, u32 rings)
{
	double drain, live;

	make(s, cpus, rings);
	drain = run(s, false);
	live = run(s, true);
	if (!drain || !live || s->disordered) {
		fprintf(stderr, "rings: %u CPUs in %u rings: %s\n", cpus, rings,
			s->disordered ? "out of order" : "it failed");
		return 1;
	}
	printf("| %u | %u | %.1f M/s | %.1f M/s | %s |\n", cpus, rings, drain / 1e6, live / 1e6,
		live >= RATE ? "yes" : "no");
	fflush(stdout);
	return 0;
}

int main(void)
{
	static const u32 cases[][2] = {{2, 1}, {2, 2}, {16, 1}, {16, 4}, {64, 1}, {64, 16}, {64, 64}, {CPUS_MOST, 1},
		{CPUS_MOST, 32}, {CPUS_MOST, CPUS_MOST}};
	struct sim s = {.n = RECORDS, .v = malloc(RECORDS * sizeof(*s.v))};
	int failed = 0;

	if (!s.v)
		return 1;
	printf("| CPUs | rings | drain breaks at | drain and merge break at | %.0f M/s held by one core |\n"
	       "|---|---|---|---|---|\n",
		RATE / 1e6);
	for (size_t i = 0; i < ARRAY_SIZE(cases) && !failed; i++)
		failed = row(&s, cases[i][0], cases[i][1]);
	free(s.v);
	return failed;
}
