/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_RUN_REPORT_HTML_H
#define REDFRAME_RUN_REPORT_HTML_H

#include "run_query.h"

void run_report__make_html(struct str *s, const struct run_facts *f);
void run_report__make_openmetrics(struct str *s, const struct run_facts *f);

#endif
