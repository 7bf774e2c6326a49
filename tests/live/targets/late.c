// SPDX-License-Identifier: GPL-2.0-only
/* late LIBRARY: marks frames itself, loads LIBRARY, and calls its tick() every 0.5 ms, 1,000 times. Lines: loaded WHEN;
 * then called WHEN for each call, all in ns since boot. */
#include <dlfcn.h>
#include "redframe.h"
#include "target.h"

#define CALLS 1000

int main(int argc, char **argv)
{
	static unsigned long long when[CALLS];
	unsigned long long loaded;
	void (*tick)(int);
	void *lib;

	MUST(argc > 1);
	target_ready();
	REDFRAME_FRAME(1);
	REDFRAME_MESSAGE("loading");
	lib = dlopen(argv[1], RTLD_NOW);
	loaded = boot_ns();
	MUST(lib);
	*(void **)&tick = dlsym(lib, "tick");
	MUST(tick);
	for (int i = 0; i < CALLS; i++) {
		when[i] = boot_ns();
		tick(i);
		usleep(500);
	}
	REDFRAME_FRAME(2);
	printf("loaded %llu\n", loaded);
	for (int i = 0; i < CALLS; i++)
		printf("called %llu\n", when[i]);
	target_done();
	return 0;
}
