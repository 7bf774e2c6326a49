// SPDX-License-Identifier: GPL-2.0-only
/* Who the threads are: process tree packets for names, ftrace events for what begins and ends. */
#include "perfetto.h"
#include "strings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CMDLINE_ARGS 32
#define ARG_BYTES    256

static u64 hash_bytes(u64 h, const void *bytes, size_t n)
{
	const u8 *s = bytes;

	for (size_t i = 0; i < n; i++)
		h = (h ^ s[i]) * 1099511628211ULL;
	return h;
}

#define HASH_START 14695981039346656037ULL

static u64 hash_thread(const struct thread *t)
{
	u64 h = hash_bytes(HASH_START, &t->tgid, sizeof(t->tgid));

	return hash_bytes(h, t->name, strlen(t->name)) | 1; /* 0 means none */
}

static u64 hash_process(const struct process *p)
{
	u64 h = hash_bytes(HASH_START, &p->parent, sizeof(p->parent));

	h = hash_bytes(h, p->name, strlen(p->name));
	return hash_bytes(h, p->cmdline, p->cmdline ? p->cmdline_len : 0) | 1;
}

static void put_cmdline(struct pb *b, const struct process *p)
{
	const char *s = p->cmdline, *end = s + (s ? p->cmdline_len : 0);
	char arg[ARG_BYTES];
	u32 n = 0;

	while (s < end && n < CMDLINE_ARGS) {
		size_t len = strnlen(s, (size_t)(end - s));

		if (len || n) {
			utf8__sanitize(arg, sizeof(arg), s, len);
			pb__str(b, TREE_PROCESS_CMDLINE, arg);
			n++;
		}
		s += len + 1;
	}
	if (!n && p->name[0])
		pb__str(b, TREE_PROCESS_CMDLINE, p->name);
}

static void announce_process(struct perfetto *p, const struct model *m, u32 tgid, u64 ts)
{
	const struct process *process = model__find_process(m, tgid);
	struct task *t = process ? perfetto__task(p, tgid) : NULL;
	struct pb *b;
	size_t tree, mark;
	u64 hash;

	if (!t)
		return;
	hash = hash_process(process);
	if (hash == t->sent_process)
		return;
	t->sent_process = hash;
	b = perfetto__packet_begin(p, 0);
	pb__uint(b, PACKET_TIMESTAMP, ts);
	tree = pb__begin(b, PACKET_PROCESS_TREE);
	mark = pb__begin(b, TREE_PROCESSES);
	pb__uint(b, TREE_PROCESS_PID, tgid);
	pb__uint(b, TREE_PROCESS_PPID, process->parent);
	put_cmdline(b, process);
	pb__end(b, mark);
	pb__end(b, tree);
	perfetto__packet_end(p);
}

void tasks__announce(struct perfetto *p, const struct model *m, u32 tid, u64 ts)
{
	const struct thread *thread = tid ? model__find_thread(m, tid) : NULL;
	struct task *t;
	struct pb *b;
	size_t tree, mark;
	u64 hash;

	/* without its process the importer would take it for one of its own */
	if (!thread || !thread->tgid)
		return;
	t = perfetto__task(p, tid);
	if (!t)
		return;
	announce_process(p, m, thread->tgid, ts);
	hash = hash_thread(thread);
	if (hash == t->sent_thread)
		return;
	t->sent_thread = hash;
	b = perfetto__packet_begin(p, 0);
	pb__uint(b, PACKET_TIMESTAMP, ts);
	tree = pb__begin(b, PACKET_PROCESS_TREE);
	mark = pb__begin(b, TREE_THREADS);
	pb__uint(b, TREE_THREAD_TID, tid);
	if (thread->name[0])
		pb__str(b, TREE_THREAD_NAME, thread->name);
	pb__uint(b, TREE_THREAD_TGID, thread->tgid);
	pb__end(b, mark);
	pb__end(b, tree);
	perfetto__packet_end(p);
}

struct each {
	struct perfetto *p;
	const struct model *m;
	u64 ts;
	u32 *tids;
	size_t n, cap;
	bool oom;
};

static void collect(const struct thread *t, void *arg)
{
	struct each *e = arg;
	u32 *bigger;

	if (t->exited) /* told when it ended; now the importer would make a new one of it */
		return;
	if (e->n == e->cap) {
		bigger = realloc(e->tids, (e->cap ? e->cap * 2 : 256) * sizeof(*bigger));
		if (!bigger) {
			e->oom = true;
			return;
		}
		e->tids = bigger;
		e->cap = e->cap ? e->cap * 2 : 256;
	}
	e->tids[e->n++] = t->tid;
}

static int by_number(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/* in order of tid: the model's own order is no promise */
void tasks__announce_all(struct perfetto *p, const struct model *m, u64 ts)
{
	struct each e = {.p = p, .m = m, .ts = ts};

	model__each_thread(m, collect, &e);
	if (e.oom)
		p->error = -ENOMEM;
	if (e.n)
		qsort(e.tids, e.n, sizeof(*e.tids), by_number);
	for (size_t i = 0; i < e.n; i++)
		tasks__announce(p, m, e.tids[i], ts);
	free(e.tids);
}

static const char *safe_comm(char *buf, size_t size, const char *comm, size_t n)
{
	utf8__sanitize(buf, size, comm, strnlen(comm, n));
	return buf;
}

static void forked(struct perfetto *p, const struct model *m, const struct ev_fork *ev)
{
	struct task *t = perfetto__task(p, ev->hdr.tid);
	char comm[64];
	struct ftrace_mark f;

	if (!t)
		return;
	task__reset(t);
	tasks__announce(p, m, ev->parent, ev->hdr.ts);
	f = ftrace__begin(p, &ev->hdr, ev->hdr.ts, ev->parent, FLAGS_UNKNOWN, FTRACE_NEWTASK);
	pb__uint(p->pb, NEWTASK_PID, ev->hdr.tid);
	pb__str(p->pb, NEWTASK_COMM, safe_comm(comm, sizeof(comm), ev->comm, sizeof(ev->comm)));
	pb__uint(p->pb, NEWTASK_CLONE_FLAGS, ev->clone_flags);
	ftrace__end(p, f);
}

static void renamed(struct perfetto *p, const struct model *m, const struct ev_hdr *h, const char *name, size_t n)
{
	char comm[64];
	struct ftrace_mark f = ftrace__begin(p, h, h->ts, h->tid, FLAGS_UNKNOWN, FTRACE_RENAME);

	pb__uint(p->pb, RENAME_PID, h->tid);
	pb__str(p->pb, RENAME_NEW_COMM, safe_comm(comm, sizeof(comm), name, n));
	ftrace__end(p, f);
	tasks__announce(p, m, h->tid, h->ts);
}

static void put_end(struct perfetto *p, const struct ev_hdr *h, u64 ts, u32 field, const char *comm, u32 tgid)
{
	struct ftrace_mark f = ftrace__begin(p, h, ts, h->tid, FLAGS_UNKNOWN, field);

	pb__str(p->pb, TASK_END_COMM, comm);
	pb__uint(p->pb, TASK_END_PID, h->tid);
	if (tgid)
		pb__uint(p->pb, TASK_END_TGID, tgid);
	ftrace__end(p, f);
}

static void exited(struct perfetto *p, const struct model *m, const struct ev_exit *ev)
{
	const struct thread *thread = model__find_thread(m, ev->hdr.tid);

	tasks__announce(p, m, ev->hdr.tid, ev->hdr.ts);
	put_end(p, &ev->hdr, ev->hdr.ts, FTRACE_PROCESS_EXIT, thread ? thread->name : "", ev->tgid);
}

/* It has left its CPU for good. A moment later, so that the importer has closed its last slice. */
void tasks__gone(struct perfetto *p, const struct ev_hdr *h, const char *comm)
{
	put_end(p, h, h->ts + 1, FTRACE_PROCESS_FREE, comm, 0);
}

void tasks__event(struct perfetto *p, const struct model *m, const struct ev_hdr *rec)
{
	const struct ev_exec *exec = (const void *)rec;
	const struct ev_rename *name = (const void *)rec;

	p->names_gen++;
	if (rec->kind == EV_FORK)
		forked(p, m, (const void *)rec);
	else if (rec->kind == EV_EXEC)
		renamed(p, m, rec, exec->comm, sizeof(exec->comm));
	else if (rec->kind == EV_RENAME)
		renamed(p, m, rec, name->comm, sizeof(name->comm));
	else if (rec->kind == EV_EXIT)
		exited(p, m, (const void *)rec);
}
