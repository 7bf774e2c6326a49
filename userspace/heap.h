/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Where glibc's allocator keeps the free blocks of a process's main heap. No symbol tells: the C library is stripped.
 * But its bins do: each is a ring through itself while it is empty, and the words around them fit the heap.
 */
#ifndef REDFRAME_HEAP_H
#define REDFRAME_HEAP_H

#include "common.h"

/* The address of the bins of the main arena; 0: it has no heap yet, another allocator, or may not be read. */
u64 heap__find(u32 tgid);
/* The same in n words of memory that begin at `at`, of a process whose heap is [heap_start, heap_end). */
u64 heap__find_in(const u64 *words, size_t n, u64 at, u64 heap_start, u64 heap_end);

#endif
