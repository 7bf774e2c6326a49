/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The kernel side as userspace sees it: load what is asked for and possible, attach it, say what could not be had.
 */
#ifndef REDFRAME_CAPTURE_H
#define REDFRAME_CAPTURE_H

#include "common.h"
#include "ring.h"

struct site_list;

/* Kernel stacks of blocking switches: of those whose system call does not say what they wait for, or of all. */
enum kernel_stacks_mode { KERNEL_STACKS_OFF, KERNEL_STACKS_SOME, KERNEL_STACKS_ALL };

struct capture_options {
	u32 tgid;
	bool follow; /* the children of what is recorded as well, until capture__game says otherwise */
	bool on[CLASS_COUNT];
	u64 alloc_min;          /* bytes: smaller allocations are summed; 0: each is recorded */
	u64 alloc_sample_bytes; /* of small allocations one in so many bytes is sampled; 0: none is */
	u64 syscall_min_ns;     /* other system calls shorter than this are not recorded */
	u32 sample_hz;          /* CLASS_SAMPLE */
	u32 stack_bytes;        /* of the stack that are copied for the events worth it; 0: none */
	enum kernel_stacks_mode kernel_stacks;
	size_t ring_bytes; /* of all rings: a power of two, at least a page */
	u32 rings;         /* at most so many, each of a group of CPUs: 0: by their number */
};

#define CAPTURE_RING_BYTES     (16u << 20)
#define CAPTURE_RING_LEAST     (4u << 20) /* of several, each has at least this, or all that was asked for */
#define CAPTURE_RING_CPUS      4          /* share one, where the buffer is too small for more */
#define CAPTURE_SYSCALL_MIN_NS 50000

/* which events come with the stack of their thread, and how many of them */
#define CAPTURE_STACK_WAIT_NS            500000
#define CAPTURE_STACK_SAMPLE_HZ          100
#define CAPTURE_STACKS_PER_THREAD        200  /* a second, without samples */
#define CAPTURE_STACKS_PER_SECOND        1000 /* of all threads */
#define CAPTURE_KERNEL_STACKS_PER_SECOND 2000 /* of a CPU, below a thousandth of its time each */

/* Called for each thing that could not be done: class it belongs to, and what and why in words. */
typedef void (*capture_note_fn)(void *arg, enum ev_class class, const char *text);

struct capture;

/* Loads the programs of the classes that are on. A program that the kernel refuses is left out and noted, and the rest
 * load. -errno when nothing can be: the note says why. */
int capture__load(struct capture **out, const struct capture_options *o, capture_note_fn note, void *arg);
/* Attaches everything but the sites: they come with capture__attach_sites, from the index `first` on. */
int capture__attach(struct capture *c);
int capture__attach_sites(struct capture *c, const struct site_list *sites, int first);
void capture__detach_sites(struct capture *c, u8 what); /* enum probe_what */
/* Those of that kind stay off, new ones too, until capture__attach_sites_again. */
void capture__leave_out_sites(struct capture *c, u8 what);
int capture__attach_sites_again(struct capture *c, const struct site_list *sites, u8 what);
/* All but the frame sites, off and on again; what is left out stays so. */
void capture__pause(struct capture *c);
int capture__resume(struct capture *c, const struct site_list *sites);
void capture__detach(struct capture *c); /* records that are in the ring stay there */
void capture__free(struct capture *c);

/* With follow: records this process too. */
int capture__follow(struct capture *c, u32 tgid);
/* With follow: which of them is the game, whose sites come next; and whether only that is recorded from here on. */
void capture__game(struct capture *c, u32 tgid, bool only);
/* Where the game's allocator keeps its bins (userspace/heap.h); 0: not known. */
void capture__heap(struct capture *c, u64 bins);

/* rings are numbered from 0, and all as large; of which one a CPU's records go into is nobody's business */
u32 capture__rings(const struct capture *c);
size_t capture__ring_bytes(const struct capture *c);
u32 capture__ring_of(const struct capture *c, u32 cpu);
/* What is in one ring now, or in all. 0, what take returned when it was not 0, or -EPROTO. */
int capture__consume(struct capture *c, u32 ring, ring_take_fn take, void *arg);
int capture__consume_all(struct capture *c, ring_take_fn take, void *arg);
/* bytes in all rings that were not taken: after a pass, those from the first record on that is not complete */
u64 capture__unread(const struct capture *c);
/* lost since load, by class and CPU */
u64 capture__lost(const struct capture *c, enum ev_class class, u32 cpu);
/* Events that the kernel did not hand to a program because it ran on that CPU already (v5.12 9ed9e9ba2337; before, not
 * counted); in worst the program that it happened to most. */
u64 capture__skipped(const struct capture *c, char *worst, size_t size);
/* hits of allocation probes since load, small ones included; *stepped of them were single-stepped */
u64 capture__alloc_calls(const struct capture *c, u64 *stepped);
/* calls since load of frame sources whose probe is single-stepped, of whatever is no frame too */
u64 capture__stepped_marks(const struct capture *c);
/* From now on leaves out, or no longer, THIN_… of bpf_options.h. */
void capture__thin(struct capture *c, u32 thin);
/* CPU samples off and on again. 0 or -errno. */
int capture__sample(struct capture *c, bool on);
/* Faults in the kernel's own code off and on again: those of a read into fresh pages. 0 or -errno. */
int capture__kernel_faults(struct capture *c, bool on);
/* The programs at system calls off and on again. Before they go, and until they are back, with THIN_CALLS. 0 or -errno.
 */
int capture__syscalls(struct capture *c, bool on);
/* faults of processes that are not recorded, since load: of their code, and within the kernel */
void capture__other_faults(const struct capture *c, u64 *user, u64 *kernel);
/* system calls since load, recorded or not: of the game, and of other processes */
void capture__calls(const struct capture *c, u64 *game, u64 *others);
/* A probe of ours at a place in a file that this process maps, which records nothing: to see what it costs. NULL where
 * it does not attach. */
struct capture_trial;
struct capture_trial *capture__try(const struct capture *c, const char *path, u64 offset);
void capture__end_try(struct capture_trial *t);
/* Keeps the kernel's statistics of all BPF programs on, until the fd is closed: they cost some 20 ns a run. -errno */
int capture__keep_stats(void);
/* runs of a program and the time in them while statistics were on; false at the end */
bool capture__runs(const struct capture *c, int i, const char **name, u64 *runs, u64 *ns);
/* why stacks were not copied, enum stack_skip, and how many were */
u64 capture__stacks(const struct capture *c, u64 skipped[]);
/* The kernel stack in the next place after *place of those that are kept (~0U: the first): its KERNEL_STACK_CALLS
 * addresses, innermost first, 0 behind the last. False: there is none. */
bool capture__next_kernel_stack(const struct capture *c, u32 *place, u64 *ips);
/* how many blocking switches that were worth one have none, enum kernel_stack_skip */
void capture__kernel_stack_skips(const struct capture *c, u64 skipped[]);
bool capture__attached(const struct capture *c, enum ev_class class); /* all programs of the class are in place */

/* Program names with whether they loaded and attached, for doctor: index from 0, false at the end. */
bool capture__program(const struct capture *c, int i, const char **name, enum ev_class *class, bool *attached);

#endif
