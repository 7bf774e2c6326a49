/* SPDX-License-Identifier: GPL-2.0-only OR MIT
 *
 * What userspace tells the programs before they are loaded.
 */
#ifndef REDFRAME_BPF_OPTIONS_H
#define REDFRAME_BPF_OPTIONS_H

#define RINGS_MAX   64
#define LOST_CPUS   512 /* a power of two; CPUs beyond share counters */
#define SYSCALL_NRS 512 /* system call numbers that are told apart */

struct bpf_options {
	__u32 tgid;                                         /* the game, host pid namespace */
	__u32 follow;                                       /* 1: not only that one: see traced() */
	__u8 sched, fault, lock, file, alloc, syscall, irq; /* classes that are on */
	__u8 switch_has_state;                              /* v5.18: sched_switch's fourth argument is prev_state */
	__u8 uring_submit_has_ctx;                          /* before v6.0: io_uring_submit_sqe(ctx, req, ...) */
	__u8 uring_complete_has_cqe;                        /* v6.15: io_uring_complete(ctx, req, cqe) */
	__u64 alloc_min;                                    /* smaller allocations are summed */
	__u64 alloc_sample_bytes;                           /* on average from sample to sample; 0: none is taken */
	__u64 syscall_min_ns;                               /* shorter calls of no class are not recorded */
	__u32 stack_bytes;                                  /* of a stack that are copied; 0: none is */
	__u32 stack_sample_every;                   /* one in so many CPU samples of a thread comes with its stack */
	__u64 stack_wait_ns;                        /* what took at least as long off the CPU, or in a call */
	__u64 stack_alloc_bytes;                    /* allocations of at least as much */
	__u64 stack_ring_bytes;                     /* with more in the ring, none is copied */
	__u32 stacks_per_thread, stacks_per_second; /* budgets: of a thread without its samples, of the game */
	__u32 kernel_stacks_per_second;             /* of a CPU; 0: none is taken */
	__u64 ring_bytes;                           /* of one, a power of two */
	__u64 ring_chunk_mask;                      /* of the places in a chunk */
	__u32 ring_chunk_shift;
	__u32 rings;      /* 1: all CPUs share it */
	__u32 ring_shift; /* CPUs of a ring, as a power of two */
};

/* why a stack was not copied, though the event was worth it */
enum stack_skip { STACK_SKIP_THREAD, STACK_SKIP_GAME, STACK_SKIP_RING, STACK_SKIPS };

/* why a blocking switch that was worth a kernel stack has none: over the budget; another stack has its place in the
 * map; the kernel could not take it */
enum kernel_stack_skip { KERNEL_STACK_BUDGET, KERNEL_STACK_COLLISION, KERNEL_STACK_FAILED, KERNEL_STACK_SKIPS };

#define KERNEL_STACK_CALLS 48   /* of a stack that are kept, the innermost */
#define KERNEL_STACKS      8192 /* places in the map, a power of two: 200 different stacks collide 2 or 3 times */

/* of one CPU, a cache line */
struct kernel_stack_count {
	__u64 skipped[KERNEL_STACK_SKIPS];
	__u32 window, taken; /* in that second, nearly */
	__u64 pad[5];
};

/* per system call number: what it is to us */
struct bpf_syscall {
	__u16 id;          /* probes/syscalls.def; SYS_RAW | nr */
	__u8 handler;      /* enum sys_handler */
	__u8 on;           /* its class is recorded */
	__u8 kernel_stack; /* what a thread waits for in it, only its kernel stack says */
	__u8 changes_fds;  /* after it, a descriptor may mean another file */
	__u8 sleeps;       /* recorded, and long only when it sleeps: it begins when its thread leaves the CPU */
};

/* What a CPU does now; a cache line each. Kernel side only; here because the skeleton declares it. */
struct cpu_state {
	/* when each kind of interruption began, 0 not. The preempt count would say it too, but its address is not to be
	 * had on a kernel without CONFIG_KALLSYMS_ALL */
	__u64 hard, timer, soft;
	__u64 pad[5];
};

/* glibc's struct malloc_state, from its bins on: what the arena of the main heap keeps. The same in all 64-bit glibc
 * since 2.26. userspace/heap.c finds it by these marks, bpf/heap.bpf.c reads it. */
#define HEAP_BINS 127                      /* pairs of pointers: a list each, from its largest block down */
#define HEAP_TOP  (-16)                    /* offset from the first bin: the block at the heap's end */
#define HEAP_SIZE (16 * HEAP_BINS + 8 * 5) /* offset: bytes of the heap; behind a bit map and three words */

/* hits of the allocation probes on a CPU, for the estimate of what they cost; a cache line each */
struct alloc_calls {
	__u64 n;
	__u64 stepped; /* of these */
	__u64 pad[6];
};

/* page faults of processes that are not recorded, on a CPU: they run through the programs as well. A cache line each */
struct other_faults {
	__u64 user;
	__u64 kernel; /* in its own code, on a process's memory: a read into fresh pages */
	__u64 pad[6];
};

/* system calls on a CPU, for the estimate: most make no record. A cache line each */
struct calls {
	__u64 game, others;
	__u64 pad[6];
};

/* what the programs leave out on userspace's word, to cost the game less (userspace/governor.h) */
#define THIN_STACK 1 /* no stack is copied */
#define THIN_FILE  2 /* calls on files are recorded that take syscall_min_ns */
#define THIN_CALLS 4 /* the programs at system calls are detached, or about to be: lock waits end at the switch */

#endif
