/* SPDX-License-Identifier: GPL-2.0-only
 *
 * One recording as it is being made: the game, the probes, the ring, the file.
 */
#ifndef REDFRAME_SESSION_H
#define REDFRAME_SESSION_H

#include <elfutils/libdwfl.h>

#include "stacks.h"
#include "drain.h"
#include "effect.h"
#include "governor.h"
#include "images.h"
#include "kallsyms.h"
#include "kernel_stacks.h"
#include "launch.h"
#include "pe_modules.h"
#include "perf_map.h"
#include "preload.h"
#include "process.h"
#include "record.h"
#include "recording.h"
#include "sites.h"
#include "stepped.h"

struct capture;
struct scout;
struct unwinder;

enum session_end { END_NOT_YET, END_DURATION, END_FRAMES, END_SIGNAL, END_GAME, END_ERROR };

#define SETTLED_MARKS 8 /* after which the frame source is no guess any more */

struct session {
	const struct record_options *o;
	struct target target;
	struct launch launch;
	struct preload preload; /* --alloc preload */
	struct site_list sites;
	struct images images;
	struct perf_map perf_map;
	char source[256];    /* the frame source in words */
	bool have_frames;    /* … and whether there is one */
	char left[512];      /* those that were called too often for their cost, one a line */
	char told_left[600]; /* and until when they were recorded, in words */
	u32 n_left;
	u64 marks_left, left_ts; /* what they had counted, and when the last was left */
	struct capture *capture;
	struct recording_writer out;
	struct drain drain;
	struct stacks stacks;
	struct kallsyms kallsyms;
	bool kallsyms_read;
	int kallsyms_fd;     /* opened while it may be; -errno: it cannot be */
	struct code_naming { /* in a process that names segments: what serves all of them */
		Dwfl *dwfl;
		struct unwinder *unwinder;
		struct pe_modules pe;
		struct kernel_stacks kernel;
		int err;
	} naming;
	struct scout *scout;
	u64 start, stop;   /* ns, BOOTTIME */
	u64 mappings_next; /* when the game's mappings are looked at next, at the earliest */
	u64 attach_ns;     /* what attaching took, without the search for probe sites */
	enum session_end end;
	int signal_fd;
	bool poked; /* SIGUSR1 came: only with record_options.soak */
	/* after each pass over the ring, with the time; another end than END_NOT_YET ends it. NULL: record's limits
	 * hold */
	enum session_end (*each_pass)(void *arg, u64 ts);
	void *each_pass_arg;
	struct change *change; /* probes go on or off in another thread: session_probes.c */
	u32 notes;
	u64 cpu_before, cpu_ns; /* of redframe itself: when recording began, and spent while it ran */
	u64 alone_since;        /* CMD has ended, and what it left behind may become the game; 0: no */
	bool told_blind;
	bool only_game;     /* of CMD and its children only the game is recorded from here on */
	char verified[200]; /* what that has found, in words; "": it was not asked for */
	struct prices prices;
	u64 tick_ns; /* 0: not measured */
	u32 sample_hz;
	struct governor governor;
	struct stepped_rate stepped_rate; /* of the frame source */
	struct effect effect_before;      /* at the governor's last look, effect_ts */
	u64 effect_ts;
	int stats_fd; /* keeps the kernel's statistics on; -1: not asked for */
	u32 heap_of;  /* tgid whose heap is known to the kernel side; 0: none yet */
};

/* Finds the game (waiting for it if asked) or prepares CMD. enum exit_status; says what is wrong. */
int session__find(struct session *s, const struct record_options *o);
/* A signal came that ends it. */
bool session__interrupted(struct session *s);
/* Loads and attaches, writing to fd (taken over; -1: to the sinks in s->out and s->stacks), and lets CMD run. enum
 * exit_status. */
int session__attach(struct session *s, int fd);
/* What is in the rings now. 0 or the -errno of the recording. */
int session__pass(struct session *s);
/* Until a limit, a signal or the end of the game. */
void session__run(struct session *s);
/* Detaches, empties the ring, closes the file. 0 or the first -errno of the file. */
int session__finish(struct session *s);
void session__free(struct session *s);

/* userspace/session_names.c: where copied stacks go; and at the end the call chains, and names for what is in them */
void session__open_stacks(struct session *s);
void session__name_code(struct session *s);
/* The same for a recording of its own that holds a part of this one: 0 or -errno. */
int session__name_segment(struct session *s, struct recording_writer *w, struct stacks *stacks);

/* userspace/session_sites.c: the probes; each says what it could not do */
void session__find_sites(struct session *s);
void session__attach_sites(struct session *s, int first);
void session__start_scout(struct session *s, bool now);
/* userspace/session_family.c: CMD's children, or the game's: who is recorded, and which of them is the game */
int session__begin_family(struct session *s);
void session__tell_family(struct session *s, u64 ts);
/* the process that presents frames is another one than was thought */
int session__retarget(struct session *s, u32 tgid);
/* CMD's family: whether the recording goes on after the target's end; and what is to be done now and then */
bool session__outlives_target(struct session *s, u64 ts);
void session__tend_family(struct session *s);
void session__leave_sites(struct session *s, u8 what); /* enum probe_what */
/* The frame source costs too much: another one is looked for. */
void session__replace_frame_source(struct session *s);
void session__take_finds(struct session *s);
void session__tell_uncovered(struct session *s);
void session__find_heap(struct session *s);

/* userspace/session_probes.c: probes on and off, while the rings are emptied: the sites of an enum probe_what, or
 * everything */
#define DETACH_ALL (-1)
void session__detach(struct session *s, int what);
/* until they are attached again */
void session__leave_out(struct session *s, int what);
int session__attach_again(struct session *s, int what);
/* the sites from `first` on */
int session__attach_from(struct session *s, int first);
/* for capture__load: arg is the session */
void session__capture_note(void *arg, enum ev_class class, const char *text);

/* userspace/session_cost.c: what recording costs, and what is left out where that is too much for the game */
u64 session__own_cpu_ns(void); /* since the process began */
void session__tell_cost(struct session *s, u64 ts);
void session__choose_rate(struct session *s); /* of CPU samples */
void session__begin_cost(struct session *s);
void session__govern(struct session *s, u64 ts);
void session__tell_effect(struct session *s, u64 ts);
void session__end_cost(struct session *s);

/* userspace/session_verify.c: what all of that does to the frame time, measured once recording has ended. Into the
 * recording, and said. */
void session__verify(struct session *s);

/* Now, for a record of our own: what the kernel has written up to now comes before it, however long we were busy. */
u64 session__stamp(struct session *s);
/* Something that could not be done: into the recording, and said. */
void session__note(struct session *s, u32 severity, enum ev_class class, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* redframe's own CPU time over the recording's, in percent of one CPU */
double session__cpu_percent(const struct session *s);

/* what the probes have cost the game, by estimate, in percent of one CPU */
double session__effect_percent(const struct session *s);

/* userspace/progress.c: a line on a terminal, nothing in a pipe */
void progress__show(const struct session *s);
void progress__clear(void);

#endif
