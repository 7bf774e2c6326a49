// SPDX-License-Identifier: GPL-2.0-only
/* alloc_sites: allocates in two functions, small blocks and middling ones, and of a third kind large ones. Lines: site
 * FUNCTION BYTES. With LINGER it stays for a moment longer. */
#include "redframe.h"
#include "target.h"

#define SMALLS   100000
#define MIDDLING 4000

static void *volatile keep;

__attribute__((noinline)) static void parse_names(void)
{
	for (int i = 0; i < SMALLS; i++) {
		keep = malloc(64);
		free(keep);
	}
}

__attribute__((noinline)) static void load_chunks(void)
{
	for (int i = 0; i < MIDDLING; i++) {
		keep = malloc(2048 + (size_t)(i % 2) * 4096);
		free(keep);
	}
}

__attribute__((noinline)) static void load_level(void)
{
	keep = malloc(3 << 20);
	free(keep);
}

int main(void)
{
	keep = malloc(1); /* the heap is there */
	target_ready();
	REDFRAME_FRAME(1);
	parse_names();
	load_chunks();
	load_level();
	REDFRAME_FRAME(2);
	printf("site parse_names %d\nsite load_chunks %d\nsite load_level %d\n", SMALLS * 64, MIDDLING * 4096, 3 << 20);
	if (getenv("LINGER"))
		usleep(1500000);
	target_done();
	return 0;
}
