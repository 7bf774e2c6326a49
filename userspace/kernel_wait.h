/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What a thread waits for, by the functions that it waits in in the kernel: where neither a record nor the system call
 * says it.
 */
#ifndef REDFRAME_KERNEL_WAIT_H
#define REDFRAME_KERNEL_WAIT_H

#include "model.h"

/* of the kernel's call chain: CAUSE_NONE where its functions say nothing, or have no names */
enum cause kernel_wait__cause(const struct model *m, u32 chain);
/* The name of the function at *id of a kernel's chain, which moves on to its caller; NULL at the end, "" where it has
 * none. Not sanitised. */
const char *kernel_wait__function(const struct model *m, u32 *id);
/* "folio_wait_bit_common ← filemap_fault ← …": the innermost few; "" where they have no names. Valid UTF-8. */
void kernel_wait__text(const struct model *m, u32 chain, char *buf, size_t size);

#endif
