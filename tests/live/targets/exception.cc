// SPDX-License-Identifier: GPL-2.0-only
/* exception: ten exceptions out of job(). Lines: caught N */
#include "target.h"

extern "C" __attribute__((noinline)) int job(int n)
{
	__asm__ volatile("");
	if (n >= 0)
		throw n;
	return n;
}

int main()
{
	int caught = 0;

	target_ready();
	for (int i = 0; i < 10; i++) {
		try {
			job(i);
		} catch (int) {
			caught++;
		}
	}
	printf("caught %d\n", caught);
	target_done();
	return 0;
}
