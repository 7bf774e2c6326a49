/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The time index behind the records of a large recording: it lets a reader begin anywhere. docs/format.md describes its
 * bytes. It only ever says where to read: what is told comes from the records, and a recording without one, or with a
 * damaged one, is read whole.
 *
 * A verdict rests on the 120 frames of its stream before it; whether each of these was normal rests on the 120 before
 * that one (docs/attribution.md). So whoever begins INDEX_FRAMES frames earlier comes to the same verdict.
 */
#ifndef REDFRAME_TIME_INDEX_H
#define REDFRAME_TIME_INDEX_H

#include "baseline.h"
#include "recording.h"

#define INDEX_MAGIC       "RFINDEX1"
#define INDEX_FRAMES      (2 * BASELINE_FRAMES)
#define INDEX_SETTLE_NS   NSEC_PER_SEC       /* … and this much earlier, for waits that are under way then */
#define INDEX_LEAST_BYTES (2u << 20)         /* a smaller recording is read in no time */
#define INDEX_TAIL_NS     (2 * NSEC_PER_SEC) /* after its end no record of a frame is still to come */
#define INDEX_STREAMS     1024u              /* beyond these none is made */
#define INDEX_MADE_BYTES  (20u << 20)        /* a smaller recording without one is read faster than one is made */

/* ---- on disk ---- */

/* Where reading can begin: in the state that the records in [state_from, state_to) of the file tell. */
struct index_point {
	u64 ts;     /* the moment that it is the state of */
	u64 offset; /* of a record, before which none is younger than ts */
	u64 state_from, state_to;
	u32 same; /* records of that very ts that the state knows already, in time order */
	u32 zero;
};

struct index_frame {
	u64 start, end, number;
	u32 stream;
	u32 zero;
};

/* Then n_points points, then n_frames frames, in order of their verdicts. */
struct index_list {
	u64 names_from, names_to; /* records that hold for all of the recording */
	u64 n_points, n_frames;
};

/* The end of the file. */
struct index_tail {
	char magic[8];
	u64 uuid, records_end; /* of the recording's header: it is the index of this very file */
	u64 list_offset, list_bytes;
	u32 list_crc; /* CRC-32 */
	u32 zero;
};

/* ---- reading ---- */

struct model;

struct time_index {
	struct recording *told; /* states and names stand in it: the recording itself, or own */
	struct recording own;
	struct index_list list;
	char *buf;
	const struct index_point *points;
	const struct index_frame *frames;
};

/* Where what is asked for begins: see time_index__find. */
struct index_begin {
	const struct index_point *point; /* NULL: at the first record */
	u64 until;                       /* no later record says anything of it */
};

/* No later record says anything of a frame that ended then. */
static inline u64 time_index__tail(u64 end)
{
	return end + min(UINT64_MAX - end, INDEX_TAIL_NS);
}
/* False where there is none that fits the recording. */
bool time_index__open(struct time_index *ix, struct recording *r);
/* The same of an index in a file of its own, which it takes over (time_index_made.c). */
bool time_index__open_apart(struct time_index *ix, const struct recording *r, int fd);
/* For one that has none: it was cut off, or what recorded it was. Its index is looked for in the user's cache, and with
 * `make` it is made, which takes as long as reading all of the recording, and kept there. */
bool time_index__get(struct time_index *ix, struct recording *r, bool make);
void time_index__free(struct time_index *ix);
/* How many frames of each stream ended at that moment of it, or earlier. */
void time_index__count(const struct time_index *ix, const u64 until[INDEX_STREAMS], u32 counts[INDEX_STREAMS]);
/* For the frames that touch [from, to], of one stream or of all (~0). */
void time_index__find(const struct time_index *ix, u64 from, u64 to, u32 stream, struct index_begin *b);

/* ---- writing: an exporter, the last in the row, for the one replay of a complete recording ---- */

struct exporter;
/* fd: of that recording, or of another file, for writing from `at` on; stays the caller's. The index is cut off again
 * where it cannot be written. NULL when out of memory. */
struct exporter *time_index__writer(int fd, u64 at, const struct recording *r);
/* Whether it was. */
bool time_index__written(const struct exporter *writer);

#endif
