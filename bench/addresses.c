/* SPDX-License-Identifier: GPL-2.0-only
 *
 * addresses PROGRAM N OUT: a recording without names of N places in PROGRAM's code, evenly spread, to time symbolize
 * with.
 */
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "events_desc.h"
#include "recording.h"

#define BIAS 0x555500000000ULL

static int text_of(Elf *elf, GElf_Shdr *text)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return -ENOEXEC;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name = gelf_getshdr(scn, text) ? elf_strptr(elf, names, text->sh_name) : NULL;

		if (name && !strcmp(name, ".text"))
			return 0;
	}
	return -ENOEXEC;
}

static int put_image(struct recording_writer *w, Elf *elf, const char *path)
{
	struct ev_image e = {.hdr = {.kind = EV_IMAGE}, .start = BIAS, .end = BIAS + (1ULL << 32), .bias = BIAS};
	const unsigned char *id;
	ssize_t n = dwelf_elf_gnu_build_id(elf, (const void **)&id);
	char text[512];
	int at = 0;

	for (ssize_t i = 0; i < n && i < 64; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "%02x", id[i]);
	text[at++] = 0;
	at += snprintf(text + at, sizeof(text) - (size_t)at, "%.300s", path);
	return n > 0 ? recording__append_text(w, &e, sizeof(e), text, (size_t)at) : -ENOEXEC;
}

static int put_calls(struct recording_writer *w, const GElf_Shdr *text, u32 n)
{
	int err = 0;

	for (u32 i = 0; i < n && !err; i++) {
		struct ev_call e = {.hdr = {.kind = EV_CALL, .words = sizeof(e) / 8},
			.id = i + 1,
			.addr = BIAS + text->sh_addr + text->sh_size * i / n};

		err = recording__append(w, &e, sizeof(e));
	}
	return err;
}

static int write_out(const char *program, u32 n, const char *out)
{
	int fd = open(program, O_RDONLY | O_CLOEXEC), err;
	Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ, NULL);
	struct recording_writer w;
	GElf_Shdr text;

	err = elf ? text_of(elf, &text) : -ENOEXEC;
	if (!err)
		err = recording__create(&w, open(out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), 0);
	if (!err)
		err = put_image(&w, elf, program) ?: put_calls(&w, &text, n) ?: recording__finish(&w, true);
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return err;
}

int main(int argc, char **argv)
{
	int err;

	if (argc != 4)
		return fprintf(stderr, "usage: addresses PROGRAM N OUT\n"), 1;
	elf_version(EV_CURRENT);
	err = write_out(argv[1], (u32)strtoul(argv[2], NULL, 10), argv[3]);
	if (err)
		fprintf(stderr, "addresses: %s: %s\n", argv[1], strerror(-err));
	return err ? 1 : 0;
}
