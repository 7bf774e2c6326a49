/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_HEAP_BPF_H
#define REDFRAME_HEAP_BPF_H

/* The main heap ended at `was` and has just grown: records what of it the allocator had free. */
int heap__look(u64 was, u64 ts, u32 tid);

#endif
