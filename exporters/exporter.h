/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What an exporter implements. It is called in time order and keeps nothing that grows with the recording.
 */
#ifndef REDFRAME_EXPORTER_H
#define REDFRAME_EXPORTER_H

#include "common.h"

struct model;
struct verdict;
struct report;

struct exporter {
	const struct exporter_ops *ops;
	int fd;       /* where it writes; owned by the caller */
	u64 zero;     /* ts of the recording's first event: what begins there is at 0 s; 0: not known */
	u64 from, to; /* what lies outside is cut off there; to 0: nothing is. May grow narrower while it works */
};

struct exporter_ops {
	const char *name;   /* "--format" word */
	const char *suffix; /* ".pftrace" */
	bool frames_only;   /* it says nothing where there are no frames */
	/* NULL when out of memory. The recording is not read yet. */
	struct exporter *(*open)(int fd);
	/* each 0 or -errno; after an error only close is called */
	int (*event)(struct exporter *e, const struct model *m, const struct ev_hdr *rec); /* after model__event */
	int (*frame)(struct exporter *e, const struct model *m, const struct verdict *v);  /* every frame, explained;
		 comes some time after the frame's end, in order of their ends */
	int (*end)(struct exporter *e, const struct model *m, const struct report *r);
	void (*close)(struct exporter *e);
};

extern const struct exporter_ops exporter_perfetto, exporter_json, exporter_text, exporter_csv, exporter_html;

/* by name or by the suffix of path; NULL where there is none */
const struct exporter_ops *exporter__find(const char *name, const char *path);

#endif
