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

#include "ring.bpf.h"

/* Lost records since load, by class and CPU; userspace reads it through the mapped .bss. */
extern __u64 lost_records[CLASS_COUNT][LOST_CPUS];

extern struct cpu_state cpu_states[LOST_CPUS];

struct file_id {
	u64 ino;
	u32 dev;
	u32 generation;
	u32 mode;
	u32 zero;
};

/* A game's thread, from its first event to its end. What most events touch comes first. */
struct thread_state {
	u32 tid;       /* whose place it is; 0: nobody's */
	u32 waker;     /* who made it runnable last; 0: an interrupt */
	u64 call_ts;   /* the system call in progress: its start, 0 none */
	u64 call_cold; /* task->ioac.read_bytes then */
	u64 fault_ts;  /* the page fault in progress: its start, 0 none */
	u64 fault_addr;
	u64 fault_ip;
	u64 fault_flags;
	s64 fault_pages; /* that were resident then */
	u64 lock_words;  /* futex: what the word, and the word at +4, held when the wait began */
	u64 lock_owners; /* futex: the words at +8 and +16 */
	u64 fd_changes;  /* 1 + what the global of that name was when known_fd was looked at; 0: it never was */
	s32 known_fd;
	u32 seen_dev;
	struct file_id known; /* which file that is; its path has been told */
	u64 seen_ino;         /* with seen_dev: the file whose path was looked up last */
	u64 reclaim_ts;
	u64 call_was;  /* brk: the old end; mmap and close: see their handlers */
	u64 sum_since; /* small allocations not yet recorded */
	u64 sum_bytes;
	u64 sum_largest;
	u32 sum_calls;
	u32 sum_frees;
	u64 nest_sp; /* the allocation call that may call another one: see alloc.bpf.c */
	u64 nest_ip;
	u64 nest_value;
	u64 nest_ret, nest_old;
	u64 alloc_gap; /* bytes that it allocates until the next sample; 0: not drawn yet */
	u64 close_ino;
	u32 close_dev;
	u32 close_mode;
	u64 stacks_due; /* ns, CLOCK_BOOTTIME: when the stacks that were copied of it are paid for */
	u32 samples;    /* CPU samples so far */
	u32 copying;    /* its memory, now: faults are ours */
};

/* Each thread has the place that its id points to. The few whose place another thread has go by id into a hash table.
 * Not in the kernel's task storage, since a look there costs 25 ns, and here 2: the verifier makes it inline. */
#define THREAD_PLACES 8192
struct threads {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, THREAD_PLACES);
	__type(key, u32);
	__type(value, struct thread_state);
};
struct more_threads {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, THREAD_PLACES / 4);
	__type(key, u32);
	__type(value, struct thread_state);
};
extern struct threads threads SEC(".maps");
extern struct more_threads more_threads SEC(".maps");

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

/* How often a file descriptor of the game may have come to mean another file, and calls and requests in progress that
 * may do so. */
extern __u64 fd_changes, fd_changing;

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

/* bpf/threads.bpf.c */
struct thread_state *threads__add(u32 tid) __hidden;
void threads__remove(u32 tid) __hidden;

/* Of a thread that had an event before. */
static __always_inline struct thread_state *thread_state_if_any(struct task_struct *task)
{
	u32 tid = task->pid, place = tid & (THREAD_PLACES - 1);
	struct thread_state *st = bpf_map_lookup_elem(&threads, &place);

	return st && st->tid == tid ? st : bpf_map_lookup_elem(&more_threads, &tid);
}

static __always_inline struct thread_state *thread_state(struct task_struct *task)
{
	struct thread_state *st = thread_state_if_any(task);

	return st ? st : threads__add(task->pid);
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

static __always_inline struct cpu_state *cpu_state(void)
{
	return &cpu_states[bpf_get_smp_processor_id() & (LOST_CPUS - 1)];
}

/* enum wake_flags of the code that runs now */
static __always_inline u8 irq_context(void)
{
	struct cpu_state *c = cpu_state();

	return (c->hard | c->timer ? WAKE_HARDIRQ : 0) | (c->soft ? WAKE_SOFTIRQ : 0);
}

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
int stack__copy(u64 ts, u32 reason, u32 behind);

/* The stack for the event of ts that the current thread is about to record, if it is worth one. */
static __always_inline void stack__tell(u64 ts, bool worth, u32 reason)
{
	if (opt.stack_bytes && worth && !(thin & THIN_STACK))
		stack__copy(ts, reason, 0);
}

#define S_IFMT  0170000
#define S_IFREG 0100000

#endif
