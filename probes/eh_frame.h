/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Where a function that no symbol names begins, and how long it is: unwinding needs to know, so .eh_frame tells, in
 * stripped files as well.
 */
#ifndef REDFRAME_EH_FRAME_H
#define REDFRAME_EH_FRAME_H

#include "elf_file.h"

/* Size in bytes of the function that begins at vaddr. -ENOENT: none begins there; -ENODATA: the file has no usable
 * .eh_frame_hdr. */
int eh_frame__function(const struct elf_file *e, u64 vaddr, u64 *size);
/* The same for the function that vaddr is within. */
int eh_frame__around(const struct elf_file *e, u64 vaddr, u64 *begin, u64 *size);

#endif
