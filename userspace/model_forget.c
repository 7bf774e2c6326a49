/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What a stream without an end may forget: threads and processes that ended long ago, files not heard of for long, and
 * texts that nothing refers to any more.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model_internal.h"

#define TEXTS_BYTES (8u << 20) /* beyond it what is not in use goes */
#define FILES_KEPT  16384u     /* the kernel side remembers about as many, and tells the others' paths again */

/* ---- threads and processes ---- */

static bool is_gone(const struct mthread *t, u64 ts)
{
	return t->t.exited && t->t.died < ts;
}

/* A process goes with its leader. */
static bool process_gone(const struct model *m, u32 tgid, u64 ts)
{
	const struct mthread *t = table__get(&m->threads, key__int(tgid));

	return t && tgid != m->game && is_gone(t, ts);
}

/* The values of `from` that stay, in a table of their own; nothing is freed yet. */
static int keep(const struct model *m, const struct table *from, u64 ts, bool threads, struct table *to)
{
	int err = 0;

	for (u32 i = 0; i < from->n && !err; i++) {
		void *value = from->entries[i].value;
		bool gone = threads ? is_gone(value, ts) : process_gone(m, (u32)from->entries[i].key.a, ts);

		if (!gone)
			err = table__put(to, from->entries[i].key, value);
	}
	return err;
}

static void free_gone(const struct model *m, u64 ts)
{
	for (u32 i = 0; i < m->processes.n; i++)
		if (process_gone(m, (u32)m->processes.entries[i].key.a, ts))
			free(m->processes.entries[i].value);
	for (u32 i = 0; i < m->threads.n; i++) {
		struct mthread *t = m->threads.entries[i].value;

		if (!is_gone(t, ts))
			continue;
		free(t->path_arg);
		free(t);
	}
}

static void replace(struct table *old, struct table *new)
{
	table__free(old);
	*old = *new;
}

/* ---- texts ---- */

static int again(struct pool *to, const char **text, size_t n)
{
	const char *kept = *text ? pool__intern(to, *text, n) : NULL;

	if (*text && !kept)
		return -ENOMEM;
	*text = kept;
	return 0;
}

static int renew_table(struct pool *to, struct table *t, bool pairs)
{
	int err = 0;

	for (u32 i = 0; i < t->n && !err; i++) {
		const char *text = t->entries[i].value;
		size_t n = strlen(text);

		err = again(to, &text, pairs ? n + 1 + strlen(text + n + 1) : n);
		t->entries[i].value = (void *)text;
	}
	return err;
}

static int renew_memory(struct model *m, struct pool *to)
{
	int err = 0;

	for (u32 i = 0; i < m->n_maps && !err; i++)
		err = again(to, &m->maps[i]->path, strlen(m->maps[i]->path));
	for (size_t i = 0; i < m->n_symbols && !err; i++) {
		struct symbol *s = &m->symbols[i];
		size_t at = (size_t)(s->object - s->name); /* they are one text */

		err = again(to, &s->name, at + strlen(s->object));
		s->object = s->name + at;
	}
	return err;
}

static int renew_others(struct model *m, struct pool *to)
{
	int err = 0;

	for (u32 i = 0; i < m->processes.n && !err; i++) {
		struct process *p = m->processes.entries[i].value;

		err = again(to, &p->cmdline, p->cmdline_len)
			      ?: again(to, &p->cgroup, p->cgroup ? strlen(p->cgroup) : 0);
	}
	for (u32 i = 0; i < m->n_notes && !err; i++)
		err = again(to, &m->notes[i].text, strlen(m->notes[i].text));
	for (u32 i = 0; i < m->n_sources && !err; i++) {
		struct source *s = &m->sources[i];

		err = again(to, &s->function, strlen(s->function)) ?: again(to, &s->file, strlen(s->file));
	}
	return err;
}

/* of the many that there were those heard of last */
static int forget_files(struct model *m)
{
	struct table files = {};
	int err = 0;

	for (u32 i = m->files.n - min(m->files.n, FILES_KEPT); i < m->files.n && !err; i++)
		err = table__put(&files, m->files.entries[i].key, m->files.entries[i].value);
	if (err)
		table__free(&files);
	else
		replace(&m->files, &files);
	return err;
}

static int renew_texts(struct model *m)
{
	struct pool old = m->pool, texts = {};
	int err = forget_files(m);

	if (!err)
		err = renew_table(&texts, &m->infos, true) ?: renew_table(&texts, &m->files, false)
			  ?: renew_table(&texts, &m->locks, false) ?: renew_memory(m, &texts) ?: renew_others(m, &texts);
	if (err) {
		pool__free(&texts); /* out of memory: the caller gives up */
		return err;
	}
	m->pool = texts;
	pool__free(&old);
	return 0;
}

int model__forget_dead(struct model *m, u64 ts)
{
	struct table threads = {}, nstids = {}, processes = {}, children = {};
	int err = keep(m, &m->threads, ts, true, &threads) ?: keep(m, &m->nstids, ts, true, &nstids)
			  ?: keep(m, &m->processes, ts, false, &processes)
				     ?: keep(m, &m->children, ts, false, &children);

	if (err) {
		table__free(&threads);
		table__free(&nstids);
		table__free(&processes);
		table__free(&children);
		return err;
	}
	m->path_arg_tid = 0;
	free_gone(m, ts);
	replace(&m->threads, &threads);
	replace(&m->nstids, &nstids);
	replace(&m->processes, &processes);
	replace(&m->children, &children);
	return m->pool.bytes > TEXTS_BYTES ? renew_texts(m) : 0;
}
