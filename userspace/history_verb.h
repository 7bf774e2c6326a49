/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_HISTORY_VERB_H
#define REDFRAME_HISTORY_VERB_H

int verb__history(int argc, char **argv); /* enum exit_status */

#endif
