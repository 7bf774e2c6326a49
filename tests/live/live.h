/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Tests on the running kernel: a target program does known work and tells the truth about it, redframe records it, and
 * the two are compared.
 *
 *	struct live l;
 *	live__start(&l, "file", l.dir, NULL);		the target waits for its word
 *	live__record(&l, "--events", "file", NULL);	until it records
 *	live__run(&l);					the target works, tells and ends; redframe ends with it
 *	live__load(&l);					every record, in time order
 *	… live__row(&l, "call", i, …), l.ev[…] …
 *	live__free(&l);
 *
 * Whatever goes wrong on the way fails the test with what redframe said.
 */
#ifndef REDFRAME_LIVE_H
#define REDFRAME_LIVE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "events_desc.h"
#include "model.h"

struct live_event {
	const struct ev_hdr *hdr;
	const char *path; /* of the file that the record names; NULL where the recording does not say */
	const char *arg;  /* FILE_META: the path that the call was given; NULL for none */
};

struct live {
	char dir[64];        /* of this test's own files; on a disk, not in memory */
	char recording[128]; /* in dir */
	pid_t target, redframe;
	int go;                    /* the target's stdin */
	char *truth;               /* what it printed */
	char *said;                /* redframe's stdout and stderr */
	int target_status, status; /* as of wait(2) */
	struct live_event *ev;
	size_t n;
	struct model *model;
	bool incomplete; /* the recording's flag */
};

/* NULL, or why nothing can be traced here */
const char *live__cannot_trace(void);
/* Instead of cmocka's own: says aloud why all of a program is left out, which with CI=true in the environment fails. */
int live__main(const char *name, const char *cannot, int (*run)(void));
#define LIVE_MAIN(tests)                                                                                               \
	static int live_tests(void)                                                                                    \
	{                                                                                                              \
		return cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL);                                       \
	}                                                                                                              \
	int main(void)                                                                                                 \
	{                                                                                                              \
		return live__main(__FILE__, live__cannot_trace(), live_tests);                                         \
	}
/* what the i-th semaphore of the target's markers holds, at the address that its truth says: 0 while nobody listens */
unsigned short live__semaphore(const struct live *l, size_t i);
/* Leaves out the running test, aloud; with CI=true it fails. Does not return. */
void live__skip(const char *why);
/* The same, also with CI=true: no machine can be given what only the kernels of tests/vm have. Does not return. */
void live__skip_kernel(const char *why);

/* ---- running; each fails the test if it cannot ---- */

/* What is started meanwhile comes before all others (SCHED_RR), where that is allowed: for what a busy machine would
 * change, and is not judged. */
void live__to_the_front(void);
void live__to_the_back(void);

void live__init(struct live *l);
/* the target of tests/live/targets/NAME with arguments up to NULL; returns when it is ready */
void live__start(struct live *l, const char *name, ...) __attribute__((sentinel));
/* An X server without a screen, which programs started from now on find; its pid. Its words go to dir/display */
pid_t live__start_display(struct live *l);
/* any other program, which is not waited for */
void live__start_program(struct live *l, char *const argv[]);
/* `redframe record -p TARGET -o l->recording --no-trace --max-overhead 0 …`; returns when it records. Where counts must
 * be exact, nothing may be left out because this machine is slow. */
void live__record(struct live *l, ...) __attribute__((sentinel));
/* the same, with all arguments given here; returns its pid at once. Its words go to dir/NAME */
pid_t live__spawn(struct live *l, const char *name, char *const argv[]);
/* Until the file dir/NAME holds text; false if `pid` ended before. Fails the test after a minute. */
bool live__await(struct live *l, const char *name, const char *text, pid_t pid);
/* The target works; returns when it is done. It still lives: its stdin is open. */
void live__go(struct live *l);
/* Ends the target (end of its stdin) and takes its status */
void live__end_target(struct live *l);
/* Linux 7.2: a thread can be preempted within a program, and the same program is then not run for another on that CPU.
 */
bool live__passed_over(const struct live *l);
/* Waits for redframe to end by itself; l->status and l->said */
void live__end_redframe(struct live *l);
/* go, end_target, end_redframe; and the recording is clean: exit statuses 0, nothing lost */
void live__run(struct live *l);
int live__wait(pid_t pid); /* status; kills it and fails the test after a minute */
void live__free(struct live *l);
/* the whole of dir/NAME, to be freed; "" where it is not there */
char *live__read(struct live *l, const char *name);
/* runs a program to its end; its stdout, to be freed. Exit status in *status (may be NULL) */
char *live__output(struct live *l, int *status, char *const argv[]);
const char *live__program(void); /* build/redframe */
/* build/live/targets/NAME, valid until the next call */
const char *live__target_path(const char *name);

/* ---- the truth: lines of words ---- */

/* Column `col` (0: after the key) of the i-th line that begins with key, as a number or as a word up to a blank */
size_t live__rows(const struct live *l, const char *key);
long long live__num(const struct live *l, const char *key, size_t i, int col);
void live__word(const struct live *l, const char *key, size_t i, int col, char *out, size_t size);

/* ---- the recording ---- */

void live__load(struct live *l); /* in order of (ts, cpu) */
void live__load_from(struct live *l, const char *path);
void live__no_loss(const struct live *l);
size_t live__count(const struct live *l, u8 kind);
/* host id of a thread as the target numbers it */
u32 live__tid(const struct live *l, long long nstid);
/* record of kind after position *at, which is moved behind it; NULL at the end */
const struct live_event *live__next(const struct live *l, size_t *at, u8 kind);
#define live__each(l, at, e, kind) for (size_t at = 0; ((e) = live__next(l, &at, kind));)
/* the number that the real trace processor answers for this trace; it is fetched by tests/tp/get */
long long live__query(struct live *l, const char *trace, const char *sql);
/* programs of redframe that are loaded in the kernel now */
int live__programs_loaded(void);
/* a text record's tail */
const char *live__text(const struct ev_hdr *h);

#endif
