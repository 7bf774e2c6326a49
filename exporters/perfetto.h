/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Inside the Perfetto exporter.
 *
 * Everything goes out as it comes, on one packet sequence. The importer sorts by time, stably, so a slice may be sent
 * when it ends: its begin simply has an earlier timestamp. The one thing that sorting cannot mend is two slices of one
 * track that begin at the same moment, the inner one sent first: lanes (perfetto_tracks.c) see to that.
 */
#ifndef REDFRAME_PERFETTO_H
#define REDFRAME_PERFETTO_H

#include "events_desc.h"
#include "explain.h"
#include "exporter.h"
#include "model.h"
#include "perfetto_proto.h"
#include "protobuf.h"
#include "table.h"

struct perfetto;

/* ---- perfetto_intern.c: strings sent once and named by number ---- */

enum intern_kind { INTERN_CATEGORY, INTERN_NAME, INTERN_ANNOTATION, INTERN_VALUE };

#define INTERN_SLOTS   8192u /* a power of two */
#define INTERN_ENTRIES (INTERN_SLOTS / 2)
#define INTERN_BYTES   (512u << 10)
#define IID_MEMO       1024u
#define INTERN_LONGEST 512u /* longer ones are not worth keeping */

struct iid_entry {
	u32 hash, offset;
	u16 len;
	u16 kind;
};

struct iids {
	struct iid_entry *entries; /* iid - 1 */
	u32 n, sent;               /* sent: how many the importer knows */
	u16 *slots;                /* iid, 0: free */
	char *bytes;
	size_t used;
	struct iid_memo {
		const void *who;
		u64 value;
		u64 iid;
	} memo[IID_MEMO]; /* saves the look at the bytes of what is asked for again and again */
};

int iids__open(struct iids *in);
void iids__close(struct iids *in);
void iids__clear(struct iids *in);
bool iids__nearly_full(const struct iids *in);
/* 0 where there is no room: send the string itself */
u64 iids__id(struct iids *in, enum intern_kind kind, const char *s, size_t n);
/* where to remember the iid of something known by an address that lasts and a number; its iid is 0 if it is not
 * there. Holds until the next call, which may need the place. */
struct iid_memo *iids__memo(struct iids *in, const void *who, u64 value);
/* writes interned_data with what the importer does not know yet */
void iids__send(struct iids *in, struct pb *b);

/* ---- perfetto_tracks.c ---- */

#define LANE_TOPS   4
#define LANES_MAX   256 /* of one thread and class */
#define TRACKS_ROOT 0   /* no parent */

/* A track whose slices nest. Remembered: the last slices that lie in no other one. */
struct lane {
	u64 track;
	u64 floor; /* nothing may begin before */
	u32 n;
	struct {
		u64 start, end;
	} top[LANE_TOPS];
};

struct lanes {
	struct lane *lane;
	u32 n;
};

/* A thread, as far as the trace tells of it. */
struct task {
	u32 tid;
	u64 sent_thread, sent_process; /* hashes of the identity sent, 0: none */
	u64 track;                     /* 0: none yet */
	struct lanes *lanes;           /* [CLASS_COUNT][2]: those that nest, those that must not */
};

struct task_table {
	struct task **slots;
	u32 n, cap;
};

void lanes__free(struct lanes *l, u32 n);
/* NULL when out of memory */
struct task *perfetto__task(struct perfetto *p, u32 tid);
void tasks__close(struct task_table *t);
/* the tid begins a new life */
void task__reset(struct task *t);

struct track_desc {
	u64 uuid, parent;
	const char *name;         /* NULL: none */
	const char *process_name; /* NULL: not known */
	u32 rank;
	u32 tgid, tid; /* tid: a thread's track; tgid alone: the process's */
	bool counter;
	enum counter_unit unit;
	const char *unit_name;
};
u64 perfetto__new_track(struct perfetto *p);
void perfetto__describe(struct perfetto *p, const struct track_desc *d);
/* a counter of the game's process */
u64 perfetto__counter(
	struct perfetto *p, const struct model *m, const char *name, enum counter_unit unit, const char *unit_name);
/* of the game's process; made when first asked for */
u64 perfetto__process_track(struct perfetto *p, const struct model *m);
/* The lane for [start, end] of this record's thread and class, made where there is none; NULL: too many, or no
 * memory (p->error). */
struct lane *perfetto__lane(struct perfetto *p, const struct model *m, const struct ev_hdr *rec, enum ev_class class,
	bool nest, u64 start, u64 end);
bool lane__fits(const struct lane *l, bool nest, u64 start, u64 end);
void lane__add(struct lane *l, bool nest, u64 start, u64 end);

/* What lies outside of the file (exporter.from, to) is moved to where it begins or ends. */
u64 perfetto__clip(const struct perfetto *p, u64 ts);
/* One track event, clipped: begin, then name and annotations, then end. */
void perfetto__event_begin(struct perfetto *p, u64 ts, enum track_event_type type, u64 track);
void perfetto__event_end(struct perfetto *p);
void perfetto__event_name(struct perfetto *p, const char *category, const char *name);       /* interned */
void perfetto__event_own_name(struct perfetto *p, const char *category, const char *name);   /* used once */
void perfetto__message(struct perfetto *p, const struct model *m, u64 ts, const char *name); /* on the process track */
void perfetto__slice_end(struct perfetto *p, u64 ts, u64 track);
void perfetto__count(struct perfetto *p, u64 ts, u64 track, s64 value);
void perfetto__count_double(struct perfetto *p, u64 ts, u64 track, double value);

/* Annotations of the event that is open. Names are constants; NULL: an array's element. Text may be any bytes. */
void perfetto__note_int(struct perfetto *p, const char *name, s64 v);
void perfetto__note_uint(struct perfetto *p, const char *name, u64 v);
void perfetto__note_hex(struct perfetto *p, const char *name, u64 v);
void perfetto__note_bool(struct perfetto *p, const char *name, bool v);
void perfetto__note_double(struct perfetto *p, const char *name, double v);
void perfetto__note_text(struct perfetto *p, const char *name, const char *s, size_t n);
/* a field as its unit's words */
void perfetto__note_word(struct perfetto *p, const char *name, const struct ev_hdr *rec, const struct ev_field *f);
void perfetto__note_utf8(struct perfetto *p, const char *name, const char *s); /* valid UTF-8 */
void perfetto__note_str(struct perfetto *p, const char *name, const char *s);  /* NULL: nothing */
/* nested: close with note_close */
struct note_mark {
	size_t outer;
	u32 field; /* what its elements are */
};
struct note_mark perfetto__note_open(struct perfetto *p, const char *name, bool array);
void perfetto__note_close(struct perfetto *p, struct note_mark m);

/* ---- perfetto_sched.c and perfetto_tasks.c ---- */

#define SCHED_CPUS  1024 /* the importer takes no more */
#define SCHED_BATCH 256
#define SCHED_COMMS 4096
#define SCHED_CACHE 128

struct sched_entry {
	u64 delta;
	u32 tid;
	u16 state; /* or the target CPU */
	u16 comm;
	u8 prio;
	u8 flags;
};

struct comm_slot {
	u32 tid, gen;
	u16 comm;
};

struct sched_cpu {
	u32 running;
	u64 last_ts; /* of the last switch */
	bool known;  /* which thread runs, from the last switch */
	u16 n_switch, n_waking, n_comms;
	u16 comm_used;
	u32 gen; /* of the cache */
	u64 switch_ts, waking_ts;
	struct sched_entry sw[SCHED_BATCH], wk[SCHED_BATCH];
	u16 comm_at[2 * SCHED_BATCH];
	char comms[SCHED_COMMS];
	struct comm_slot cache[SCHED_CACHE];
};

/* A raw task state as sched_switch of kernels since 4.14 prints it. */
u32 sched__prev_state(u16 raw, bool preempt);
void sched__switch(struct perfetto *p, const struct model *m, const struct ev_switch *ev);
void sched__waking(struct perfetto *p, const struct model *m, const struct ev_waking *ev);
void sched__lost(struct perfetto *p, u16 cpu, u64 ts);
void sched__flush(struct perfetto *p);
void sched__close(struct perfetto *p);
/* A bundle with one event: write the event's own message between. */
#define FLAGS_UNKNOWN (-1)
struct ftrace_mark {
	size_t bundle, event, body;
};
struct ftrace_mark ftrace__begin(struct perfetto *p, const struct ev_hdr *h, u64 ts, u32 tid, int flags, u32 field);
void ftrace__end(struct perfetto *p, struct ftrace_mark m);

/* Says who a thread is, where that is known and not said yet. */
void tasks__announce(struct perfetto *p, const struct model *m, u32 tid, u64 ts);
void tasks__announce_all(struct perfetto *p, const struct model *m, u64 ts);
void tasks__event(struct perfetto *p, const struct model *m, const struct ev_hdr *rec); /* FORK, EXEC, EXIT, RENAME */
void tasks__gone(struct perfetto *p, const struct ev_hdr *h, const char *comm);

/* ---- perfetto_events.c: any kind, from its descriptor ---- */

void events__generic(struct perfetto *p, const struct model *m, const struct ev_hdr *rec, const struct ev_desc *d);
void events__lost(struct perfetto *p, const struct model *m, const struct ev_lost *ev);
void events__memory(struct perfetto *p, const struct model *m, const struct ev_mem_call *ev);
void events__cost(struct perfetto *p, const struct model *m, const struct ev_cost *ev);
void events__effect(struct perfetto *p, const struct model *m, const struct ev_effect *ev);
void events__text(struct perfetto *p, const struct model *m, const struct ev_hdr *rec, const char *name);

/* ---- perfetto_stacks.c ---- */

#define CALLSTACK_MAPPINGS 512

/* What the importer was told of call chains since it last forgot. */
struct callstacks {
	struct table sent;                /* (user's chain, kernel's) → iid */
	u64 mappings[CALLSTACK_MAPPINGS]; /* starts, by iid - 1 */
	u32 n_mappings;
	u64 last_frame;
};

/* The iid of this record's call chain, in the kernel first and then in the game, sent before if need be; 0: it has
 * none. No event may be open. */
u64 perfetto__callstack(struct perfetto *p, const struct model *m, const struct ev_hdr *rec);
void callstacks__forget(struct callstacks *c);
void callstacks__close(struct callstacks *c);
/* for the flame graph of CPU samples: those that have a chain */
void perfetto__sample(struct perfetto *p, const struct model *m, const struct ev_sample *ev);

/* ---- perfetto_frames.c ---- */

#define FRAME_STREAMS 64 /* with a track of their own; there is one, or two */

struct frame_tracks {
	bool named;
	bool open; /* a frame has begun and not ended */
	struct lane frames, why;
	u64 time_counter;
	u64 begun, next_number; /* of the open one */
};

void frame_tracks__mark(struct perfetto *p, const struct model *m, const struct ev_frame *ev);
void frame_tracks__verdict(struct perfetto *p, const struct model *m, const struct verdict *v);
void frame_tracks__end(struct perfetto *p, const struct model *m, u64 ts);

/* ---- the exporter ---- */

struct perfetto {
	struct exporter base;
	struct pb_sink sink;
	struct pb *pb; /* the packet that is open */
	size_t mark_event, mark_annotation;
	u32 annotation_field; /* what an annotation is in the message that is open */
	struct iids iids;
	struct callstacks callstacks;
	int error; /* the first -errno that is not the sink's */
	bool started, clear_state, dropped, system_info;
	u32 attributes; /* how many INFO were sent */
	u64 last_uuid, last_flow, last_ts;
	u64 process_track, lost_counter, faults_counter, heap_counter, mapped_counter, cpu_counter;
	u64 field_tracks[EV_KINDS]; /* a COUNTER kind's first track, the others follow */
	struct task_table tasks;
	struct sched_cpu **cpus;
	u32 names_gen;
	u64 lost, faults;
	u64 unshown; /* what found no track */
	u64 gaps;    /* switches missing that no LOST record accounts for */
	u64 heap_start;
	s64 mapped;
	u64 cost_ts, cost_cpu_ns;
	u64 effect_counter[CLASS_COUNT], effect_ts[CLASS_COUNT], effect_ns[CLASS_COUNT];
	u64 clock_ts, clock_monotonic; /* of the last snapshot */
	struct frame_tracks *streams;  /* [FRAME_STREAMS], by frame_stream.id */
};

/* A packet on the sequence, with what an event of the open sequence needs: flags SEQ_NEEDS_STATE or 0. */
struct pb *perfetto__packet_begin(struct perfetto *p, u32 flags);
void perfetto__packet_end(struct perfetto *p);

/* As exporter_perfetto.open; deflate false leaves the packets as they are. */
struct exporter *perfetto__open(int fd, bool deflate);

#endif
