/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Threads and processes. Ids are used again: a FORK of a known id begins a new life under it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model_internal.h"
#include "strings.h"

struct mthread *model__mthread(struct model *m, u32 tid)
{
	struct mthread *t = table__get(&m->threads, key__int(tid));

	if (t)
		return t;
	t = m->threads.n < MAX_THREADS ? calloc(1, sizeof(*t)) : NULL;
	if (!t)
		return &m->unknown;
	t->t.tid = t->t.nstid = tid;
	if (table__put(&m->threads, key__int(tid), t)) {
		free(t);
		return &m->unknown;
	}
	return t;
}

struct thread *model__thread(struct model *m, u32 tid)
{
	return &model__mthread(m, tid)->t;
}

const struct thread *model__find_thread(const struct model *m, u32 tid)
{
	const struct mthread *t = table__get(&m->threads, key__int(tid));

	return t ? &t->t : NULL;
}

const struct process *model__find_process(const struct model *m, u32 tgid)
{
	return table__get(&m->processes, key__int(tgid));
}

u32 model__host_tid(const struct model *m, u32 nstid)
{
	const struct mthread *t = table__get(&m->nstids, key__int(nstid)), *leader;

	if (t)
		return t->t.exited ? 0 : t->t.tid;
	/* threads born while recording: their own ids are known only where the game has no namespace of its own */
	leader = table__get(&m->threads, key__int(m->game));
	if (leader && leader->t.nstid != leader->t.tid)
		return 0;
	t = table__get(&m->threads, key__int(nstid));
	return t && t->t.game && !t->t.exited ? nstid : 0;
}

void model__each_thread(const struct model *m, void (*fn)(const struct thread *t, void *arg), void *arg)
{
	u32 i;

	for (i = 0; i < m->threads.n; i++)
		fn(&((const struct mthread *)m->threads.entries[i].value)->t, arg);
}

void model__each_process(const struct model *m, void (*fn)(const struct process *p, void *arg), void *arg)
{
	u32 i;

	for (i = 0; i < m->processes.n; i++)
		fn(m->processes.entries[i].value, arg);
}

/* NULL when out of memory, or beyond all reason */
static struct process *process(struct model *m, u32 tgid)
{
	struct process *p = table__get(&m->processes, key__int(tgid));

	if (p)
		return p;
	p = m->processes.n < MAX_THREADS ? calloc(1, sizeof(*p)) : NULL;
	if (!p)
		return NULL;
	p->tgid = tgid;
	if (table__put(&m->processes, key__int(tgid), p)) {
		free(p);
		return NULL;
	}
	return p;
}

/* a thread's name, and its process's if it leads it */
static void set_name(struct model *m, struct mthread *t, const char *name, size_t n)
{
	struct process *p;

	utf8__sanitize(t->t.name, sizeof(t->t.name), name, n);
	if (t->t.tid != t->t.tgid)
		return;
	p = process(m, t->t.tgid);
	if (p)
		memcpy(p->name, t->t.name, sizeof(p->name));
}

static void set_tgid(struct model *m, struct mthread *t, u32 tgid)
{
	if (tgid)
		t->t.tgid = tgid;
	t->t.game = t->t.tgid && t->t.tgid == m->game;
	t->t.recorded = t->t.game || (t->t.tgid && table__get(&m->children, key__int(t->t.tgid)));
}

int threads__child(struct model *m, u32 tgid)
{
	int err = m->children.n < MAX_THREADS ? table__put(&m->children, key__int(tgid), m) : 0;

	for (u32 i = 0; i < m->threads.n && !err; i++)
		set_tgid(m, m->threads.entries[i].value, 0);
	return err;
}

/* the game's own id for a thread, where it differs from the host's */
static int set_nstid(struct model *m, struct mthread *t, u32 nstid)
{
	if (nstid)
		t->t.nstid = nstid;
	if (!t->t.game || t == &m->unknown || t->t.nstid == t->t.tid)
		return 0;
	return table__put(&m->nstids, key__int(t->t.nstid), t);
}

int threads__game(struct model *m, u32 tgid)
{
	int err = 0;
	u32 i;

	m->game = tgid;
	for (i = 0; i < m->threads.n && !err; i++) {
		struct mthread *t = m->threads.entries[i].value;

		set_tgid(m, t, 0);
		err = set_nstid(m, t, 0);
	}
	return err;
}

static int on_process(struct model *m, const struct ev_process *e)
{
	char text[EV_MAX_BYTES];
	size_t len = ev__text(&e->hdr, text, sizeof(text));
	struct process *p = process(m, e->hdr.tid);

	if (!p)
		return 0;
	p->parent = e->parent;
	p->cmdline = pool__intern(&m->pool, text, len);
	p->cmdline_len = len;
	return p->cmdline ? 0 : -ENOMEM;
}

static int on_cgroup(struct model *m, const struct ev_hdr *rec)
{
	char text[EV_MAX_BYTES];
	size_t len = ev__text(rec, text, sizeof(text));
	struct process *p = process(m, rec->tid);

	if (!p || !len)
		return 0;
	p->cgroup = pool__intern(&m->pool, text, len);
	return p->cgroup ? 0 : -ENOMEM;
}

static int on_thread(struct model *m, const struct ev_thread *e)
{
	struct mthread *t = model__mthread(m, e->hdr.tid);
	char text[EV_MAX_BYTES];

	set_tgid(m, t, e->tgid);
	set_name(m, t, text, ev__text(&e->hdr, text, sizeof(text)));
	return set_nstid(m, t, e->nstid);
}

static const char *cgroup_of(const struct model *m, u32 tid)
{
	const struct thread *t = model__find_thread(m, tid);
	const struct process *p = t ? model__find_process(m, t->tgid) : NULL;

	return p ? p->cgroup : NULL;
}

static int on_fork(struct model *m, const struct ev_fork *e)
{
	struct mthread *t = model__mthread(m, e->hdr.tid);
	const struct thread *parent = m->follows ? model__find_thread(m, e->parent) : NULL;
	struct process *p;

	if (t == &m->unknown)
		return 0;
	if (parent && parent->recorded && e->tgid == e->hdr.tid && e->tgid != m->game && threads__child(m, e->tgid))
		return -ENOMEM;
	t->t = (struct thread){.tid = e->hdr.tid, .nstid = e->hdr.tid, .born = e->hdr.ts};
	if (t->path_arg)
		t->path_arg[0] = '\0';
	set_tgid(m, t, e->tgid);
	set_name(m, t, e->comm, strnlen(e->comm, sizeof(e->comm)));
	if (e->nstid && set_nstid(m, t, e->nstid))
		return -ENOMEM;
	p = e->tgid == e->hdr.tid ? process(m, e->tgid) : NULL;
	if (p) {
		p->parent = e->parent;
		p->cmdline = NULL; /* of an earlier process with this id */
		p->cmdline_len = 0;
		p->cgroup = cgroup_of(m, e->parent);
	}
	return 0;
}

/* The process goes on as one thread, with its leader's id, whichever thread called exec. */
static int on_exec(struct model *m, const struct ev_exec *e)
{
	struct mthread *t = model__mthread(m, e->hdr.tid);
	struct process *p;
	u32 i;

	for (i = 0; i < m->threads.n; i++) {
		struct mthread *other = m->threads.entries[i].value;

		if (e->tgid && other->t.tgid == e->tgid && other != t)
			other->t.exited = true, other->t.died = e->hdr.ts;
	}
	set_tgid(m, t, e->tgid);
	t->t.exited = false;
	set_name(m, t, e->comm, strnlen(e->comm, sizeof(e->comm)));
	p = table__get(&m->processes, key__int(e->tgid));
	if (p) {
		p->cmdline = NULL;
		p->cmdline_len = 0;
	}
	return 0;
}

int threads__event(struct model *m, const struct ev_hdr *rec)
{
	const struct ev_rename *name = (const struct ev_rename *)rec;
	const struct ev_exit *end = (const struct ev_exit *)rec;

	switch (rec->kind) {
	case EV_PROCESS:
		return on_process(m, (const struct ev_process *)rec);
	case EV_CGROUP:
		return on_cgroup(m, rec);
	case EV_THREAD:
		return on_thread(m, (const struct ev_thread *)rec);
	case EV_FORK:
		return on_fork(m, (const struct ev_fork *)rec);
	case EV_EXEC:
		return on_exec(m, (const struct ev_exec *)rec);
	case EV_EXIT:
		set_tgid(m, model__mthread(m, rec->tid), end->tgid);
		model__mthread(m, rec->tid)->t.exited = true;
		model__mthread(m, rec->tid)->t.died = rec->ts;
		return 0;
	case EV_RENAME:
		set_tgid(m, model__mthread(m, rec->tid), name->tgid);
		set_name(m, model__mthread(m, rec->tid), name->comm, strnlen(name->comm, sizeof(name->comm)));
		return 0;
	}
	return 0;
}
