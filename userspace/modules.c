// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apart.h"
#include "debug_server.h"
#include "maps.h"
#include "modules.h"
#include "recording.h"

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = debug_server__find,
};

/* What to add to the file's addresses to get the game's: -ENOEXEC where no segment starts the mapping. */
static int load_bias(const struct image *im, u64 *bias)
{
	Elf *elf = elf_begin(im->fd, ELF_C_READ, NULL);
	size_t n = 0;
	int err = -ENOEXEC;
	GElf_Phdr ph;

	if (elf && !elf_getphdrnum(elf, &n)) {
		for (size_t i = 0; i < n && err; i++) {
			if (!gelf_getphdr(elf, i, &ph) || ph.p_type != PT_LOAD)
				continue;
			if (im->offset < (ph.p_offset & ~4095ULL) || im->offset >= ph.p_offset + max(ph.p_filesz, 1ULL))
				continue;
			*bias = im->start - (ph.p_vaddr - ph.p_offset + im->offset);
			err = 0;
		}
	}
	elf_end(elf);
	return err;
}

static void report(Dwfl *dwfl, const struct image *im)
{
	char path[64];
	u64 bias;
	int fd;

	apart__at(im->start);
	if (im->fd < 0 || im->refused || load_bias(im, &bias))
		return;
	/* a descriptor of its own: libdwfl closes it */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", im->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !dwfl_report_elf(dwfl, path__base(im->path), im->path, fd, bias, true))
		close(fd);
}

/* The kernel maps the same image into every process: ours is the game's, if that is a 64-bit one. */
static void report_vdso(Dwfl *dwfl, u64 start)
{
	const GElf_Ehdr *own = (const GElf_Ehdr *)getauxval(AT_SYSINFO_EHDR);
	size_t size = own ? own->e_shoff + (size_t)own->e_shnum * own->e_shentsize : 0;
	int fd = own ? memfd_create("vdso", MFD_CLOEXEC) : -1;

	if (fd < 0)
		return;
	/* linked to address 0: what to add is where it is */
	if (write(fd, own, size) != (ssize_t)size || !dwfl_report_elf(dwfl, "[vdso]", "[vdso]", fd, start, true))
		close(fd);
}

Dwfl *modules__open(const struct images *images)
{
	Dwfl *dwfl = dwfl_begin(&callbacks);

	if (!dwfl)
		return NULL;
	dwfl_report_begin(dwfl);
	for (int i = 0; i < images->n; i++)
		report(dwfl, &images->v[i]);
	if (images->vdso)
		report_vdso(dwfl, images->vdso);
	dwfl_report_end(dwfl, NULL, NULL);
	return dwfl;
}

struct writing {
	struct recording_writer *w;
	u64 ts;
	int err;
};

static int write_image(Dwfl_Module *mod, void **user, const char *name, Dwarf_Addr start, void *arg)
{
	struct writing *to = arg;
	struct ev_image e = {.hdr = {.ts = to->ts, .kind = EV_IMAGE}, .start = start};
	const unsigned char *id = NULL;
	Dwarf_Addr end = 0, bias = 0, vaddr;
	const char *path = NULL;
	char text[1024];
	int n, at = 0;

	apart__at(start);
	dwfl_module_getelf(mod, &bias); /* reads the file, without which there is no build-id */
	n = dwfl_module_build_id(mod, &id, &vaddr);
	dwfl_module_info(mod, NULL, NULL, &end, NULL, NULL, &path, NULL);
	e.end = end;
	e.bias = bias;
	for (int i = 0; i < n && i < 64; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "%02x", id[i]);
	text[at++] = 0;
	at += snprintf(text + at, sizeof(text) - (size_t)at, "%.800s", path ?: name ?: "");
	to->err = recording__append_text(to->w, &e, sizeof(e), text, (size_t)at);
	return to->err ? DWARF_CB_ABORT : DWARF_CB_OK;
}

int modules__write(struct recording_writer *w, Dwfl *dwfl, u64 ts)
{
	struct writing to = {.w = w, .ts = ts};

	dwfl_getmodules(dwfl, write_image, &to, 0);
	return to.err;
}
