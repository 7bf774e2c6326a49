/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_DOCTOR_H
#define REDFRAME_DOCTOR_H

#include "common.h"

enum finding_status { FINDING_OK, FINDING_WARN, FINDING_FAIL };

/* One line of doctor: what was looked at, what was found, and how to mend it. */
struct finding {
	char name[64];
	enum finding_status status;
	char detail[400];
	char fix[200]; /* "" where there is nothing to mend */
};

struct findings {
	struct finding v[96];
	int n;
};

struct finding *finding__add(struct findings *f, const char *name, enum finding_status status, const char *fix,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* userspace/doctor_selftest.c: loads and attaches every program, provokes one event of each class in a child, and looks
 * for it in the recording. */
void doctor__selftest(struct findings *f);

int verb__doctor(int argc, char **argv);

#endif
