/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Why a frame was slow: its time, partitioned; each part against what is typical; one sentence.
 */
#ifndef REDFRAME_EXPLAIN_H
#define REDFRAME_EXPLAIN_H

#include "model.h"

/* A function of a call chain. */
struct place {
	const char *func;   /* "game+0x1234" where it has no name */
	const char *file;   /* as the compiler was given it; NULL */
	const char *object; /* base name of the file whose code it is; NULL */
	u32 line;           /* 0: not known */
};

/* One cause of one frame, one row in the JSON's "causes". Strings are valid UTF-8 and live as long as the verdict. */
struct part {
	enum cause cause;
	u64 ns;
	s64 excess_ns;              /* over the rolling median of this cause in normal frames of the stream */
	u32 count;                  /* events */
	const char *what;           /* path, lock, mapping, call, function; NULL */
	u64 bytes, cold_bytes;      /* 0: does not apply */
	u32 major, minor;           /* faults */
	u32 samples;                /* what a statement about code rests on */
	u32 share;                  /* CODE: percent of all samples of that thread's code */
	u32 who_tid;                /* the other thread; 0: none */
	const char *who;            /* its name, with the process where it is not the game's */
	u32 through_tid;            /* the thread of another process that passed it on, as wineserver does; 0: none */
	const char *through;        /* its name */
	const char *detail;         /* words for the sentence: "another CPU was idle", …; NULL */
	const char *where;          /* the function it happened in, with its line; NULL where not known */
	const struct place *places; /* its call chain, innermost first; NULL */
	u32 n_places;
	u32 n_system;               /* of them in the system's libraries, before the first of the game's own code */
	bool where_cut;             /* it goes on beyond the last of them */
	u32 who_others;             /* further threads that did as much of it; TALLY - 1: or more */
	const char *kernel;         /* the kernel's functions that its longest piece was blocked in; NULL: not known */
	u32 kernel_chain;           /* CALL id of that */
	u32 copied;                 /* faults that copied a page on write */
	u32 huge;                   /* faults that brought in 2 MiB at once */
	u64 blocked_ns;             /* of ns: off the CPU; of reads and faults the device's share */
	u64 from, to;               /* file offsets, from < to; both 0: does not apply */
	u64 latency_ns;             /* cpu_wait: wakeup latency, while no other thread had the CPU */
	u64 idle_elsewhere_ns;      /* cpu_wait: while another CPU was idle */
	u8 who_prio;                /* cpu_wait: as the kernel counts: below 100 real-time, 120 + nice; 0: not known */
	const char *who_cgroup;     /* cpu_wait: of the other's process; NULL where not known */
	u64 late_ns;                /* sleep: longer than it asked for */
	u64 longest_ns;             /* the longest single stretch */
	bool cycle;                 /* `who` in the end waits for this thread */
	u16 sys;                    /* system call, our id; SYS_NONE */
	u8 kind;                    /* enum ev_kind of the record it comes from; 0: none */
	u8 lock;                    /* enum lock_kind */
	u32 order;                  /* among the rows of its level, by time */
	const struct part *because; /* what `who` did meanwhile, largest first */
	u32 n_because;
};

/* One stretch of the frame in time order: the "why" lane. */
struct stretch {
	u64 start, end;
	u32 part;     /* index into parts */
	u64 waker_ts; /* when who_tid ended it; 0: not by a thread */
	u32 waker_tid;
	u32 who_tid;      /* waited for, or had the CPU; 0: none */
	const char *what; /* as in the part; of code the function sampled here; NULL: not known */
};

struct alloc_site;

struct verdict {
	struct frame frame;
	bool slow;
	bool unsure;    /* records were lost in it: sentence says what */
	bool forgotten; /* it was so long that its beginning was given up (report.cut) */
	u64 typical_ns; /* rolling median of the stream's normal frames; 0: too few yet */
	u64 budget_ns;
	bool warm_up;                           /* too few frames yet: the budget is the baseline */
	u64 cause_ns[CAUSE_COUNT];              /* sums to the frame; of every frame, slow or not, as are: */
	u64 cold_bytes, faults;                 /* by the frame's thread */
	u64 allocs, alloc_bytes, alloc_largest; /* the same */
	u64 typical_allocs;
	const char *alloc_where;      /* function that asked for the largest; NULL */
	const char *alloc_most_where; /* … that most bytes of the sampled ones stand for; NULL: none was sampled */
	u64 alloc_most_bytes;         /* an estimate */
	u32 alloc_most_samples, alloc_samples;  /* which it rests on, of how many */
	u64 heap_grown;                         /* bytes by which the game's main heap grew meanwhile */
	u64 heap_size, heap_free, heap_largest; /* what it was then, and no less of it free; 0: not known */
	u32 heap_pieces;                        /* that the free was in */
	bool heap_cut;                          /* there were more of them */
	bool fragmented;                        /* it grew though much of it was free */
	u32 not_followed;                       /* waits whose reasons were too many to keep */
	const char *sentence;                   /* NULL for a frame that is not slow */
	const struct part
		*parts; /* by excess, largest first; sums to the frame to the nanosecond. Not slow: may be 0 */
	u32 n_parts;
	const struct stretch *stretches;
	u32 n_stretches;
};

/* The whole recording. */
struct report {
	u64 frames, slow;
	u64 budget_ns;           /* of the last frame where it is auto */
	const char *budget_from; /* "option", "auto" */
	double mean_ns;
	u64 p50, p95, p99, p999, max;
	double low1_fps, low01_fps; /* 1 % low and 0.1 % low */
	u64 over_budget_ns;
	s64 excess_ns[CAUSE_COUNT]; /* of slow frames; each at least 0 */
	u64 unsure;                 /* slow frames in which records were lost */
	bool exact;                 /* percentiles are exact; else within 0.1 % (docs/attribution.md) */
	u64 late;                   /* records far out of order, left out */
	u64 cut;                    /* frames were so long that memory forgot their beginning before this ts; 0: none */
	const struct alloc_site *alloc_sites; /* most bytes first */
	u32 n_alloc_sites;
	u64 alloc_samples, alloc_period; /* bytes from sample to sample; 0: none was taken */
	u64 alloc_bytes;                 /* of all sites */
	const struct pattern *patterns;  /* by total excess, largest first */
	u32 n_patterns;
	u64 other_patterns; /* slow frames that found no room among them */
};

/* Hitches with the same cause, thing and thread. */
struct pattern {
	const char *text; /* as in the sentence, without figures */
	enum cause cause; /* at the end of the chain */
	u64 count;
	s64 excess_ns;             /* total */
	u64 worst_ns, worst_frame; /* the frame's duration and number */
	u64 period_ns;             /* they come every … ; 0: not regular */
	u64 first, last;           /* ends of the first and last such frame */
	u64 first_visits;          /* of count: within 2 s of the first time that their scene was seen */
	u64 key;
};

enum budget_from { BUDGET_AUTO, BUDGET_OPTION };
struct explain_options {
	enum budget_from from;
	u64 budget_ns;
	bool every_frame; /* parts, stretches and a sentence for frames that are not slow too */
	bool has_frame;   /* the same for the frames of this number only */
	u64 frame;
	u64 since, until; /* verdicts only of frames that end in (since, until], and the report is of these; both 0: of
			     all */
	size_t timeline_bytes; /* for what threads did lately; 0: TIMELINE_LIMIT */
};

struct explain;
struct explain *explain__new(const struct explain_options *o);
void explain__free(struct explain *x);
/* Feed after model__event, in the same order. 0 or -ENOMEM. */
int explain__event(struct explain *x, struct model *m, const struct ev_hdr *rec);
/* The next finished verdict, or NULL; flush at the end of the stream. Valid until the next call on x. */
const struct verdict *explain__next(struct explain *x, struct model *m, bool flush);
const struct report *explain__report(struct explain *x, const struct model *m);

#endif
