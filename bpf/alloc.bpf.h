/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_ALLOC_BPF_H
#define REDFRAME_ALLOC_BPF_H

struct task_struct;

/* Records what small allocations the thread has summed up so far, so that they belong to the frame that ends. */
int alloc__flush(struct task_struct *task, u64 ts) __hidden;

#endif
