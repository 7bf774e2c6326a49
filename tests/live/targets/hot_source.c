// SPDX-License-Identifier: GPL-2.0-only
/* hot_source SECONDS: presents by a function whose probe the kernel cannot emulate: first 50 frames in a second, as a
 * menu does, then, without a limit, thousands. hot_layers presents through a second function as well, which it can
 * emulate. Lines: hot BEGIN END CALLS */
#include "target.h"

#define PRESENT(name, first)                                                                                           \
	void name(void);                                                                                               \
	__asm__(".pushsection .text\n"                                                                                 \
		".globl " #name "\n"                                                                                   \
		".type " #name ", @function\n" #name ":\n"                                                             \
		".cfi_startproc\n" first "	mov $1, %eax\n"                                                             \
		"	ret\n"                                                                                               \
		".cfi_endproc\n"                                                                                       \
		".size " #name ", .-" #name "\n"                                                                       \
		".popsection\n")

/* mov is neither push, nop, call nor jump, and what follows it does not return here */
#ifdef LAYERED
PRESENT(SDL_RenderPresent, "");
PRESENT(SDL_UpdateWindowSurface, "	nop\n");
#else
PRESENT(SDL_UpdateWindowSurface, "");
#endif

static void present(void)
{
#ifdef LAYERED
	SDL_RenderPresent();
#endif
	SDL_UpdateWindowSurface();
}

int main(int argc, char **argv)
{
	unsigned long long begin, until;
	int calls = 0;

	MUST(argc == 2);
	target_ready();
	for (int i = 0; i < 50; i++) {
		present();
		usleep(20000);
	}
	begin = boot_ns();
	until = begin + strtoull(argv[1], NULL, 10) * 1000000000ULL;
	while (boot_ns() < until) { /* several at once: a machine that is busy wakes nobody 1,000 times a second */
		for (int i = 0; i < 10; i++, calls++)
			present();
		usleep(1000);
	}
	printf("hot %llu %llu %d\n", begin, until, calls);
	target_done();
	return 0;
}
