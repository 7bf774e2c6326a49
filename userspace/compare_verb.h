/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_COMPARE_VERB_H
#define REDFRAME_COMPARE_VERB_H

int verb__compare(int argc, char **argv); /* enum exit_status */

#endif
