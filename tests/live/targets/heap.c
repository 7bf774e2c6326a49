// SPDX-License-Identifier: GPL-2.0-only
/* heap PIECES: leaves PIECES free blocks of 2 KiB between blocks in use, then asks for larger ones until the heap
 * grows. Lines: heap SIZE FREE TOP LARGEST, as mallinfo2 and the blocks' own sizes have it right before. */
#include <malloc.h>
#include "redframe.h"
#include "target.h"

#define PIECE 2000
#define ASKED 60000 /* below the size that gets a mapping of its own */

static void *pieces[100000];

static void fragment(int n)
{
	for (int i = 0; i < n; i++) {
		pieces[i] = malloc(PIECE);
		MUST(malloc(100)); /* keeps neighbours apart */
	}
	for (int i = 0; i < n; i++)
		free(pieces[i]);
}

int main(int argc, char **argv)
{
	struct mallinfo2 before;
	size_t piece;
	void *end;

	MUST(argc == 2);
	setvbuf(stdout, NULL, _IONBF, 0); /* no buffer on the heap */
	pieces[0] = malloc(PIECE);
	piece = malloc_usable_size(pieces[0]) + 8;
	fragment(atoi(argv[1]));
	target_ready();
	REDFRAME_FRAME(1);
	do {
		before = mallinfo2();
		end = sbrk(0);
		MUST(malloc(ASKED));
	} while (sbrk(0) == end);
	REDFRAME_FRAME(2);
	printf("heap %zu %zu %zu %zu\n", before.arena, before.fordblks - before.keepcost, before.keepcost, piece);
	target_done();
	return 0;
}
