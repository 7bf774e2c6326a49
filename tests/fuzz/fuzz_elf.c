// SPDX-License-Identifier: GPL-2.0-only
/*
 * libFuzzer: any bytes as a program that a game maps. Everything that redframe asks of an ELF file is asked, and each
 * USDT argument specification is parsed for both machines.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "elf_file.h"
#include "placement.h"
#include "usdt.h"

struct asked {
	struct elf_file *e;
	int placements;
};

static bool take_symbol(const struct elf_symbol *s, void *arg)
{
	struct asked *a = arg;
	struct placement p;

	/* a placement takes about 1 ms: enough of them to reach it, few enough to go on */
	if (a->placements > 4)
		return strlen(s->name) < 4096;
	a->placements++;
	if (!placement__of_symbol(a->e, s, 7, &p) && p.offset >= PLACEMENT_REACH)
		abort();
	return true;
}

static void parse_args(const char *spec)
{
	struct probe_arg args[PROBE_ARGS];
	char why[128];

	usdt__parse_args(EM_X86_64, spec, args, PROBE_ARGS, why, sizeof(why));
	usdt__parse_args(EM_AARCH64, spec, args, PROBE_ARGS, why, sizeof(why));
}

static bool take_note(const struct usdt_note *note, void *arg)
{
	struct asked *a = arg;

	if (note->offset >= a->e->size || note->semaphore >= a->e->size)
		abort();
	parse_args(note->args);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"malloc", "glXSwapBuffers", ""};
	struct elf_symbol found[3];
	struct elf_file e;
	struct asked a = {.e = &e};
	char *spec = strndup((const char *)data, size);
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (!spec || fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	parse_args(spec);
	free(spec);
	if (!elf_file__open(&e, fd)) {
		elf_file__find(&e, names, 3, true, found);
		elf_file__each_symbol(&e, ELF_DYNSYM, take_symbol, &a);
		elf_file__each_symbol(&e, ELF_SYMTAB, take_symbol, &a);
		usdt__each(&e, take_note, &a);
		elf_file__close(&e);
	}
	close(fd);
	return 0;
}
