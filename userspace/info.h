/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_INFO_H
#define REDFRAME_INFO_H

/* redframe info RECORDING [--json]; argv[0] is the first argument. Returns enum exit_status. */
int verb__info(int argc, char **argv);

#endif
