// SPDX-License-Identifier: GPL-2.0-only
/* a library that the game loads late */
int plug(int n);
__attribute__((noinline)) int plug(int n)
{
	__asm__ volatile("");
	return n + 1;
}
