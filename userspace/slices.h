/* SPDX-License-Identifier: GPL-2.0-only
 *
 * An export cut to size: only some slices of the recording, or in several files, each of which stands alone. It is an
 * exporter itself, before the one that knows the format.
 *
 * A record belongs to a slice that it touches; a wait that reaches over the end of a file is in both, cut off there.
 * One that began in a file and lasts longer than a second after that file's end is only in the one that it ends in.
 */
#ifndef REDFRAME_SLICES_H
#define REDFRAME_SLICES_H

#include "exporter.h"

struct slice {
	u64 from, to; /* ns, BOOTTIME, both included */
};

struct slices_options {
	const struct exporter_ops *format;
	const char *path; /* "run.pftrace", then run-2.pftrace; "-" is standard output */
	bool force;
	u64 split_bytes;          /* a new file at the first frame after so many; 0: one file */
	const struct slice *only; /* in order, apart from each other; none: all of the recording */
	u32 n_only;
	u64 zero; /* exporter.h */
};

/* Perfetto's UI needs some 30 times as much memory as the deflated file is long, and has 2 GB in a browser. */
#define PERFETTO_SPLIT_BYTES (64ULL << 20)

/* 0; -EEXIST, -EACCES… after a message of output__open; -ENOMEM. */
int slices__open(struct exporter **e, const struct slices_options *o);
u32 slices__files(const struct exporter *e);
u64 slices__frames(const struct exporter *e); /* that were in what is asked for */
/* after an error: half a trace misleads */
void slices__remove(const struct exporter *e);

#endif
