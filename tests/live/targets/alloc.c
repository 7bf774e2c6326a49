// SPDX-License-Identifier: GPL-2.0-only
/* alloc: calls of the allocator of known sizes. Lines: window BEGIN END (BOOTTIME; nothing else is allocated between
 * them); alloc FN SIZE COUNT; frees COUNT; bytes SUM; code ADDRESS SIZE (within which 1 MiB is asked for). The frame
 * markers around the work make redframe tell what it had summed up. */
#include <malloc.h>
#include "redframe.h"
#include "target.h"

#ifdef OWN_MALLOC
#include "own_malloc.h"
#endif

#define MALLOCS 10000
#define OTHERS  100
#define SMALL   777

static void *blocks[MALLOCS];
static void *volatile keep;
static void *volatile nothing; /* the compiler makes a malloc of realloc(NULL, …) */

__attribute__((noinline)) static void *large_block(void)
{
	keep = malloc(1 << 20);
	return keep;
}
static void others(void)
{
	void *p;

	for (int i = 0; i < OTHERS; i++) {
		keep = p = calloc(7, 111);
		free(p);
		keep = p = realloc(nothing, 1555);
		keep = p = realloc(p, 3111);
		free(p);
		keep = p = aligned_alloc(64, 4224);
		keep = malloc(4224); /* no inner call, though it looks like one */
		free(keep);
		free(p);
		MUST(!posix_memalign(&p, 64, 5001));
		keep = p;
		free(p);
		keep = p = memalign(128, 6001);
		free(p);
		free(NULL);
	}
}

int main(void)
{
	unsigned long long begin, end;

	for (int i = 0; i < MALLOCS; i++)
		blocks[i] = &blocks[i];
	keep = malloc(1); /* the heap is there */
	target_ready();
	REDFRAME_FRAME(1);
	begin = boot_ns();
	for (int i = 0; i < MALLOCS; i++)
		blocks[i] = malloc(SMALL);
	for (int i = 0; i < MALLOCS; i++)
		free(blocks[i]);
	others();
	free(large_block());
	end = boot_ns();
	REDFRAME_FRAME(2);
	printf("window %llu %llu\n", begin, end);
	printf("alloc malloc 777 %d\nalloc calloc 777 %d\n", MALLOCS, OTHERS);
	printf("alloc realloc 1555 %d\nalloc realloc 3111 %d\n", OTHERS, OTHERS);
	printf("alloc aligned 4224 %d\nalloc posix_memalign 5001 %d\nalloc aligned 6001 %d\n", OTHERS, OTHERS, OTHERS);
	printf("alloc malloc 4224 %d\nalloc malloc 1048576 1\n", OTHERS);
	printf("frees %d\n", MALLOCS + 6 * OTHERS + 1);
	printf("code %p 64\n", (void *)large_block);
	target_done();
	return 0;
}
