/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Which primitive a futex wait belongs to, by the C library's function on the stack: certain, where there is a stack.
 */
#include <string.h>

#include "names.h"
#include "where.h"

enum primitive { P_NONE, P_MUTEX, P_RWLOCK, P_CONDVAR, P_SEMAPHORE, P_JOIN, P_BARRIER };

/* By what their names begin with, behind underscores; several versions of a function differ in their ends. */
static const struct {
	const char *begin;
	enum primitive primitive;
} functions[] = {
	{"pthread_mutex_", P_MUTEX}, /* pthread_mutex_cond_lock too: a condition variable's wait, at its end */
	{"mtx_lock", P_MUTEX},
	{"mtx_timedlock", P_MUTEX},
	{"pthread_rwlock_", P_RWLOCK},
	{"pthread_cond_", P_CONDVAR},
	{"cnd_wait", P_CONDVAR},
	{"cnd_timedwait", P_CONDVAR},
	{"sem_wait", P_SEMAPHORE},
	{"sem_timedwait", P_SEMAPHORE},
	{"sem_clockwait", P_SEMAPHORE},
	{"new_sem_wait", P_SEMAPHORE},
	{"new_sem_clockwait", P_SEMAPHORE},
	{"old_sem_wait", P_SEMAPHORE},
	{"pthread_join", P_JOIN},
	{"pthread_timedjoin", P_JOIN},
	{"pthread_clockjoin", P_JOIN},
	{"thrd_join", P_JOIN},
	{"pthread_barrier_wait", P_BARRIER},
};

static bool match(const char *function, void *arg)
{
	enum primitive *p = arg;

	function += strspn(function, "_");
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		if (!strncmp(function, functions[i].begin, strlen(functions[i].begin))) {
			*p = functions[i].primitive;
			return true;
		}
	}
	return false;
}

enum lock_kind lock__by_caller(const struct model *m, const struct ev_lock_wait *w, enum lock_kind guess, u32 *owner)
{
	enum primitive p = P_NONE;

	where__each_function(m, model__chain(m, &w->hdr), match, &p);
	switch (p) {
	case P_MUTEX:
		return guess == LOCK_PI_MUTEX ? guess : LOCK_MUTEX;
	case P_RWLOCK:
		return w->addr & 4 ? LOCK_RWLOCK_WRITER : LOCK_RWLOCK;
	case P_CONDVAR:
		*owner = 0;
		return w->addr & 4 ? LOCK_CONDVAR_ODD : LOCK_CONDVAR;
	case P_SEMAPHORE:
		*owner = 0;
		return LOCK_SEMAPHORE;
	case P_JOIN:
		*owner = model__host_tid(m, w->val);
		return LOCK_JOIN;
	case P_BARRIER:
		*owner = 0;
		return LOCK_BARRIER;
	default:
		return guess;
	}
}
