/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Work on a game's files in a process of its own: those who made them, or damaged them, may have made the libraries
 * that read them crash. It costs what the work would have brought, never the recording.
 */
#ifndef REDFRAME_APART_H
#define REDFRAME_APART_H

#include "common.h"

struct recording_writer;

struct apart {
	void (*work)(void *arg); /* may write to w and to result; anything else that it changes is lost */
	void *arg;
	void *result;
	size_t result_bytes;
	u32 seconds;  /* that it may take; 0: any time */
	u64 at;       /* out: what it was at when it failed, see apart__at; 0: not known */
	char how[64]; /* out: how it ended, in words */
};

/* 0; -EPROTO where the work failed, then w and its file are as before; or another -errno */
int apart__run(struct apart *a, struct recording_writer *w);
/* What the work is at: an address of the game. */
void apart__at(u64 addr);

#endif
