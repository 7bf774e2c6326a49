/* SPDX-License-Identifier: GPL-2.0-only OR MIT
 *
 * The record, as the kernel side writes it and the file keeps it. Shared by bpf/ and userspace, so it needs
 * __u8…__u64 to be defined by the includer (linux/types.h, or bpf/kernel.h).
 */
#ifndef REDFRAME_EVENTS_H
#define REDFRAME_EVENTS_H

/* Little-endian on disk; a file of the other order is refused by its byte-order mark. */
struct ev_hdr {
	__u64 ts;  /* ns, CLOCK_BOOTTIME; first because it is the merge key */
	__u32 tid; /* the thread it is about, host pid namespace; 0 = the CPU */
	__u16 cpu;
	__u8 kind;  /* enum ev_kind */
	__u8 words; /* whole record in 8-byte words: at most 2040 bytes */
};

#define EV_MAX_BYTES (255 * 8)

/* enum ev_kind: EV_LOST = 1, … */
enum ev_kind {
#define EVENT(id, KIND, kind, group, shape, cause, doc) EV_##KIND = id,
#define FIELD(type, name, unit)
#define TEXT(name)
#define END(kind)
#include "events.def"
#undef EVENT
#undef FIELD
#undef TEXT
#undef END
	EV_KINDS = 256,
};

/* struct ev_<kind>: the header, the fields, and for a TEXT a flexible array */
#define EVENT(id, KIND, kind, group, shape, cause, doc)                                                                \
	struct ev_##kind {                                                                                             \
		struct ev_hdr hdr;
#define FIELD(type, name, unit) type name;
#define TEXT(name)              char name[];
#define END(kind)                                                                                                      \
	}                                                                                                              \
	;
#include "events.def"
#undef EVENT
#undef FIELD
#undef TEXT
#undef END

/* Event classes. Ids are on disk (LOST.class): append only. The order is that of `info`. */
/* clang-format off */
#define EV_CLASSES(X)                                                                                                  \
	X(META, meta)                                                                                                  \
	X(FRAME, frame) X(SCHED, sched) X(FAULT, fault) X(LOCK, lock) X(FILE, file) X(ALLOC, alloc) X(IRQ, irq)        \
		X(RECLAIM, reclaim) X(SYSCALL, syscall) X(SAMPLE, sample)
enum ev_class {
#define X(NAME, name) CLASS_##NAME,
	EV_CLASSES(X)
#undef X
		CLASS_COUNT
};

/* clang-format on */
#define FRAME_NO_NUMBER (~0ULL)
#define FILE_NO_OFFSET  (~0ULL)
enum frame_mark { FRAME_MARK = 0, FRAME_BEGIN = 1, FRAME_END = 2 };

enum switch_flags {
	SWITCH_PREEMPT = 1,   /* it wanted to go on */
	SWITCH_GAME = 2,      /* the one that leaves is a traced thread */
	SWITCH_NEXT_GAME = 4, /* the one that comes is */
	SWITCH_USER = 8,      /* it was interrupted in user code or in a fault: no system call in progress */
};

/* as in the trace ring's common_flags, which Perfetto reads to tell a wakeup from an interrupt */
enum wake_flags { WAKE_HARDIRQ = 0x08, WAKE_SOFTIRQ = 0x10, WAKE_NEW = 0x80 };

enum fault_flags {
	FAULT_MAJOR = 1, /* it had to wait for a device */
	FAULT_WRITE = 2,
	FAULT_EXEC = 4,
	FAULT_KERNEL = 8,   /* the kernel touched the page for a system call */
	FAULT_PRESENT = 16, /* the page was there: a protection fault, such as copy on write */
	FAULT_HUGE = 32,    /* it brought in 2 MiB at once */
};

#define IRQ_TIMER (~0U) /* IRQ.irq of the CPU's own timer */

/* LOCK_WAIT.op beyond the kernel's FUTEX_* commands */
#define FUTEX_OP_WAITV 0x1000

/* ALLOC.fn: what the allocator was asked for */
enum alloc_fn {
	ALLOC_MALLOC,
	ALLOC_CALLOC,
	ALLOC_REALLOC,
	ALLOC_ALIGNED,
	ALLOC_POSIX_MEMALIGN,
	ALLOC_NEW,
	ALLOC_NEW_ARRAY,
	ALLOC_FREE,
	ALLOC_DELETE,
	ALLOC_DELETE_ARRAY,
	ALLOC_CUSTOM,
};

#define HEAP_LOOK_NS 250000000ull /* from one HEAP to the next at the least, however often it grows */

/* allocations of at least as much all come with their call chain; smaller ones when they are sampled */
#define ALLOC_ALWAYS_BYTES (1u << 20)

/* STACK.reason: what it was taken for */
enum stack_reason { STACK_WAIT, STACK_COLD, STACK_FAULT, STACK_ALLOC, STACK_SAMPLE, STACK_REASONS };

enum call_flags {
	CALL_TRUNCATED = 1, /* of an outermost call: it was called from somewhere, but that is not known */
	CALL_KERNEL = 2,
};

/* System calls have ids of our own, so that a recording reads the same on every architecture: the index in
 * probes/syscalls.def. SYS_RAW | nr is a call that has none. */
#define SYS_NONE 0
#define SYS_RAW  0x8000

#endif
