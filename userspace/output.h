/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Files that we make: never through a link, never over something unless asked.
 */
#ifndef REDFRAME_OUTPUT_H
#define REDFRAME_OUTPUT_H

#include "common.h"

/* A new file for reading and writing, owned by the user who called sudo. With force an existing regular file is
 * emptied. The fd, or -errno after a message. */
int output__open(const char *path, bool force);

/* That the path is not what fd reads, which would be emptied: 0, or -EINVAL after a message. */
int output__apart(const char *path, int fd);

/* The directory, made where it is missing and then the caller's too. 0 or -errno after a message. *made: it was. */
int output__make_dir(const char *path, bool *made);

/* Buffered writing to an fd that the caller owns; nothing is written after the first error. */
struct output {
	int fd;
	int error; /* the first -errno */
	size_t used;
	char buf[64 << 10];
};

/* each 0 or the first -errno */
int output__write(struct output *o, const char *bytes, size_t n);
int output__flush(struct output *o);

#endif
