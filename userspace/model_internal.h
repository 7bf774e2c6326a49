/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The model's parts, shared by model*.c only.
 */
#ifndef REDFRAME_MODEL_INTERNAL_H
#define REDFRAME_MODEL_INTERNAL_H

#include "events_desc.h"
#include "model.h"
#include "table.h"

/* Bounds against hostile recordings; real ones stay far below. */
#define MAX_THREADS    (1u << 20)
#define MAX_MAPPINGS   (1u << 17)
#define MAX_STREAMS    1024u
#define MAX_NOTES      4096u
#define MAX_CALLS      (1u << 22)
#define MAX_KSTACKS    (1u << 20)
#define MAX_IMAGES     (1u << 14)
#define MAX_JITS       (1u << 20)
#define LOST_KEPT      4096u
#define THINNINGS_KEPT 1024u

struct mthread {
	struct thread t; /* first: a struct thread is one of these */
	u64 stack_ts;    /* of the event that the last STACK belongs to */
	u32 stack;       /* its chain */
	u32 kstack;      /* of the last switch that has one: SWITCH.kstack */
	u64 kstack_ts;   /* … which was then */
	char *path_arg;  /* EV_MAX_BYTES, made when first needed; "" when used up */
};

struct note {
	u64 ts;
	u32 severity, class;
	const char *text;
};

#define GAPS 31
#define PACE 32
struct mstream {
	struct frame_stream s;
	u32 tgid;
	u64 source; /* see source_of */
	bool usdt;
	bool open;                /* start is a boundary */
	bool begins;              /* has had a FRAME_BEGIN */
	u64 start, number;        /* the open frame; the number its BEGIN gave */
	struct ev_frame last_end; /* since the last BEGIN; kind 0: none */
	u64 seen;                 /* ts of the last present, doubled or not; 0: none */
	u64 gaps[GAPS];           /* ring of the gaps between presents */
	u32 n_gaps;
	u64 pace[PACE]; /* how long the last frames took */
	u32 n_pace;
	u32 windows, steady; /* of PACE frames each; and those in which nearly all took as long */
	u64 steady_ns;       /* in the last of them */
};

struct loss {
	u64 since, ts;
	u32 class, count;
};

/* from ts on */
struct thinning {
	u64 ts;
	u32 classes;
};

struct model {
	struct model_stats stats;
	struct ev_cpu_use cpu_use; /* the last */
	struct cpu_use cpus;
	u64 count_from, count_to; /* of the stats; both 0: all */
	struct pool pool;
	struct table threads;   /* tid → struct mthread */
	struct table nstids;    /* of the game: its own tid → struct mthread */
	struct table processes; /* tgid → struct process */
	struct table children;  /* tgid of a recorded child → the model: any value */
	bool follows;           /* children of recorded processes are recorded */
	struct table files;     /* ino, dev → path */
	struct table locks;     /* address → name */
	struct table infos;     /* key → "key\0value" */
	struct mthread unknown; /* stands for all threads beyond MAX_THREADS */
	u32 game;
	struct note *notes;
	u32 n_notes, cap_notes;

	struct mapping **maps; /* by start, disjoint */
	u32 n_maps, cap_maps;
	struct mapping *spare_maps; /* chained through ->ino */
	struct jit_symbol *jits;    /* by id - 1 */
	u32 *jits_by_addr;          /* ids, made when first asked for */
	u32 n_jits, cap_jits;
	struct symbol *symbols;
	size_t n_symbols, cap_symbols;
	bool symbols_sorted, symbols_foretold;

	struct call *calls; /* by id - 1 */
	u32 n_calls, cap_calls;
	u32 *kchains; /* CALL ids, by SWITCH.kstack */
	u32 n_kchains;
	struct code_image *images;
	u32 n_images;
	struct source *sources;
	u32 n_sources, cap_sources;
	bool sources_sorted;

	struct table streams; /* see stream_key */
	struct frame frame;
	bool frame_ended;
	struct ev_frame finish_rec;
	char scene[64];
	struct loss *losses;        /* a ring of LOST_KEPT */
	u32 n_losses;               /* ever */
	struct thinning *thinnings; /* a ring of THINNINGS_KEPT */
	u32 n_thinnings;            /* ever */
	u32 shed[CLASS_COUNT];      /* how much of the class is left out now: SHEDs out less those back */

	u32 path_arg_tid; /* whose path_arg belongs to the record being fed; 0: none */
};

/* keys of `files`; dev + 1, since 0 and 0 is no key */
static inline struct key file__key(u32 dev, u64 ino)
{
	return (struct key){ino, (u64)dev + 1};
}

static inline u32 file__dev(struct key k)
{
	return (u32)(k.b - 1);
}

static inline u64 file__ino(struct key k)
{
	return k.a;
}

static inline bool model__counts(const struct model *m, u64 ts)
{
	return !m->count_to || (ts > m->count_from && ts <= m->count_to);
}

/* each 0 or -ENOMEM */
int threads__event(struct model *m, const struct ev_hdr *rec); /* PROCESS THREAD FORK EXEC EXIT RENAME */
int threads__game(struct model *m, u32 tgid);
int threads__child(struct model *m, u32 tgid);
int files__path(struct model *m, const struct ev_path *rec);
int files__path_arg(struct model *m, const struct ev_hdr *rec);
void files__path_arg_used(struct model *m); /* it belonged to the record before */
int memory__map(struct model *m, const struct ev_map *rec);
int memory__call(struct model *m, const struct ev_mem_call *rec);
int memory__symbol(struct model *m, const struct ev_symbol *rec);
int calls__call(struct model *m, const struct ev_call *rec);
int calls__stack(struct model *m, const struct ev_stack *rec);
int calls__source(struct model *m, const struct ev_source *rec);
int calls__kstack(struct model *m, const struct ev_kstack *rec);
int calls__switch(struct model *m, const struct ev_switch *rec);
int calls__image(struct model *m, const struct ev_image *rec);
int jits__symbol(struct model *m, const struct ev_jit_symbol *rec);
void jits__free(struct model *m);
void memory__forget(struct model *m); /* the process begins another program */
void memory__free(struct model *m);
int frames__event(struct model *m, const struct ev_frame *rec);
void frames__scene(struct model *m, const struct ev_hdr *rec);
void frames__left(struct model *m);
int frames__lost(struct model *m, const struct ev_lost *rec);
int frames__shed(struct model *m, const struct ev_shed *rec);

struct mthread *model__mthread(struct model *m, u32 tid);
static inline struct key key__int(u64 a)
{
	return (struct key){a, 0};
}

#endif
