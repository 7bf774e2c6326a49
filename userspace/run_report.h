/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A run in the store, as files for others. Each 0 or -errno; a run without frames is reported as not measured.
 */
#ifndef REDFRAME_RUN_REPORT_H
#define REDFRAME_RUN_REPORT_H

#include <stdio.h>

#include "store.h"

int run_report__text(struct store *s, const char *run, FILE *to);
int run_report__json(struct store *s, const char *run, FILE *to);
int run_report__junit(struct store *s, const char *run, FILE *to);
int run_report__openmetrics(struct store *s, const char *run, FILE *to);
int run_report__html(struct store *s, const char *run, FILE *to);

#endif
