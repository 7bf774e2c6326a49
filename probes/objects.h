/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The ELF files that a process runs code from, in the order in which its dynamic loader looks up symbols.
 */
#ifndef REDFRAME_OBJECTS_H
#define REDFRAME_OBJECTS_H

#include "elf_file.h"
#include "maps.h"

#define OBJECT_NO_ORDER 1000000

struct object {
	const char *path; /* as mapped, not sanitised; lives in objects.maps */
	const char *base; /* its base name */
	u32 dev;
	u64 ino;
	int map;  /* index of its first mapping */
	bool exe; /* the program itself */
	bool deleted;
	int order; /* in the loader's list; OBJECT_NO_ORDER: not there (mapped by hand, or another namespace) */
	int state; /* 0 not opened yet, 1 open, -errno not readable or no ELF file */
	int fd;
	struct elf_file elf;
};

struct objects {
	u32 tgid;
	struct maps maps;
	struct object *v; /* by order */
	int n, cap;
	bool linked; /* the loader's list was read; otherwise the order is that of mapping */
};

/* 0 or -errno. Opens no file yet. */
int objects__read(struct objects *o, u32 tgid);
void objects__free(struct objects *o);
/* Opens the file and its ELF headers once: 0 or -errno, the same again. */
int object__open(struct objects *o, struct object *obj);
/* The file whose code is at an address of the process, opened, and the address in the file's own numbering. NULL where
 * there is no code of a file. */
struct object *objects__code_at(struct objects *o, u64 addr, u64 *vaddr);
/* What is added to the file's own addresses in this process; false where it is not mapped as its headers say. */
bool object__bias(const struct objects *o, const struct object *obj, u64 *bias);
/* n bytes of the process's memory */
bool objects__peek(const struct objects *o, u64 addr, void *buf, size_t n);
/* One file that no process maps, for `probe PATH`. Takes over fd. */
int objects__from_file(struct objects *o, const char *path, int fd);
/* Whether LIB of "uprobe:LIB:SYMBOL" means this object: full path, base name, or the base name up to a '.' or '-'. */
bool object__is(const struct object *obj, const char *lib);

#endif
