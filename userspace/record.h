/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_RECORD_H
#define REDFRAME_RECORD_H

#include "capture.h"
#include "explain.h"
#include "options.h"

enum alloc_mode { ALLOC_OFF, ALLOC_LARGE, ALLOC_ALL, ALLOC_PRELOAD };

/* What the user asked of `record`. */
struct record_options {
	/* as typed */
	u64 pid;
	const char *name;
	char **command; /* -- CMD ARGS…, NULL-terminated; NULL: none */
	bool wait, newest;
	bool children;
	const char *output;
	bool force, no_trace, no_symbols;
	double seconds;
	u64 frames;
	const char *budget, *frame, *events, *alloc_word, *kernel_stacks_word;
	struct option_texts meta, alloc_fn;
	u64 alloc_sample; /* bytes */
	u64 buffer;
	const char *rings_word;
	u64 stack; /* bytes copied of a stack */
	const char *sample_word;
	double max_overhead; /* percent of a CPU; 0: no bound */
	bool bpf_stats;
	bool verify;
	bool quiet, verbose;
	bool soak; /* it records for soak: SIGUSR1 is a wish, not the end */
	/* as understood */
	bool on[CLASS_COUNT];
	enum alloc_mode alloc;
	enum kernel_stacks_mode kernel_stacks;
	u32 rings; /* 0: auto */
	bool sample_auto;
	u32 sample_hz; /* 0: none, or auto */
	struct explain_options explain;
};

#define RECORD_STACK_BYTES   (16u << 10)
#define RECORD_SAMPLE_MAX_HZ 10000
#define RECORD_MAX_OVERHEAD  3.0
#define ALLOC_SAMPLE_BYTES   (512u << 10)
#define ALLOC_LARGE_BYTES    (64u << 10) /* with --alloc large, smaller ones are summed */

/* What soak has in common with record: rows, defaults, and what is to be made of what was typed: 0 or -EINVAL with a
 * message. */
extern const struct option_row record_capture_rows[];
void record_options__defaults(struct record_options *o);
int record_options__check(struct record_options *o, char **argv, int n, int command);

/* 0, 1 after --help, -EINVAL with a message. */
int record_options__parse(struct record_options *o, int argc, char **argv);
/* "sched,lock" sets, "+x,-y" changes the default: 0 or -EINVAL with a message that names the word */
int record_options__events(bool on[CLASS_COUNT], const char *list);

int verb__record(int argc, char **argv);

#endif
