// SPDX-License-Identifier: GPL-2.0-only
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demangle.h"
#include "images.h"
#include "maps.h"
#include "recording.h"
#include "symbolize.h"

/* ---- the addresses ---- */

#define ADDRESSES_MAX (1u << 18)

/* Open addressing; 0 is free. */
struct addresses {
	u64 *slots; /* 2 * ADDRESSES_MAX */
	u32 n, beyond;
};

static void want(struct addresses *a, u64 addr)
{
	u32 mask = 2 * ADDRESSES_MAX - 1, i = (addr * 0x9e3779b97f4a7c15ULL) >> 32 & mask;

	if (!addr)
		return;
	for (; a->slots[i]; i = (i + 1) & mask)
		if (a->slots[i] == addr)
			return;
	if (a->n == ADDRESSES_MAX) {
		a->beyond++;
		return;
	}
	a->slots[i] = addr;
	a->n++;
}

/* Fields by what they mean: code addresses and lock words are named ip, caller, and addr of a lock. */
static void want_of(struct addresses *a, const struct ev_hdr *h)
{
	switch (h->kind) {
	case EV_SAMPLE:
		want(a, ((const struct ev_sample *)h)->ip);
		break;
	case EV_LOCK_WAIT:
		want(a, ((const struct ev_lock_wait *)h)->addr);
		want(a, ((const struct ev_lock_wait *)h)->ip);
		break;
	case EV_FAULT:
		want(a, ((const struct ev_fault *)h)->ip);
		break;
	case EV_ALLOC:
		want(a, ((const struct ev_alloc *)h)->caller);
		break;
	}
}

static int collect(struct addresses *a, int fd)
{
	const struct ev_hdr *h;
	struct recording r;
	char path[64];
	int err;

	a->slots = calloc(2 * ADDRESSES_MAX, sizeof(*a->slots));
	if (!a->slots)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = open(path, O_RDONLY | O_CLOEXEC);
	if (err < 0)
		return -errno;
	err = recording__open_fd(&r, err);
	if (err)
		return err;
	while ((err = recording__next(&r, &h)) > 0)
		want_of(a, h);
	recording__close(&r);
	return err;
}

static int by_value(const void *x, const void *y)
{
	u64 a = *(const u64 *)x, b = *(const u64 *)y;

	return a < b ? -1 : a > b;
}

/* the slots become a sorted array of n */
static void sort(struct addresses *a)
{
	u32 n = 0;

	for (u32 i = 0; i < 2 * ADDRESSES_MAX; i++)
		if (a->slots[i])
			a->slots[n++] = a->slots[i];
	qsort(a->slots, n, sizeof(*a->slots), by_value);
}

/* ---- the symbols ---- */

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo, /* asks debuginfod only if the user has set DEBUGINFOD_URLS */
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

	if (im->fd < 0 || load_bias(im, &bias))
		return;
	/* a descriptor of its own: libdwfl closes it */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", im->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !dwfl_report_elf(dwfl, path__base(im->path), im->path, fd, bias, true))
		close(fd);
}

static Dwfl *report_all(const struct images *images)
{
	Dwfl *dwfl = dwfl_begin(&callbacks);

	if (!dwfl)
		return NULL;
	dwfl_report_begin(dwfl);
	for (int i = 0; i < images->n; i++)
		report(dwfl, &images->v[i]);
	dwfl_report_end(dwfl, NULL, NULL);
	return dwfl;
}

static int write_symbol(struct recording_writer *w, u64 ts, u64 start, u64 size, const char *name, const char *object)
{
	struct ev_symbol e = {.hdr = {.ts = ts, .kind = EV_SYMBOL}, .addr = start, .size = size};
	char *plain = demangle(name);
	char text[1024];
	size_t n;
	int err;

	n = snprintf(text, sizeof(text) / 2, "%s", plain ? plain : name);
	n = min(n, sizeof(text) / 2 - 1) + 1;
	n += snprintf(text + n, sizeof(text) / 2, "%.500s", object);
	err = recording__append_text(w, &e, sizeof(e), text, n);
	free(plain);
	return err;
}

int symbolize__write(struct recording_writer *w, const struct images *im, u64 ts, struct symbolize_result *out)
{
	struct addresses a = {};
	u64 last_end = 0;
	Dwfl *dwfl = NULL;
	int err;

	*out = (struct symbolize_result){};
	err = recording__flush(w);
	if (!err)
		err = collect(&a, w->fd);
	if (err)
		goto cleanup;
	sort(&a);
	dwfl = report_all(im);
	for (u32 i = 0; dwfl && i < a.n && !err; i++) {
		Dwfl_Module *mod = dwfl_addrmodule(dwfl, a.slots[i]);
		const char *name;
		GElf_Off off;
		GElf_Sym sym;

		if (a.slots[i] < last_end) { /* within the symbol just written */
			out->named++;
			continue;
		}
		name = mod ? dwfl_module_addrinfo(mod, a.slots[i], &off, &sym, NULL, NULL, NULL) : NULL;
		if (!name)
			continue;
		out->named++;
		last_end = a.slots[i] - off + max(sym.st_size, off + 1);
		err = write_symbol(w, ts, a.slots[i] - off, last_end - (a.slots[i] - off), name,
			dwfl_module_info(mod, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
	}
	out->addresses = a.n;
	out->beyond = a.beyond;
cleanup:
	if (dwfl)
		dwfl_end(dwfl);
	free(a.slots);
	return err;
}
