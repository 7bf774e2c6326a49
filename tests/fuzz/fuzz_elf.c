// SPDX-License-Identifier: GPL-2.0-only
/*
 * libFuzzer: any bytes as a program that a game maps. Everything that redframe asks of an ELF file is asked, and each
 * USDT argument specification is parsed for both machines.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "eh_frame.h"
#include "elf_file.h"
#include "placement.h"
#include "usdt.h"
#include "vulkan.h"

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

/* Without a corpus it would take long to guess a header: every other input gets one that points into itself. */
static void make_header(uint8_t *data, size_t size)
{
	Elf64_Ehdr h;

	if (size < sizeof(h) || !(data[0] & 1))
		return;
	memcpy(&h, data, sizeof(h));
	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	h.e_machine = EM_X86_64;
	h.e_phentsize = sizeof(Elf64_Phdr);
	h.e_shentsize = sizeof(Elf64_Shdr);
	h.e_phoff %= size;
	h.e_shoff %= size;
	memcpy(data, &h, sizeof(h));
}

static void ask_everything(int fd)
{
	static const char *const names[] = {"malloc", "glXSwapBuffers", ""};
	struct elf_symbol found[3];
	struct elf_file e;
	struct asked a = {.e = &e};

	if (elf_file__open(&e, fd))
		return;
	elf_file__find(&e, names, 3, true, found);
	elf_file__each_symbol(&e, ELF_DYNSYM, take_symbol, &a);
	elf_file__each_symbol(&e, ELF_SYMTAB, take_symbol, &a);
	usdt__each(&e, take_note, &a);
	for (u64 vaddr = 0; vaddr < 4096; vaddr += 64) {
		u64 function_bytes;

		eh_frame__function(&e, vaddr, &function_bytes);
	}
	elf_file__close(&e);
}

/* The input as the code of vkQueuePresentKHR. */
static void find_slot(const uint8_t *data, size_t size)
{
	u64 slot;

	if (!vulkan__slot(data, size, &slot) && (slot < 8 || slot >= 65536 || slot % 8))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = strndup((const char *)data, size);
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (!copy || fd < 0)
		abort();
	parse_args(copy);
	free(copy);
	find_slot(data, size);
	copy = malloc(size + 1);
	if (!copy)
		abort();
	memcpy(copy, data, size);
	make_header((uint8_t *)copy, size);
	if (write(fd, copy, size) != (ssize_t)size)
		abort();
	free(copy);
	ask_everything(fd);
	close(fd);
	return 0;
}
