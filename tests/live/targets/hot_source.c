// SPDX-License-Identifier: GPL-2.0-only
/* hot_source: presents by a function whose probe the kernel cannot emulate: first 50 frames in a second, as a menu
 * does, then, without a limit, thousands. Lines: hot BEGIN END CALLS */
#include "target.h"

#define HOT_NS 3500000000ULL

void SDL_UpdateWindowSurface(void);
/* mov is neither push, nop, call nor jump, and what follows it does not return here */
__asm__(".pushsection .text\n"
	".globl SDL_UpdateWindowSurface\n"
	".type SDL_UpdateWindowSurface, @function\n"
	"SDL_UpdateWindowSurface:\n"
	".cfi_startproc\n"
	"	mov $1, %eax\n"
	"	ret\n"
	".cfi_endproc\n"
	".size SDL_UpdateWindowSurface, .-SDL_UpdateWindowSurface\n"
	".popsection\n");

int main(void)
{
	unsigned long long begin, until;
	int calls = 0;

	target_ready();
	for (int i = 0; i < 50; i++) {
		SDL_UpdateWindowSurface();
		usleep(20000);
	}
	begin = boot_ns();
	until = begin + HOT_NS;
	while (boot_ns() < until) { /* several at once: a machine that is busy wakes nobody 1,000 times a second */
		for (int i = 0; i < 10; i++, calls++)
			SDL_UpdateWindowSurface();
		usleep(1000);
	}
	printf("hot %llu %llu %d\n", begin, until, calls);
	target_done();
	return 0;
}
