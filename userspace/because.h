/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A frame's pieces, summed up by cause, thing and other thread; and under each wait the same of the thread that was
 * waited for, over the time of the wait, and so on: a tree.
 */
#ifndef REDFRAME_BECAUSE_H
#define REDFRAME_BECAUSE_H

#include "partition.h"

#define BECAUSE_DEPTH  4      /* how many threads down a wait is followed */
#define BECAUSE_NODES  4096u  /* of one frame; beyond, the reasons of further waits are left out and counted */
#define BECAUSE_MIN_NS 20000u /* shorter waits are not opened up */
#define TALLY          8

/* The largest few of many, by a running count: what has most is right, the tail is approximate. */
struct tally {
	u64 id[TALLY], n[TALLY];
};
void tally__add(struct tally *t, u64 id, u64 n);
u64 tally__top(const struct tally *t, u64 *n); /* the id with most; 0 where nothing was added */

struct node {
	u32 parent, child, last_child, next; /* 0: none; node 0 is the frame itself */
	u32 slot;                            /* where the hash table has it */
	s8 cause;
	u8 depth;
	bool foreign; /* of a thread of another process: only its scheduling is recorded */
	bool mixed;   /* of many things that are not told apart any more */
	bool reborn;  /* the other thread ended meanwhile, and its id was given to another */
	u64 what;     /* tells things apart within a frame: see because.c */
	u64 group;    /* thread__group of the other thread */
	u64 key;      /* tells it from others across frames: for the baseline */
	u64 ns;
	s64 excess;
	u64 left; /* of its typical time not yet deducted */
	u32 count;
	u32 major, minor; /* faults */
	u32 copied, huge; /* of them: the page was there and was written to; 2 MiB came at once */
	u64 bytes, cold;
	u64 from, to;          /* file offsets read; from > to: none */
	u64 cycle_ns;          /* of ns: the other thread waited, in the end, for one further up the chain */
	u64 blocked_ns;        /* of ns: off the CPU */
	u64 latency_ns;        /* CPU_WAIT: after a wakeup, while nobody or idle had the CPU */
	u64 idle_elsewhere_ns; /* CPU_WAIT: while another CPU was idle */
	u64 late_ns;           /* SLEEP: longer than it asked for */
	u64 longest_ns;
	const struct span *span, *last_span; /* of the longest piece: names come from it */
	u64 chain_ns;
	u32 chain; /* of the longest piece that has one: not each read has a call chain; 0: none has */
	const struct off *off, *last_off;
	struct tally who; /* other threads by ns; of CPU_WAIT with their priority in bits 32-39 */
	struct tally via; /* through which thread of another process they ended the wait, by ns */
	u32 samples;      /* CODE */
};

/* A piece of the frame with the node of depth 1 that it went to. */
struct moment {
	u64 start, end, waker_ts;
	u32 node, waker, who;
};

/* A sample in code, of the CODE node that it tells of. */
struct hit {
	u64 code; /* where the function begins, else its file's mapping */
	u32 node;
	u32 chain; /* CALL id; 0: none */
};

struct tree {
	struct node *nodes;
	u32 n, n_things; /* nodes; those of the frame itself */
	u32 *slots;      /* hash table of node indexes, n_slots a power of 2 */
	u32 n_slots;
	struct moment *moments;
	u32 n_moments, cap_moments;
	struct hit *hits; /* by node and code */
	u32 n_hits, cap_hits;
	u32 not_followed; /* waits whose reasons did not fit */
	u64 alloc_bytes, alloc_largest, alloc_caller;
	u32 alloc_calls, alloc_chain;
	struct tally alloc_bytes_at, alloc_samples_at; /* by code, of the sampled ones */
	u32 alloc_samples;
	bool lost; /* a piece of the frame lies where records were lost */

	/* while it is built */
	const struct timeline *t;
	const struct model *m;
	bool detail;
	u32 path[BECAUSE_DEPTH + 1];
	struct partition cuts[BECAUSE_DEPTH + 1];
};

/* Of [start, end) on thread tid. With detail also what only a slow frame's verdict needs: who had the CPU, samples,
 * moments. Nodes point into the timeline. 0 or -ENOMEM. */
int tree__build(
	struct tree *tree, const struct timeline *t, const struct model *m, u32 tid, u64 start, u64 end, bool detail);
void tree__free(struct tree *tree);

#define each_child(tree, of, i) for (u32 i = (tree)->nodes[of].child; i; i = (tree)->nodes[i].next)

#endif
