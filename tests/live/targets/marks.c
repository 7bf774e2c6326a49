// SPDX-License-Identifier: GPL-2.0-only
/* marks MODE …: markers of other makers, as compilers and hands write them.
 *   many    engine:swap in 5,000 places, every other one with a second semaphore; each is passed once
 *   some    engine:some in 300 places, each passed once
 *   odd N   N rounds of odd:WHERE, whose number WHERE tells; see odd()
 * Lines: semaphore ADDRESS, of either. */
#include <sys/mman.h>
#include "target.h"

unsigned short semaphore_a __attribute__((section(".probes"))), semaphore_b __attribute__((section(".probes")));

#define MARK(provider, name, semaphore, args)                                                                          \
	"990: nop\n"                                                                                                   \
	".pushsection .note.stapsdt,\"\",\"note\"\n"                                                                   \
	".balign 4\n"                                                                                                  \
	".4byte 992f-991f, 994f-993f, 3\n"                                                                             \
	"991: .asciz \"stapsdt\"\n"                                                                                    \
	"992: .balign 4\n"                                                                                             \
	"993: .8byte 990b, 0, " semaphore "\n"                                                                         \
	".asciz \"" provider "\"\n"                                                                                    \
	".asciz \"" name "\"\n"                                                                                        \
	".asciz \"" args "\"\n"                                                                                        \
	"994: .balign 4\n"                                                                                             \
	".popsection\n"

/* the number is in rdi, and one more at each place */
long many(long number);
__asm__(".text\n.globl many\n.type many,@function\nmany:\n.rept 2500\n" MARK(
	"engine", "swap", "semaphore_a", "8@%rdi") "inc %rdi\n" MARK("engine", "swap", "semaphore_b",
	"8@%rdi") "inc %rdi\n"
		  ".endr\nmov %rdi,%rax\nret\n.size many,.-many\n");

long some(long number);
__asm__(".text\n.globl some\n.type some,@function\nsome:\n.rept 300\n" MARK(
	"engine", "some", "0", "8@%rdi") "inc %rdi\n"
					 ".endr\nmov %rdi,%rax\nret\n.size some,.-some\n");

#define ODD(name, args) MARK("odd", name, "0", args)
__attribute__((noinline)) static void odd(long i)
{
	struct {
		int below;
		int pad;
		long at[4];
	} m = {.below = (int)-i, .at = {0, 1000 + i, 0, 2000 + i}};

	__asm__ volatile(ODD("byte", "1@%%al") : : "a"(0x7777777777777700 | (i & 0xff)));
	__asm__ volatile(ODD("high", "1@%%ah") : : "a"(0x7777777777770011 | (i & 0xff) << 8));
	__asm__ volatile(ODD("word", "-2@%%ax") : : "a"(0x7777777777770000 | ((unsigned long)-i & 0xffff)));
	__asm__ volatile(ODD("memory", "8@8(%%rdx)") : : "d"(m.at), "m"(m));
	__asm__ volatile(ODD("indexed", "8@(%%rdx,%%rcx,8)") : : "d"(m.at), "c"(3L), "m"(m));
	__asm__ volatile(ODD("below", "-4@-8(%%rdx)") : : "d"(m.at), "m"(m));
	__asm__ volatile(ODD("constant", "8@$42") : :);
	__asm__ volatile(ODD("negative", "-4@$-7") : :);
	__asm__ volatile(ODD("vector", "8@%%xmm0") : :);
	__asm__ volatile(ODD("relative", "8@semaphore_a(%%rip)") : :);
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 0;

	printf("semaphore %lu\nsemaphore %lu\n", (unsigned long)&semaphore_a, (unsigned long)&semaphore_b);
	target_ready();
	if (argc > 1 && !strcmp(argv[1], "many"))
		MUST(many(0) == 5000);
	if (argc > 1 && !strcmp(argv[1], "some"))
		MUST(some(0) == 300);
	for (int i = 0; i < n; i++)
		odd(i);
	target_done();
	return 0;
}
