// SPDX-License-Identifier: GPL-2.0-only
/* storm: frames of 5 ms of CPU time. For a second they allocate nothing, then for three seconds each has 25,000 calls
 * of malloc: 5 million a second. With an argument they have from the first on, for so many seconds. Lines: bare NS
 * (median of such a frame's CPU time before anything is recorded); storm BEGIN END (BOOTTIME); frame END CPU_NS STORM
 * for each. */
#include "redframe.h"
#include "target.h"

#define UNITS  25
#define CALLS  1000
#define FRAMES 4000

static struct {
	unsigned long long end, cpu_ns;
	int storm;
} frames[FRAMES];
static int n_frames;
static unsigned long spins_per_unit;
static volatile unsigned long sink;

static unsigned long long cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void spin(unsigned long n)
{
	while (n--)
		sink++;
}

static void frame(int storm)
{
	unsigned long long begun = cpu_ns();

	for (int u = 0; u < UNITS; u++) {
		for (int i = 0; storm && i < CALLS; i++) {
			void *volatile p = malloc(48);

			free(p);
		}
		spin(spins_per_unit);
	}
	REDFRAME_FRAME(n_frames);
	if (n_frames < FRAMES) {
		frames[n_frames].cpu_ns = cpu_ns() - begun;
		frames[n_frames].storm = storm;
		frames[n_frames++].end = boot_ns();
	}
}

static int by_value(const void *a, const void *b)
{
	unsigned long long x = *(const unsigned long long *)a, y = *(const unsigned long long *)b;

	return x < y ? -1 : x > y;
}

/* so that 25 units are 5 ms */
static void calibrate(void)
{
	unsigned long long begun = cpu_ns();

	spin(20000000);
	spins_per_unit = 20000000 * 175000.0 / (cpu_ns() - begun);
}

static unsigned long long bare(void)
{
	static unsigned long long took[200];

	for (int i = 0; i < 200; i++)
		frame(1);
	for (int i = 0; i < 200; i++)
		took[i] = frames[i].cpu_ns;
	qsort(took, 200, sizeof(took[0]), by_value);
	n_frames = 0;
	return took[100];
}

static unsigned long long run(int storm, unsigned long long for_ns)
{
	unsigned long long begun = boot_ns();

	while (boot_ns() - begun < for_ns)
		frame(storm);
	return begun;
}

int main(int argc, char **argv)
{
	unsigned long long ns, begun, end;

	calibrate();
	ns = bare();
	target_ready();
	if (argc < 2)
		run(0, 1000000000);
	begun = run(1, argc < 2 ? 3000000000 : strtoull(argv[1], NULL, 10) * 1000000000);
	end = boot_ns();
	printf("bare %llu\nstorm %llu %llu\n", ns, begun, end);
	for (int i = 0; i < n_frames; i++)
		printf("frame %llu %llu %d\n", frames[i].end, frames[i].cpu_ns, frames[i].storm);
	target_done();
	return 0;
}
