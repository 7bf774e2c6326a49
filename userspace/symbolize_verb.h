/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_SYMBOLIZE_VERB_H
#define REDFRAME_SYMBOLIZE_VERB_H

/* redframe symbolize RECORDING --path DIR -o FILE; argv[0] is the first argument. Returns enum exit_status. */
int verb__symbolize(int argc, char **argv);

#endif
