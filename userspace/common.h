/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_COMMON_H
#define REDFRAME_COMMON_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#include "events.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
/* clang-format off */
#define min(a, b) ({ __typeof__(a) _min_a = (a); __typeof__(b) _min_b = (b); _min_a < _min_b ? _min_a : _min_b; })
#define max(a, b) ({ __typeof__(a) _max_a = (a); __typeof__(b) _max_b = (b); _max_a > _max_b ? _max_a : _max_b; })
/* clang-format on */

#define NSEC_PER_MSEC 1000000ULL
/* the SYMBOL of where the kernel runs the instructions under probes that it cannot emulate */
#define UPROBES_NAME "[uprobes]"

#define NSEC_PER_SEC 1000000000ULL

/* exit statuses of every verb: interface.md; scripts rely on them */
enum exit_status {
	EXIT_OK = 0,
	EXIT_USAGE = 1,
	EXIT_CANNOT_TRACE = 2,
	EXIT_NO_TARGET = 3,
	EXIT_WORSE = 4,
	EXIT_NOT_MEASURED = 5,
};

/* causes a frame's time is partitioned into; the words are the JSON words. Order is not on disk. */
/* clang-format off */
#define CAUSES(X) \
	X(CODE, code) X(KERNEL, kernel) X(PAGE_FAULT, page_fault) X(LOCK_WAIT, lock_wait) X(THREAD_WAIT, thread_wait) \
	X(FILE_READ, file_read) X(FILE_WRITE, file_write) X(FILE_META, file_meta) X(MEMORY_MAP, memory_map) \
	X(RECLAIM, reclaim) X(CPU_WAIT, cpu_wait) X(INTERRUPT, interrupt) X(IO_WAIT, io_wait) X(GPU_WAIT, gpu_wait) \
	X(SLEEP, sleep) X(UNEXPLAINED, unexplained)
enum cause {
	CAUSE_NONE = -1,
#define X(NAME, name) CAUSE_##NAME,
	CAUSES(X)
#undef X
	CAUSE_COUNT
};
/* clang-format on */
extern const char *const cause_names[CAUSE_COUNT];

#endif
