// SPDX-License-Identifier: GPL-2.0-only
/* hammer N: allocates and frees N times as fast as it can. */
#include "target.h"

static void *volatile keep;

int main(int argc, char **argv)
{
	long n;

	MUST(argc == 2);
	n = atol(argv[1]);
	target_ready();
	for (long i = 0; i < n; i++) {
		keep = malloc(64 + i % 64);
		free(keep);
	}
	printf("calls %ld\n", n);
	target_done();
	return 0;
}
