/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REDFRAME_DEMANGLE_H
#define REDFRAME_DEMANGLE_H

/* "_ZN5AStar6expandEi" → "AStar::expand": C++ and Rust, without parameters. malloc'ed; NULL where it is no mangled
 * name. */
char *demangle(const char *name);

#endif
