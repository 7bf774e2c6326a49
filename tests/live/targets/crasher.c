// SPDX-License-Identifier: GPL-2.0-only
/* Preloaded into redframe, not into a game: libelf as it may be on a file that is made to harm it. It crashes on the
 * one that is called as CRASH_ON in the environment says. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *elf_begin(int fd, int cmd, void *ref);

void *elf_begin(int fd, int cmd, void *ref)
{
	void *(*real)(int, int, void *) = (void *(*)(int, int, void *))dlsym(RTLD_NEXT, "elf_begin");
	char link[64], path[4096] = "";
	const char *name = getenv("CRASH_ON");

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof(path) - 1) > 0 && name && strrchr(path, '/') &&
		!strcmp(strrchr(path, '/') + 1, name))
		*(volatile int *)8 = 1;
	return real(fd, cmd, ref);
}
