// SPDX-License-Identifier: GPL-2.0-only
#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>

#include "units.h"

#define KEEP_BYTES (16u << 20) /* of units that were walked, as they are in the file: libdw makes about thrice that */

struct units {
	Dwarf *whole; /* the module's own */
	Dwarf *dwarf; /* over the same bytes; or the module's own, where it cannot be opened twice */
	Elf *elf;
	u64 kept_bytes;
};

/* Compressed sections were inflated when the module's data was opened, which leaves their headers no longer true of the
 * file's bytes. To be inflated again with each reopening would take longer than the memory is worth. */
static bool is_inflated(Elf *elf, const char *image, size_t size)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while ((scn = elf_nextscn(elf, scn))) {
		const Elf_Data *d;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_PROGBITS || shdr.sh_flags & SHF_ALLOC)
			continue;
		d = elf_getdata(scn, NULL);
		if (d && d->d_size && ((const char *)d->d_buf < image || (const char *)d->d_buf >= image + size))
			return true;
	}
	return false;
}

static void close_copy(struct units *u)
{
	if (u->dwarf != u->whole)
		dwarf_end(u->dwarf);
	elf_end(u->elf);
	u->dwarf = u->whole;
	u->elf = NULL;
	u->kept_bytes = 0;
}

static void open_copy(struct units *u)
{
	Elf *elf = dwarf_getelf(u->whole);
	size_t size = 0;
	char *image = elf ? elf_rawfile(elf, &size) : NULL;

	close_copy(u);
	u->elf = image && !is_inflated(elf, image, size) ? elf_memory(image, size) : NULL;
	if (!u->elf)
		return;
	u->dwarf = dwarf_begin_elf(u->elf, DWARF_C_READ, NULL);
	if (u->dwarf)
		dwarf_setalt(u->dwarf, dwarf_getalt(u->whole));
	else
		close_copy(u);
}

int units__each(Dwfl_Module *mod, int (*fn)(Dwarf_Die *unit, u64 bias, void *arg), void *arg)
{
	Dwarf_Addr bias = 0;
	struct units u = {.whole = dwfl_module_getdwarf(mod, &bias)};
	Dwarf_Off at = 0, next;
	size_t header_bytes;
	int err = 0;

	if (!u.whole)
		return 0;
	u.dwarf = u.whole;
	open_copy(&u);
	while (err >= 0 && !dwarf_nextcu(u.dwarf, at, &next, &header_bytes, NULL, NULL, NULL)) {
		Dwarf_Die die;

		if (dwarf_offdie(u.dwarf, at + header_bytes, &die)) {
			err = fn(&die, bias, arg);
			u.kept_bytes += err > 0 ? next - at : 0;
		}
		if (u.kept_bytes > KEEP_BYTES && u.dwarf != u.whole)
			open_copy(&u);
		if (next <= at) /* damaged */
			break;
		at = next;
	}
	close_copy(&u);
	return min(err, 0);
}
