// SPDX-License-Identifier: GPL-2.0-only
/* clock_step.so, to be preloaded: a wall clock that is set back by two hours each second second, for this process only.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

#define STEP 7200

typedef int (*real_fn)(clockid_t, struct timespec *);

static int real(clockid_t clock, struct timespec *t)
{
	static real_fn next;

	if (!next)
		next = (real_fn)dlsym(RTLD_NEXT, "clock_gettime");
	return next(clock, t);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	static int told;
	int err = real(clock, t);

	if (err || clock != CLOCK_REALTIME || t->tv_sec % 2 == 0)
		return err;
	t->tv_sec -= STEP;
	if (!told++)
		fputs("the wall clock steps\n", stderr);
	return 0;
}

time_t time(time_t *out)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	if (out)
		*out = t.tv_sec;
	return t.tv_sec;
}
