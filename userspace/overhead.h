/* SPDX-License-Identifier: GPL-2.0-only
 *
 * redframe overhead: what each class does to the frame time of a running game, measured by taking it on and off.
 */
#ifndef REDFRAME_OVERHEAD_H
#define REDFRAME_OVERHEAD_H

int verb__overhead(int argc, char **argv);

#endif
