/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_EXPORT_H
#define REDFRAME_EXPORT_H

/* redframe export RECORDING -o OUT [--format F]; argv[0] is the first argument. Returns enum exit_status. */
int verb__export(int argc, char **argv);

#endif
