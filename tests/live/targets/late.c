// SPDX-License-Identifier: GPL-2.0-only
/* late LIBRARY [hot]: marks frames itself, loads LIBRARY, and calls its tick() every 0.5 ms, 1,000 times, and its
 * late_alloc(1000000 + i) every tenth time; with hot, that alone, many thousand times a second for 2 s. Lines: loaded
 * WHEN; then called WHEN for each call of tick(), all in ns since boot. */
#include <dlfcn.h>
#include "redframe.h"
#include "target.h"

#define CALLS 1000

#define HOT_NS 2000000000ULL

static void call_often(void (*alloc)(unsigned long), unsigned long long until)
{
	while (boot_ns() < until) {
		for (int i = 0; i < 30; i++)
			alloc(2000000);
		usleep(500);
	}
}

int main(int argc, char **argv)
{
	static unsigned long long when[CALLS];
	unsigned long long loaded;
	void (*alloc)(unsigned long);
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
	*(void **)&alloc = dlsym(lib, "late_alloc");
	MUST(tick && alloc);
	if (argc > 2)
		call_often(alloc, loaded + HOT_NS);
	for (int i = 0; i < CALLS; i++) {
		when[i] = boot_ns();
		tick(i);
		if (argc < 3 && i % 10 == 0)
			alloc(1000000ul + (unsigned long)i);
		usleep(500);
	}
	usleep(1000000); /* a busy machine looks at the library later */
	REDFRAME_FRAME(2);
	printf("loaded %llu\n", loaded);
	for (int i = 0; i < CALLS; i++)
		printf("called %llu\n", when[i]);
	target_done();
	return 0;
}
