/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Recordings of minutes, made in memory's time, for the tests of what reads only a part of them: frames of 16 ms by
 * thread 100, with faults, lock waits and samples; each 77th is slow, for one of four reasons in turn, some of which
 * only what was recorded long before can tell. Every tenth frame another stream has one too, numbered from 1,000,000
 * on.
 */
#ifndef REDFRAME_TEST_LONG_RECORDING_H
#define REDFRAME_TEST_LONG_RECORDING_H

#include "recording.h"

struct long_recording {
	struct recording_writer w;
	char path[64]; /* the caller unlinks it */
	u64 seed, ts;
};

/* late_info: an info record in the middle; NULL: none. index: with its time index, as record leaves it. */
void long_recording__make(struct long_recording *g, u64 frames, bool index, const char *late_info);

/* below `below`; the same ones in each run */
u64 long_recording__random(struct long_recording *g, u64 below);

/* What `explain PATH WORDS` prints, and its exit status. The caller frees. */
char *long_recording__explain(const char *path, const char *words, int *status);

/* Makes the checksum of a changed index fit again: a list of somebody's own making has one that does. */
void long_recording__mend_index(int fd);

#endif
