// SPDX-License-Identifier: GPL-2.0-only
/* A library with markers of its own, as an engine's plugin has them, and with an allocator that no probe is cheap on.
 */
#include "redframe.h"

void late_alloc(unsigned long size);
/* mov is neither push, nop, call nor jump */
__asm__(".pushsection .text\n"
	".globl late_alloc\n"
	".type late_alloc, @function\n"
	"late_alloc:\n"
	".cfi_startproc\n"
	"	mov $1, %eax\n"
	"	ret\n"
	".cfi_endproc\n"
	".size late_alloc, .-late_alloc\n"
	".popsection\n");

void tick(int number);
void tick(int number)
{
	REDFRAME_FRAME_STREAM(1000 + number, 7);
	REDFRAME_MESSAGEF("tick %d", number);
}
