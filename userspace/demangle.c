// SPDX-License-Identifier: GPL-2.0-only
#include <libiberty/demangle.h>

#include "demangle.h"

char *demangle(const char *name)
{
	return cplus_demangle(name, DMGL_AUTO);
}
