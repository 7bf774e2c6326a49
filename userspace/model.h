/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What a recording says, as things: threads, processes, files, mappings, symbols, frames, counts, losses. A pure
 * function of the stream of records in time order: no clock, no /proc, no kernel. Memory grows with the number of
 * distinct things, never with the length of the recording.
 */
#ifndef REDFRAME_MODEL_H
#define REDFRAME_MODEL_H

#include "common.h"

struct model;

struct thread {
	u32 tid, tgid; /* tgid 0: not known */
	u32 nstid;     /* its id in its own pid namespace; tid where not known */
	char name[64]; /* valid UTF-8 */
	bool game;     /* of the recorded process */
	bool recorded; /* of that, or of a child that was recorded beside it */
	bool exited;
	u64 born; /* ts of the FORK; 0: it was there before */
	u64 died; /* ts of the EXIT, with exited */
};

struct process {
	u32 tgid, parent;
	char name[64];       /* the main thread's, valid UTF-8 */
	const char *cmdline; /* arguments NUL-separated, cmdline_len bytes; NULL where not known */
	size_t cmdline_len;
	const char *cgroup; /* "/user.slice"; a new process is in its parent's; NULL where not known. Not sanitised */
};

struct mapping {
	u64 start, end, offset, ino;
	u32 dev, prot;
	const char *path; /* as in /proc/PID/maps: "", "[heap]", "[stack]", "/…" ; not sanitised */
};

struct symbol {
	u64 addr, size;
	const char *name;   /* demangled */
	const char *object; /* base name of the file */
	u32 outer;          /* the model's own */
};

/* A place in the code, and what called it. Ids count from 1; 0 is none. */
struct call {
	u64 addr;   /* within the instruction that was executing */
	u32 caller; /* a smaller id; 0: the outermost */
	u32 flags;  /* enum call_flags */
	u32 jit;    /* number of the code made at run time that was there; 0: none */
};

/* What the debug information says of an address: level 0 is the innermost of the functions inlined there. Not
 * sanitised. */
struct source {
	u64 ts; /* of its record */
	u64 addr;
	u32 line; /* 0: not known */
	u32 level;
	const char *function; /* demangled; "" where not known: then a symbol may be */
	const char *file;     /* as the compiler was given it; "" where not known */
};

/* A file whose code the game ran. */
struct code_image {
	u64 start, end;
	u64 bias;             /* address in the game less that in the file */
	const char *build_id; /* hex digits; "" where it has none. Not sanitised */
};

/* Frames of one process, frame source and swapchain. All USDT sites of one provider are one source (a marker may be
 * inlined in many places), every other site is its own.
 *
 * A frame runs from boundary to boundary. FRAME_MARK is one. In a stream that has FRAME_BEGIN, only BEGINs are: marks
 * are ignored, and an END matters only if no further BEGIN comes, when it closes the last frame (model__finish). In a
 * stream that has only ENDs, they are the boundaries.
 *
 * A present of a source that is no USDT, less than 1 ms and less than 1/8 of the usual gap (upper quartile of the last
 * 31) after the one before, is the same frame seen twice: counted in `doubled`, no boundary. */
#define FRAME_SILENCE_NS NSEC_PER_SEC
struct frame_stream {
	u32 id;         /* 0, 1, … in order of appearance */
	u32 tid;        /* presents; the latest where it moves between threads */
	u32 site;       /* INFO probe.<site> */
	u64 stream;     /* swapchain, display, surface */
	u32 count;      /* finished frames */
	u64 open_since; /* start of the frame that is not finished yet; 0: none */
	u64 doubled;    /* presents that were the one before, seen again */
	u32 moves;      /* frames that another thread presented than the one before */
	u32 silences;   /* gaps of FRAME_SILENCE_NS or more between boundaries: the game loads, or shows a still picture
			 */
	u64 silent_ns;  /* … in all */
	u64 steady_ns;  /* how long nearly every frame takes, as under a limiter or vsync; 0: they differ */
};

struct frame {
	u32 index;  /* in its stream, from 0: the first mark only begins a frame */
	u64 number; /* the game's own number, or index where it has none */
	const struct frame_stream *stream;
	u32 tid;
	u64 start, end; /* ns, BOOTTIME */
	u64 lost;       /* records lost between start and end, all classes */
	u64 lost_class[CLASS_COUNT];
	u32 thinned;    /* classes (1 << enum ev_class) that were not recorded whole in it */
	char scene[64]; /* in which it ended; "" where the game names none */
};

/* What all CPUs had to give between the first and the last time that was looked, and who had it. */
struct cpu_use {
	u64 all_ns;
	u64 others_ns; /* neither the game nor idle */
	u64 stolen_ns; /* by what is below this machine */
};

struct model_stats {
	u64 first, last;         /* ts of the first and last record that is no META */
	u64 events;              /* records that are no META */
	u64 counts[CLASS_COUNT]; /* ev__count per class; of frames the boundaries */
	u64 lost[CLASS_COUNT];
	u64 kinds[256]; /* records per kind */
	u64 frames;
	u32 notes;
};

struct model *model__new(void);
void model__free(struct model *m);
/* What ended before ts is not asked for any more: a stream without an end needs no more memory than what lives.
 * Pointers to threads and processes become invalid. 0 or -ENOMEM, after which the model is only to be freed. */
int model__forget_dead(struct model *m, u64 ts);

/* Tells what the model knows by now as records stamped ts, from which another model knows the same: a recording that
 * begins here begins with them. Not told: frames, losses, counts, symbols and call chains, nor paths: those that matter
 * are told one by one. fn takes the record without its text, then the text. 0 or the first -errno of fn. */
typedef int (*model_tell_fn)(void *arg, const void *fixed, size_t bytes, const char *text, size_t len);
int model__tell(const struct model *m, u64 ts, model_tell_fn fn, void *arg);
int model__tell_path(const struct model *m, u64 ts, u32 dev, u64 ino, model_tell_fn fn, void *arg);
int model__tell_paths(const struct model *m, u64 ts, model_tell_fn fn, void *arg);

/* Feeds one record. 0 or -ENOMEM. Afterwards model__ended_frame tells whether it ended a frame. */
int model__event(struct model *m, const struct ev_hdr *rec);
/* Before the first model__event, of a recording that can be read twice: takes from records what holds for all of it,
 * wherever it stands in the file (INFO, SYMBOL, LOCK_NAME, PATH), and counts nothing. Other kinds are ignored. 0 or
 * -ENOMEM. */
int model__foretell(struct model *m, const struct ev_hdr *rec);
/* Records of such a kind are written when a recording ends, and needed from its first record on. */
bool model__is_of_code(u8 kind);
/* The frame that the record just fed ended, or NULL. Valid until the next model__event. */
const struct frame *model__ended_frame(const struct model *m);
/* After the last record: closes a frame that had its END but no further BEGIN. Returns the record of that END, with
 * model__ended_frame set as if it had just been fed; NULL when there is none left. */
const struct ev_hdr *model__finish(struct model *m);
/* Records lost between start and end as far as is known by now, in all and per class (may be NULL): a LOST record
 * stands for the time since the one before, is spread over it evenly, and comes after the frame that it hurt. */
u64 model__lost_in(const struct model *m, u64 start, u64 end, u64 lost_class[CLASS_COUNT]);
/* Classes (1 << enum ev_class) of which something was left out at any time between start and end, to cost the game
 * less: SHED says what. */
u32 model__thinned_in(const struct model *m, u64 start, u64 end);
/* every stream in order of appearance; NULL after the last */
const struct frame_stream *model__stream(const struct model *m, u32 id);
/* the one that a FRAME record belongs to, if it has been fed; NULL: there is none yet */
const struct frame_stream *model__stream_of(const struct model *m, const struct ev_frame *rec);
/* Of a model that did not see a stream from its beginning: so many of its frames ended before. */
void model__frames_before(struct model *m, u32 id, u32 count);
/* Only what is in (from, to] counts in model__stats; before the first model__event. */
void model__count_only(struct model *m, u64 from, u64 to);

const struct model_stats *model__stats(const struct model *m);
double model__seconds(const struct model *m);         /* from the first event to the last: a recording's duration */
struct cpu_use model__cpu_use(const struct model *m); /* 0: not known */
u32 model__game(const struct model *m);               /* tgid; 0 before it is known */
/* NULL where the recording does not say. Keys are in docs/format.md. Not sanitised. */
const char *model__info(const struct model *m, const char *key);
/* every INFO in order: returns the number; *key and *value of the i-th */
int model__info_count(const struct model *m);
void model__info_at(const struct model *m, int i, const char **key, const char **value);
/* every NOTE (what could not be done), in order */
const char *model__note(const struct model *m, u32 i, u32 *severity, u32 *class, u64 *ts);

/* Never NULL: an unknown tid gives a thread without a name, kept in the model. */
struct thread *model__thread(struct model *m, u32 tid);
const struct thread *model__find_thread(const struct model *m, u32 tid); /* may be NULL */
static inline bool model__recorded(const struct model *m, u32 tid)
{
	const struct thread *t = model__find_thread(m, tid);

	return t && t->recorded;
}
/* host tid for a tid that the game wrote in its own namespace; 0 where there is none */
u32 model__host_tid(const struct model *m, u32 nstid);
const struct process *model__find_process(const struct model *m, u32 tgid);
void model__each_thread(const struct model *m, void (*fn)(const struct thread *t, void *arg), void *arg);
void model__each_process(const struct model *m, void (*fn)(const struct process *p, void *arg), void *arg);

/* "/data/navmesh.bin", "pipe:[12]", "socket:[12]", "[eventfd]"; NULL where no PATH told. Not sanitised. */
const char *model__path(const struct model *m, u32 dev, u64 ino);
/* the path argument that belongs to this FILE_META record (from PATH_ARG); NULL where there is none.
 * Only while the record is being fed. */
const char *model__path_arg(const struct model *m, const struct ev_hdr *rec);
/* the mapping of the game that holds addr now; NULL where none is known */
const struct mapping *model__mapping(const struct model *m, u64 addr);
const struct symbol *model__symbol(const struct model *m, u64 addr);
/* Code made at run time, by its number; NULL for any other. The number of what was at addr at ts; 0: none is known. */
const struct symbol *model__jit(const struct model *m, u64 id);
u32 model__jit_at(const struct model *m, u64 addr, u64 ts);
/* The chain of this event, the innermost call's id; 0: none. Only while the record is being fed. */
u32 model__chain(const struct model *m, const struct ev_hdr *rec);
const struct call *model__call(const struct model *m, u32 id); /* NULL: none */
/* the functions at an address of a chain, innermost first: returns how many, *out the first of them */
u32 model__sources(const struct model *m, u64 addr, const struct source **out);
/* The chain in the kernel that SWITCH.kstack numbers; 0: none. */
u32 model__kernel_chain(const struct model *m, u32 kstack);
/* … of the last time that this record's thread blocked while what it tells of went on; 0: none. Only while the record
 * is being fed. */
u32 model__blocked_chain(const struct model *m, const struct ev_hdr *rec);
/* the file that addr's code came from; NULL: not known */
const struct code_image *model__image(const struct model *m, u64 addr);
const char *model__lock_name(const struct model *m, u64 addr); /* LOCK_NAME; NULL */

/* What a record is about, for a person: path, mapping, lock, "munmap 2.0 MiB"; valid UTF-8; "" where nothing.
 * Returns buf. */
const char *model__what(const struct model *m, const struct ev_hdr *rec, char *buf, size_t size);

#endif
