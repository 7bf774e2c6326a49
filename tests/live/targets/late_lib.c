// SPDX-License-Identifier: GPL-2.0-only
/* A library with markers of its own, as an engine's plugin has them. */
#include "redframe.h"

void tick(int number);
void tick(int number)
{
	REDFRAME_FRAME_STREAM(1000 + number, 7);
	REDFRAME_MESSAGEF("tick %d", number);
}
