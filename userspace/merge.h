/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Time order. Records arrive nearly sorted (a CPU may be held up between reading the clock and taking its place in
 * the ring); merge holds them back for a window and gives them out in order of (ts, cpu, arrival).
 */
#ifndef REDFRAME_MERGE_H
#define REDFRAME_MERGE_H

#include "common.h"

/* longer than anything that keeps the recorder from the ring: letting go of a uprobe takes a tenth of a second */
#define MERGE_WINDOW_NS (500 * NSEC_PER_MSEC)
#define MERGE_MAX_BYTES (24u << 20) /* held back at most, with what that takes; beyond it the oldest goes out early */

struct merge;

/* NULL when out of memory. */
struct merge *merge__new(u64 window_ns, size_t max_bytes);
void merge__free(struct merge *m);
/* Copies the record. Afterwards take what merge__pop has. 0 or -ENOMEM: then the record is not in. */
int merge__push(struct merge *m, const struct ev_hdr *rec);
/* The next record that is safe to give out, or NULL; with flush, all that is held. Valid until the next push or pop. */
const struct ev_hdr *merge__pop(struct merge *m, bool flush);
/* records that came so late that something younger had gone out already; they are given out at once */
u64 merge__late(const struct merge *m);

#endif
