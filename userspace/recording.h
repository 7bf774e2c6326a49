/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The .redframe file: a header, the list of kinds, then records as they were produced. docs/format.md describes it.
 */
#ifndef REDFRAME_RECORDING_H
#define REDFRAME_RECORDING_H

#include "common.h"

#define RECORDING_MAGIC      "REDFRAME"
#define RECORDING_BOM        0x01020304u
#define RECORDING_MAJOR      1  /* a reader refuses another one */
#define RECORDING_MINOR      0  /* grows when kinds or fields are appended; every reader copes */
#define RECORDING_INCOMPLETE 1u /* set at the start, cleared by a clean end */

struct recording_hdr {
	char magic[8];
	u32 bom;
	u16 major;
	u16 minor;
	u32 flags;
	u32 header_bytes; /* offset of the first record */
	u32 kinds;        /* entries in the kind list */
	u32 zero;
	u64 uuid[2];
	u64 start; /* ns, CLOCK_BOOTTIME */
	u64 bytes; /* of the whole file at a clean end, so that a later cut shows; 0 before */
};

/* ---- writing: one thread, no allocation after create ---- */

struct recording_writer {
	int fd;
	int error; /* the first -errno of a write; nothing is written after it (0: fine) */
	u64 bytes; /* in the file and the buffer */
	u64 records;
	size_t used;
	size_t size;
	char *buf;
	u64 limit;                                        /* file size at which to stop with -EFBIG; 0: none */
	int (*sink)(void *arg, const struct ev_hdr *rec); /* where there is no file; NULL: there is one */
	void *sink_arg;
};

/* Takes over fd (already open for writing, empty). 0 or -errno. */
int recording__create(struct recording_writer *w, int fd, u64 start);
/* No file: each record goes to sink, and its -errno ends the writing. */
void recording__to(struct recording_writer *w, int (*sink)(void *arg, const struct ev_hdr *rec), void *arg);
/* bytes is a multiple of 8 and equals the record's words. Returns w->error. */
int recording__append(struct recording_writer *w, const void *rec, size_t bytes);
int recording__flush(struct recording_writer *w);
/* Flushes, and gives the buffer back until recording__resume: 0 or the first error. */
int recording__rest(struct recording_writer *w);
int recording__resume(struct recording_writer *w);
/* Flushes, clears INCOMPLETE if complete and nothing failed, closes. Returns the first error. */
int recording__finish(struct recording_writer *w, bool complete);

/* A record with a text tail: fixed is the struct without it (hdr.kind, tid, ts, cpu filled). The text is cut to fit. */
int recording__append_text(
	struct recording_writer *w, const void *fixed, size_t fixed_bytes, const char *text, size_t len);

/* ---- reading ---- */

struct recording {
	int fd;
	struct recording_hdr hdr;
	u64 size;            /* of the file */
	u64 end;             /* of its records; UINT64_MAX: where the file ends */
	u64 offset;          /* of the next unread record */
	u64 newest;          /* the largest ts of those read; since recording__seek */
	u64 bytes_read;      /* ever */
	bool truncated;      /* it ended inside a record or before its clean end, or had none */
	u64 cut_bytes;       /* trailing bytes that are no whole record */
	u64 unknown;         /* records of kinds this build does not know: skipped */
	u64 malformed;       /* records too short for their kind: skipped */
	u16 kind_bytes[256]; /* fixed part of each kind as the file's writer had it; 0: not in its list */
	char *buf;
	size_t used, pos, cap;
	u64 read_at, read_to; /* of the file: what is read next, and where that ends */
	bool eof;
	u64 bounce[256]; /* a record of an older minor, widened with zeroes */
};

/* -errno; -EINVAL not a recording, -EPROTO a newer major, -ENODATA empty, -EBADMSG other byte order or a damaged
 * header. recording__strerror says it in words with the path and the way out. */
int recording__open(struct recording *r, const char *path);
int recording__open_fd(struct recording *r, int fd); /* takes over fd */
const char *recording__strerror(int err);
/* The next record in file order, valid until the next call: 1, 0 at the end, -errno on an I/O error. */
int recording__next(struct recording *r, const struct ev_hdr **rec);
/* Back to the first record. 0 or -errno. */
int recording__rewind(struct recording *r);
/* Where its records end, as far as they are there. */
u64 recording__records_end(const struct recording *r);
/* To the record at `from`; those up to `to` are read. 0 or -errno. */
int recording__seek(struct recording *r, u64 from, u64 to);
void recording__close(struct recording *r);

#endif
