/* SPDX-License-Identifier: GPL-2.0-only
 *
 * USDT: the .note.stapsdt notes of an ELF file and the argument specifications in them.
 */
#ifndef REDFRAME_USDT_H
#define REDFRAME_USDT_H

#include "elf_file.h"
#include "probe_desc.h"

#define USDT_MAX_NOTES 65536
#define USDT_MAX_BYTES (32u << 20)

struct usdt_note {
	const char *provider, *name, *args; /* NUL-terminated, not sanitised; valid during the callback */
	u64 offset;                         /* file offset of the probe's instruction */
	u64 semaphore;                      /* file offset of its semaphore, 0: none */
};

/* Every note that is whole and lies in the file, until fn returns false. Returns how many notes were malformed and left
 * out, or -errno. A file without notes is no error. */
typedef bool (*usdt_fn)(const struct usdt_note *note, void *arg);
int usdt__each(struct elf_file *e, usdt_fn fn, void *arg);

/* Parses up to n arguments "8@%rdi -4@$5 …"; missing ones become ARG_NONE. Returns how many the note has (even beyond
 * n), or -ENOTSUP for the first one among n that a probe cannot read, with `why` in words; the ones before it are
 * filled. */
int usdt__parse_args(u16 machine, const char *spec, struct probe_arg *args, int n, char *why, size_t why_size);

#endif
