/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What every event class shares on the kernel side: the ring, the options, the state of a thread, and the rules
 * "traced first" and "a loss is counted".
 */
#ifndef REDFRAME_BPF_H
#define REDFRAME_BPF_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "events.h"
#include "handlers.h"
#include "probe_desc.h"
#include "bpf_options.h"
#include "stack.h"

/* set between open and load; constants to the verifier, which drops what is off */
extern const volatile struct bpf_options opt;

/* Lost records since load, by class and CPU; userspace reads it through the mapped .bss. */
extern __u64 lost_records[CLASS_COUNT][LOST_CPUS];

extern struct irq_begin irq_begins[LOST_CPUS];

/* A game's thread, from its first event to its end; the kernel frees it with the task. */
struct thread_state {
	u64 call_ts;   /* the system call in progress: its start, 0 none */
	u64 call_cold; /* task->ioac.read_bytes then */
	u64 fault_ts;  /* the page fault in progress: its start, 0 none */
	u64 fault_addr;
	u64 fault_ip;
	u64 fault_flags;
	s64 fault_pages; /* that were resident then */
	u64 reclaim_ts;
	u64 lock_words;  /* futex: what the word, and the word at +4, held when the wait began */
	u64 lock_owners; /* futex: the words at +8 and +16 */
	u64 call_was;    /* brk: the old end; mmap and close: see their handlers */
	u64 seen_inode;  /* struct inode * of the file that was looked at last; 0: not sure */
	u64 seen_ino;    /* the file whose path was looked up last */
	u32 seen_dev;
	u32 waker;     /* who made it runnable last */
	u64 sum_since; /* small allocations not yet recorded */
	u64 sum_bytes;
	u64 sum_largest;
	u32 sum_calls;
	u32 sum_frees;
	u64 nest_sp; /* the allocation call that may call another one: see alloc.bpf.c */
	u64 nest_ip;
	u64 nest_value;
	u64 nest_ret, nest_old;
	u16 call_sys; /* our id of the system call in progress */
	u8 call_handler;
	u8 waking; /* a lock wait wants to know its waker */
	u32 close_dev;
	u64 close_ino;
	u32 close_mode;
	u32 seen_mode;
	u32 stack_window; /* the second that `stacks` counts in */
	u32 stacks;       /* copied in it */
	u32 samples;      /* CPU samples so far */
	u32 copying;      /* its stack, now: faults are ours */
	u64 alloc_gap;    /* bytes that it allocates until the next sample; 0: not drawn yet */
};

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
};
struct threads {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_state);
};
extern struct ring events SEC(".maps");
extern struct threads threads SEC(".maps");

/* With opt.follow: the processes that are recorded. Userspace begins the list, and their children join it. */
struct games {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* userspace sets it */
	__type(key, u32);
	__type(value, u8);
};
extern struct games games SEC(".maps");

/* Kernel stacks, each kept once: its place is its number. */
struct kernel_stacks {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, KERNEL_STACKS);
	__uint(key_size, sizeof(u32));
	__uint(value_size, KERNEL_STACK_CALLS * sizeof(u64));
};
extern struct kernel_stacks kernel_stacks SEC(".maps");
extern struct kernel_stack_count kernel_stack_counts[LOST_CPUS];
/* With opt.follow, as userspace finds out: the game among them, and whether only that is recorded from here on. */
extern __u32 game_tgid, game_only;

/* THIN_… */
extern __u32 thin;

/* In its place where task storage fails at times: by thread id. Preallocated, so that it can be used anywhere. */
struct threads_by_tid {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, struct thread_state);
};
extern struct threads_by_tid threads_by_tid SEC(".maps");
/* a new thread's state; numbers, since userspace does not know the type */
extern const volatile u64 no_thread[64];
_Static_assert(sizeof(struct thread_state) <= sizeof(no_thread), "no_thread holds a whole state");

static __always_inline bool traced(struct task_struct *task)
{
	u32 tgid = task->tgid, only;

	if (!opt.follow)
		return tgid == opt.tgid;
	only = game_only;
	return only ? tgid == only : bpf_map_lookup_elem(&games, &tgid) != NULL;
}

/* Of the game itself, not of another process that is recorded beside it: its addresses mean something. */
static __always_inline bool is_game(struct task_struct *task)
{
	return !opt.follow || (u32)task->tgid == game_tgid;
}

static __always_inline struct thread_state *thread_state(struct task_struct *task)
{
	struct thread_state *st;
	u32 tid = task->pid;

	if (!opt.threads_by_tid)
		return bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	st = bpf_map_lookup_elem(&threads_by_tid, &tid);
	if (st)
		return st;
	bpf_map_update_elem(&threads_by_tid, &tid, (const void *)no_thread, BPF_NOEXIST);
	return bpf_map_lookup_elem(&threads_by_tid, &tid);
}

/* Of a thread that had an event before: never allocates, so it may run anywhere. */
static __always_inline struct thread_state *thread_state_if_any(struct task_struct *task)
{
	u32 tid = task->pid;

	if (!opt.threads_by_tid)
		return bpf_task_storage_get(&threads, task, NULL, 0);
	return bpf_map_lookup_elem(&threads_by_tid, &tid);
}

/* The thread is at its end: task storage goes by itself. */
static __always_inline void forget_thread(struct task_struct *task)
{
	u32 tid = task->pid;

	if (opt.threads_by_tid && traced(task))
		bpf_map_delete_elem(&threads_by_tid, &tid);
}

static __always_inline int lost(enum ev_class class)
{
	u32 cpu = bpf_get_smp_processor_id();

	__sync_fetch_and_add(&lost_records[class][cpu & (LOST_CPUS - 1)], 1);
	return 0;
}

static __always_inline u64 now(void)
{
	return bpf_ktime_get_boot_ns();
}

static __always_inline struct irq_begin *irq_begin(void)
{
	return &irq_begins[bpf_get_smp_processor_id() & (LOST_CPUS - 1)];
}

/* enum wake_flags of the code that runs now */
static __always_inline u8 irq_context(void)
{
	struct irq_begin *b = irq_begin();

	return (b->hard | b->timer ? WAKE_HARDIRQ : 0) | (b->soft ? WAKE_SOFTIRQ : 0);
}

/* struct ev_x *e = reserve(x); if (!e) return lost(CLASS_…); *e = (struct ev_x){HDR(EV_X, ts, tid), …}; submit(e); */
#define reserve(kind) ((struct ev_##kind *)bpf_ringbuf_reserve(&events, sizeof(struct ev_##kind), 0))
#define submit(e)     bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP)
#define HDR_SIZED(kind_, ts_, tid_, bytes)                                                                             \
	.hdr = {.ts = (ts_), .tid = (tid_), .cpu = bpf_get_smp_processor_id(), .kind = (kind_), .words = (bytes) / 8}
#define HDR(KIND, type, ts, tid) HDR_SIZED(EV_##KIND, ts, tid, sizeof(struct ev_##type))

/* Text records: room for the longest is reserved, hdr.words says how much of it counts. */
#define TEXT_MAX  256
#define TEXT_ROOM (TEXT_MAX + 8) /* with zeroes up to the word: what is behind the string is not ours to show */

static __always_inline void end_text(char *text, u32 n)
{
	if (n > TEXT_MAX)
		n = TEXT_MAX;
	for (int i = 0; i < 8; i++)
		text[n + i] = 0;
}

struct file_id {
	u64 ino;
	u32 dev;
	u32 generation;
	u32 mode;
};
/* bpf/file.bpf.c */
bool file__identify(struct file *file, struct file_id *id) __hidden;
struct file *file__of_fd(struct task_struct *task, u32 fd) __hidden;
/* bpf/path.bpf.c: a global function, so that its loops are verified once, not at each call */
int path__walk(u64 file, struct file_id *id, u32 tid);

/* Once per file a PATH record. st may be NULL. */
static __always_inline void path__tell(struct file *file, struct file_id *id, struct thread_state *st, u32 tid)
{
	if (st && st->seen_ino == id->ino && st->seen_dev == id->dev)
		return;
	if (path__walk((u64)file, id, tid) || !st)
		return;
	st->seen_ino = id->ino;
	st->seen_dev = id->dev;
}

/* bpf/stack.bpf.c */
int stack__copy(u64 ts, u32 reason);

/* The stack for the event of ts that the current thread is about to record, if it is worth one. */
static __always_inline void stack__tell(u64 ts, bool worth, u32 reason)
{
	if (opt.stack_bytes && worth && !(thin & THIN_STACK))
		stack__copy(ts, reason);
}

#define S_IFMT  0170000
#define S_IFREG 0100000

#endif
