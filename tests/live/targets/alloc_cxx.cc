// SPDX-License-Identifier: GPL-2.0-only
/* alloc_cxx: operators new and delete, which call malloc and free. Lines as in alloc.c. */
#include <new>
#include "target.h"

static void *volatile keep;

int main(void)
{
	unsigned long long begin, end;

	keep = ::operator new(1);
	target_ready();
	begin = boot_ns();
	for (int i = 0; i < 100; i++) {
		keep = ::operator new(4321);
		::operator delete(keep);
		keep = ::operator new[](5321);
		::operator delete[](keep);
		keep = ::operator new(2321, std::nothrow);
		::operator delete(keep, (size_t)2321);
		keep = new char[3321];
		delete[] (char *)keep;
	}
	end = boot_ns();
	printf("window %llu %llu\n", begin, end);
	printf("alloc new 4321 100\nalloc new[] 5321 100\nalloc new 2321 100\nalloc new[] 3321 100\n");
	printf("frees 400\n");
	target_done();
	return 0;
}
