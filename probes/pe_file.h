/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Bounded reading of the Windows programs and DLLs that a game under Wine runs: which function an address lies in. As
 * hostile as ELF files are: every offset, size and count is held against the file's real size and the limits below, and
 * nothing is mapped. An RVA is an address less that of the module's first page.
 */
#ifndef REDFRAME_PE_FILE_H
#define REDFRAME_PE_FILE_H

#include "common.h"

#define PE_MAX_SECTIONS  96u
#define PE_MAX_EXPORTS   65536u     /* ordinals have 16 bits */
#define PE_MAX_FUNCTIONS (4u << 20) /* entries of the exception directory */
#define PE_MAX_NAME      512u

struct pe_section {
	u32 rva, size;      /* in memory */
	u32 offset, filesz; /* in the file; filesz at most size */
	bool code;
};

struct pe_export {
	u32 rva, name; /* name: RVA of the string */
};

/* RUNTIME_FUNCTION of x86-64: code of a function, all of it or a part */
struct pe_range {
	u32 begin, end, unwind;
};

struct pe_file {
	int fd; /* borrowed */
	u64 size;
	u64 base;       /* where it was linked to be */
	u32 image_size; /* bytes from its first page to its last */
	struct pe_section sections[PE_MAX_SECTIONS];
	u32 n_sections;
	struct pe_export *exports; /* of code, by rva */
	u32 n_exports;
	struct pe_range *ranges; /* by begin; none in a 32-bit file */
	u32 n_ranges;
	bool cut; /* some of it was beyond a limit or past the end, and was left out */
};

struct pe_function {
	u32 start, end;         /* RVAs of what it is known to cover around the one asked for */
	u32 entry;              /* where the function begins, if this is a part of it that lies apart; else start */
	char name[PE_MAX_NAME]; /* its export; "" where it has none */
};

/* 0, -ENOEXEC no PE file, -EIO, -ENOMEM. One whose tables make no sense still opens, without them. */
int pe_file__open(struct pe_file *pe, int fd);
void pe_file__close(struct pe_file *pe);
/* The code around an RVA: 0, or -ENOENT where there is none. */
int pe_file__function(const struct pe_file *pe, u32 rva, struct pe_function *out);

#endif
