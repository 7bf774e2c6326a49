/* SPDX-License-Identifier: GPL-2.0-only
 *
 * `--alloc preload`: the reading side of preload/area.h. The game writes its allocator calls into shared memory; each
 * pass makes ALLOC and FREE records of them, as the probes would. All of the memory is the game's, and not believed.
 */
#ifndef REDFRAME_PRELOAD_H
#define REDFRAME_PRELOAD_H

#include "common.h"

struct drain;
struct preload_area;
struct target;

struct preload {
	int fd; /* -1: not in use */
	struct preload_area *area;
	struct preload_thread *threads; /* by slot */
	char library[512];
	u64 ticks, ts;   /* one moment on the CPU's counter and on BOOTTIME, of the pass before */
	u64 lost_before; /* of threads without a slot */
	u64 fullest;     /* records in the fullest ring of the pass before */
	u64 calls;       /* of the game, recorded, since its last exec that was noticed */
	u64 checked_ts;
	u32 tgid; /* whose threads the slots were checked against */
};

/* Makes the memory and finds the library, beside the program or in its ../lib/redframe. 0, or -errno after a message.
 */
int preload__open(struct preload *p);
/* From now on calls are sampled, one in so many bytes: there is a probe that takes them. */
void preload__sample(struct preload *p, u64 bytes);
/* In the child, before exec: the environment by which the library is loaded and finds the memory. */
void preload__enter(const struct preload *p);
/* Everything that is in the rings now, into the recording, then what was lost. 0 or -errno of the recording. */
int preload__pass(struct preload *p, const struct target *t, struct drain *d);
/* Calls are recorded, or not; what is in the rings is dropped. */
void preload__pause(struct preload *p, bool pause);
/* How long the rings can wait for the next pass. */
int preload__pause_ms(const struct preload *p);
/* why nothing came of it; NULL where something did */
const char *preload__shortfall(const struct preload *p);
void preload__close(struct preload *p);

/* One call, made out of a ring's records; pure, for tests. */
struct preload_record;
struct preload_call {
	u64 ticks; /* below now; the counter's full width */
	u64 size, block, caller;
	u32 fn; /* enum alloc_fn */
};
/* Takes the call that begins at records[*at]; n is how many there are in all. False: what is there is no call, and is
 * skipped. *at moves on either way. */
bool preload__decode(const struct preload_record *ring, u64 *at, u64 end, u64 now_ticks, struct preload_call *c);

#endif
