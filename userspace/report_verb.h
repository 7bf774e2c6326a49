/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_REPORT_VERB_H
#define REDFRAME_REPORT_VERB_H

int verb__report(int argc, char **argv); /* enum exit_status */

#endif
