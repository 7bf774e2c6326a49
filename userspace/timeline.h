/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What each thread did lately: stretches off the CPU, spans over them, samples and allocations; and who had each CPU.
 * It reaches back to the horizon, which is the start of the oldest frame that is not explained yet.
 */
#ifndef REDFRAME_TIMELINE_H
#define REDFRAME_TIMELINE_H

#include "fifo.h"
#include "intern.h"
#include "model.h"
#include "names.h"

enum off_flags {
	OFF_PREEMPT = 1, /* it wanted to go on */
	OFF_USER = 2,    /* it was in user code or in a fault */
	OFF_LOST = 4,    /* a switch is missing: where it begins or ends is a guess */
	OFF_DEAD = 8,    /* the thread had ended; perhaps its id was given to another later */
	OFF_IRQ = 16,    /* an interrupt (timer, device) woke it, no thread */
	OFF_NEW = 32,    /* not begun yet */
};

/* A stretch off the CPU: blocked in [out, wake), runnable in [wake, in). */
struct off {
	u64 out, wake, in; /* TIME_OPEN: not yet */
	u32 waker;         /* the thread that was running when it was woken; 0: none */
	u32 next;          /* who got the CPU */
	u16 sys;           /* system call it was in: our id */
	u16 state;         /* prev_state */
	u16 cpu;           /* which it left */
	u16 wait_cpu;      /* for which it queued once it was runnable */
	u8 flags;
	u8 prio, next_prio;
	s8 kernel_cause;  /* enum cause, by its kernel stack; CAUSE_NONE: that says nothing */
	u32 kernel_chain; /* CALL id of that; 0: none */
};

/* A record with a duration, as much of it as explaining needs. */
struct span {
	u64 start, end;
	u8 kind;    /* enum ev_kind; SAMPLE: samples are missing, for the CPU itself did not run */
	s8 blocked; /* enum cause of its time off the CPU; CAUSE_NONE: the span around it says */
	s8 running; /* and on it */
	u8 lock;    /* enum lock_kind */
	u16 sys;
	u16 mode;  /* i_mode */
	u32 flags; /* FAULT: fault_flags; MEM_CALL: flags; IRQ, SOFTIRQ: number */
	u32 owner; /* LOCK_WAIT: who held it, host tid; 0: not known */
	u32 waker;
	u32 what; /* interned: mapping or path; 0: by dev and ino */
	u32 dev;
	u64 ino;
	s64 ret;
	u64 addr; /* FAULT: where; LOCK_WAIT: word; MEM_CALL: where; SYSCALL: arg1 */
	u64 ip;
	u64 offset;      /* SYSCALL: how much later than asked a sleep ended */
	u64 bytes, cold; /* RECLAIM: pages in bytes */
	u32 chain;       /* CALL id; 0: none */
	u32 foreign;     /* 1: of a child of the game: addresses are not those of the game's symbols and mappings */
};

struct sample {
	u64 ts, ip;
	u32 kernel;
	u32 chain; /* CALL id; 0: none */
};

struct allocation {
	u64 ts, bytes, largest, caller;
	u32 calls;
	u32 chain;
	u64 sampled; /* bytes that a sampled one stands for; then bytes and calls are 0: another record counts it */
	u32 site;    /* of that: its code, interned */
	u32 zero;
};

/* The game's main heap grew. What was free in it is known where the allocator is glibc's; and not each time. */
struct growth {
	u64 ts, bytes;
	u64 size, free, largest; /* of the heap before; 0: not known. free: no less */
	u32 pieces;              /* that are free: no less */
	u32 cut;                 /* 1: there are more than were counted */
};

#define TASK_GONE 0xb0u /* SWITCH.prev_state: EXIT_DEAD, EXIT_ZOMBIE, TASK_DEAD of sched.h: it will not come back */

/* Who had a CPU. */
struct slot {
	u64 start, end; /* the latest is TIME_OPEN */
	u32 tid;        /* 0: idle */
	u8 prio;
	u8 zero[3];
};

enum line_state { LINE_UNKNOWN, LINE_ON, LINE_OFF };

struct line {
	u32 tid;
	u8 state;      /* enum line_state */
	bool switched; /* seen in a SWITCH: what it is otherwise said to do can be told into running and waiting */
	bool game;
	bool dead;
	u64 seen;                                   /* the last moment at which it surely ran */
	u64 last;                                   /* ts of its last scheduling record */
	u64 longest, longest_before, longest_since; /* see line__longest */
	struct fifo offs, spans, samples, allocs;
};

/* Records of some class were lost in [start, end). */
struct loss {
	u64 start, end;
};

/* A request of io_uring that is complete. */
struct completion {
	u64 ts, offset, ino;
	s64 ret;
	u32 dev;
	u32 tid; /* who submitted it */
	u8 op;
};

/* An instruction that redframe has a probe on. */
struct probed {
	u64 ino, offset; /* in its file */
};

#define TIMELINE_PROBES   128u  /* more are not known as such */
#define TIMELINE_URING    128u  /* the latest completions */
#define TIMELINE_CONDVARS 1024u /* a power of 2; more are not remembered */

struct timeline {
	struct line **lines; /* hash table by tid */
	u32 n_lines, n_slots, n_dead;
	struct fifo *cpus; /* of struct slot */
	u32 n_cpus;
	struct fifo losses; /* disjoint, in order */
	struct fifo growths;
	struct growth heap;  /* the latest of them of which the heap is known */
	struct intern names; /* of what spans are about */
	u32 renew_at;        /* so many names: those that no span has any more go; 0: INTERN_MAX_TEXTS / 2 */
	u64 condvars[TIMELINE_CONDVARS]; /* addresses that are condition variables for certain, a hash table */
	struct probed probes[TIMELINE_PROBES];
	u32 n_probes;
	struct completion done[TIMELINE_URING]; /* a ring */
	u64 n_done;
	size_t bytes, limit;
	u64 horizon; /* what ended before it may be forgotten */
	u64 cut;     /* memory was short: nothing is known before it */
	u64 now;
	u64 sample_ns; /* from sample to sample of a running thread; 0: not known, or off */
	u64 late;      /* records left out because they came far out of order */
};

#define TIMELINE_LIMIT (64u << 20)

void timeline__init(struct timeline *t);
void timeline__free(struct timeline *t);
/* After model__event. 0 or -ENOMEM. */
int timeline__event(struct timeline *t, struct model *m, const struct ev_hdr *rec);
/* Nothing before `horizon` will be asked for again. Ids in `names` that were taken from spans are invalid afterwards.
 */
void timeline__forget(struct timeline *t, u64 horizon);
struct line *timeline__line(const struct timeline *t, u32 tid); /* NULL: no record of it */
/* No span of it that ended after the horizon was longer: spans are in order of their ends, and this says which of the
 * later ones can have begun before some moment. */
static inline u64 line__longest(const struct line *l)
{
	return max(l->longest, l->longest_before);
}
const struct fifo *timeline__cpu(const struct timeline *t, u32 cpu); /* of struct slot; NULL: none */
/* whether a CPU other than `cpu` was idle for most of [start, end) */
bool timeline__idle_elsewhere(const struct timeline *t, u32 cpu, u64 start, u64 end);

/* whether a thread that entered the kernel at ip did so in a probe of redframe */
bool timeline__in_probe(const struct timeline *t, const struct model *m, u64 ip);

/* timeline_spans.c: the span, sample, allocation that a record is. False: it is none. */
bool span__from(struct span *s, struct timeline *t, const struct model *m, const struct ev_hdr *rec);
/* timeline_uring.c: a completion; and what a wait in io_uring_enter, already in s, was for */
void uring__done(struct timeline *t, const struct ev_uring_done *e);
void uring__wait(struct span *s, const struct timeline *t, u32 tid);
/* timeline_heap.c. 0 or -ENOMEM */
int heap__event(struct timeline *t, const struct model *m, const struct ev_hdr *rec);
/* By how much it grew in [start, end), and the latest that is known of it then. bytes 0: it did not. */
struct growth heap__growth(const struct timeline *t, u64 start, u64 end);
bool allocation__from(struct allocation *a, struct timeline *t, const struct model *m, const struct ev_hdr *rec);

#endif
