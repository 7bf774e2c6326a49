// SPDX-License-Identifier: GPL-2.0-only
/* stepped: runs the kernel's code for games ([vdso]), then calls a function whose probe the kernel cannot emulate, so
 * that its instruction runs elsewhere ([uprobes]). Lines: vdso START END, uprobes START END, stepped ADDRESS */
#include <stdint.h>
#include "target.h"

#define VDSO_NS    300000000ULL
#define STEPPED_NS 1300000000ULL /* redframe looks at the mappings once a second */

int stepped(int n);
/* test is neither push, nop, call nor jump */
__asm__(".pushsection .text\n"
	".globl stepped\n"
	".type stepped, @function\n"
	"stepped:\n"
	".cfi_startproc\n"
	"	test %edi, %edi\n"
	"	lea 1(%rdi), %eax\n"
	"	ret\n"
	".cfi_endproc\n"
	".size stepped, .-stepped\n"
	".popsection\n");

static void tell(const char *name, const char *mapping)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long long start, end;
	char line[512];

	MUST(f);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, mapping) && sscanf(line, "%llx-%llx", &start, &end) == 2)
			printf("%s %llu %llu\n", name, start, end);
	fclose(f);
}

int main(void)
{
	unsigned long long until;
	volatile int n = 0;

	target_ready();
	until = boot_ns() + VDSO_NS;
	while (boot_ns() < until)
		;
	until += STEPPED_NS;
	while (boot_ns() < until)
		for (int i = 0; i < 200; i++)
			n = stepped(n) & 0xff;
	tell("vdso", "[vdso]");
	tell("uprobes", "[uprobes]");
	printf("stepped %llu\n", (unsigned long long)(uintptr_t)stepped);
	target_done();
	return 0;
}
