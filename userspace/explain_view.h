/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What `explain` prints, and `record` at its end: verdicts are handed over one by one, the worst are kept as text, and
 * the whole is printed once the recording is read. Memory: the kept frames only; JSON of all goes through a temporary
 * file.
 */
#ifndef REDFRAME_EXPLAIN_VIEW_H
#define REDFRAME_EXPLAIN_VIEW_H

#include <stdio.h>

#include "explain.h"
#include "strings.h"

struct view_options {
	bool json;
	bool all;       /* every slow frame, in order of time; else the worst `worst` ones, worst first */
	u64 worst;      /* at most 10000 are kept */
	bool has_frame; /* that frame's parts and timeline instead of the worst */
	u64 frame;
	bool colour;
	/* how a frame is written; NULL: as text, or JSON */
	void (*write)(struct str *s, const struct verdict *v, const struct model *m);
};

struct view;
struct view *view__new(const struct view_options *o); /* NULL: errno says why */
void view__free(struct view *view);
/* For struct replay's `verdict`: arg is the view. */
void view__verdict(const struct verdict *v, const struct model *m, void *arg);
struct recording;
/* r may be NULL. 0 or -errno after a message: the first error, also of handing over. A reader who went away is none. */
int view__print(
	struct view *view, FILE *to, const struct model *m, const struct report *r, const struct recording *rec);
/* Instead of view__print: only the worst, worst first. 0 or the first -errno. */
int view__worst(struct view *view, struct str *s);
/* frames printed or kept; with has_frame 0 means that there is no such frame */
u64 view__frames(const struct view *view);
/* the least and the greatest number of those that were handed over; false: none was */
bool view__numbers(const struct view *view, u64 *least, u64 *greatest);

/* explain_text.c. All escape what came from the game. */
void text__frame(struct str *s, const struct verdict *v, const struct model *m, bool colour);
/* of a part: what it was about, its figures, the other thread */
void text__part(struct str *s, const struct part *p);
void text__timeline(struct str *s, const struct verdict *v, const struct model *m, bool colour);
void text__summary(
	struct str *s, const struct report *r, const struct model *m, const struct recording *rec, bool colour);
/* of a pattern: what it is, when it comes, and its worst frame */
void text__pattern(struct str *s, const struct pattern *p);
void text__patterns(struct str *s, const struct report *r);
void text__alloc_sites(struct str *s, const struct report *r);
extern const char explain_formulas[];

/* explain_json.c: one element of slow_frames; and what stands before and after them */
void json__frame(struct str *s, const struct verdict *v, const struct model *m);
void json__head(struct str *s, const struct report *r, const struct model *m, const struct recording *rec);
void json__tail(struct str *s, const struct report *r);

#endif
