/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_PROBE_H
#define REDFRAME_PROBE_H

/* Lists what looks like a game. */
int probe__list(void);
/* redframe probe -p PID | -n NAME [--newest] | PATH; argv begins after the verb. Returns an enum exit_status. */
int verb__probe(int argc, char **argv);

#endif
