/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Bounded reading of a game's ELF files. The file is hostile until checked: every offset, size and count in it is held
 * against the file's real size and the limits below, and nothing is mapped (a file cut short would be a SIGBUS).
 * 64-bit little-endian files only.
 */
#ifndef REDFRAME_ELF_FILE_H
#define REDFRAME_ELF_FILE_H

#include <elf.h>
#include "common.h"

#define ELF_MAX_SYMBOLS  (8u << 20)   /* of one table; more are not looked at: elf_file.cut */
#define ELF_MAX_STRINGS  (256u << 20) /* bytes of one string table */
#define ELF_MAX_SEGMENTS 4096

struct elf_segment {
	u64 offset, vaddr, filesz, memsz;
	u32 type, flags;
};

struct elf_section {
	u32 name; /* offset into elf_file.names */
	u32 type, link;
	u64 flags, addr, offset, size;
};

struct elf_file {
	int fd; /* borrowed */
	u64 size;
	u16 machine; /* EM_X86_64, EM_AARCH64, … */
	u16 type;    /* ET_EXEC, ET_DYN */
	struct elf_segment *segments;
	u32 n_segments;
	struct elf_section *sections; /* none where the file was stripped of its section table */
	u32 n_sections;
	char *names; /* NUL-terminated as a whole */
	size_t names_size;
	bool cut; /* some of it was beyond a limit or past the end, and was left out */
};

struct elf_symbol {
	const char *name; /* valid during the callback */
	u64 vaddr, size;  /* size 0: the file does not say */
	u8 type, bind;    /* STT_*, STB_* */
	bool dynamic;     /* of .dynsym: others can bind to it */
	bool hidden;      /* an old version (name@VERSION, not name@@VERSION) */
	bool several;     /* by elf_file__find: it has other versions at other addresses */
};

/* 0, -ENOEXEC no ELF file, -ENOTSUP 32-bit or big-endian, -EIO, -ENOMEM. Without a usable section table it still opens.
 */
int elf_file__open(struct elf_file *e, int fd);
void elf_file__close(struct elf_file *e);

/* Exactly n bytes at a file offset: 0, or -ENODATA where they are not all there. */
int elf_file__read(const struct elf_file *e, u64 offset, void *buf, size_t n);
/* File offset of an address by PT_LOAD: 0 or -ENOENT (also for addresses that only exist in memory, .bss). */
int elf_file__offset(const struct elf_file *e, u64 vaddr, u64 *offset);
/* Reads at most n bytes of one PT_LOAD segment at an address; returns how many (0: none there). */
size_t elf_file__read_vaddr(const struct elf_file *e, u64 vaddr, void *buf, size_t n);
const struct elf_section *elf_file__section(const struct elf_file *e, const char *name);

enum elf_table { ELF_DYNSYM, ELF_SYMTAB };
/* Every defined function of the table (FUNC, IFUNC, NOTYPE in code) until fn returns false. 0 or -errno; a file without
 * such a table has no symbols, which is no error. */
typedef bool (*elf_symbol_fn)(const struct elf_symbol *s, void *arg);
int elf_file__each_symbol(struct elf_file *e, enum elf_table table, elf_symbol_fn fn, void *arg);

/* Several names in one pass over .dynsym, then with `symtab` those still missing in .symtab. out[i].name is names[i]
 * where found, else NULL. A default version wins over an old one, global over local. Returns how many were found or
 * -errno. */
int elf_file__find(struct elf_file *e, const char *const *names, int n, bool symtab, struct elf_symbol *out);

#endif
