/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What a probe and a sampling timer cost on this machine: tried on redframe itself.
 */
#ifndef REDFRAME_CALIBRATE_H
#define REDFRAME_CALIBRATE_H

#include "common.h"

struct capture;

/* ns of a hit on an instruction that the kernel emulates, and on one that it single-steps; 0: could not be measured. */
void calibrate__uprobes(const struct capture *c, u64 *emulated_ns, u64 *stepped_ns);
/* ns that a tick of a sampling timer takes from what runs, without a program; 0: could not be measured. */
u64 calibrate__tick(void);

#endif
