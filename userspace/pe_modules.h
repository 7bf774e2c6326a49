/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The Windows programs and DLLs among the game's images. Where their sections do not lie in the file as in memory, Wine
 * copies them into anonymous memory: only the first page is the file's.
 */
#ifndef REDFRAME_PE_MODULES_H
#define REDFRAME_PE_MODULES_H

#include "images.h"
#include "pe_file.h"

struct maps;
struct map;
struct recording_writer;

struct pe_module {
	u64 start;
	struct pe_file pe;
	const char *path; /* the image's; not sanitised */
};

struct pe_modules {
	struct pe_module *v; /* by start */
	int n;
};

/* Those of images, which must outlive them. 0 or -ENOMEM. */
int pe_modules__open(struct pe_modules *w, const struct images *images);
void pe_modules__close(struct pe_modules *w);
/* An IMAGE record for each: 0 or -errno. */
int pe_modules__write(struct recording_writer *w, const struct pe_modules *m, u64 ts);
/* The code around an address: its export, else "game.exe+0x1580". False: it is in none of them. */
bool pe_modules__symbol(
	const struct pe_modules *w, u64 addr, u64 *start, u64 *end, char *name, size_t size, const char **object);

/* Whether the i-th mapping is the first page of a module whose sections are copies, and how many bytes it takes from
 * there on; 0: it is not. */
u64 pe_modules__copied(const struct maps *maps, int i, u32 tgid);

#endif
