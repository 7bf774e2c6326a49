/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_internal.h"
#include "strings.h"

struct model *model__new(void)
{
	struct model *m = calloc(1, sizeof(*m));

	if (m)
		snprintf(m->unknown.t.name, sizeof(m->unknown.t.name), "too many threads");
	return m;
}

static void free_values(struct table *t)
{
	u32 i;

	for (i = 0; i < t->n; i++)
		free(t->entries[i].value);
	table__free(t);
}

void model__free(struct model *m)
{
	u32 i;

	if (!m)
		return;
	for (i = 0; i < m->threads.n; i++)
		free(((struct mthread *)m->threads.entries[i].value)->path_arg);
	free(m->unknown.path_arg);
	free_values(&m->threads);
	free_values(&m->processes);
	free_values(&m->streams);
	table__free(&m->nstids);
	table__free(&m->children);
	table__free(&m->files);
	table__free(&m->locks);
	table__free(&m->infos);
	memory__free(m);
	pool__free(&m->pool);
	free(m->calls);
	free(m->sources);
	free(m->kchains);
	free(m->images);
	free(m->notes);
	free(m->losses);
	free(m->thinnings);
	free(m);
}

/* INFO is key=value; a later one of the same key replaces the value and keeps its place */
static int info(struct model *m, const struct ev_hdr *rec)
{
	char text[EV_MAX_BYTES];
	size_t len = ev__text(rec, text, sizeof(text));
	char *eq = memchr(text, '=', len);
	const char *kept;
	int err;

	if (!eq)
		return 0;
	*eq = '\0';
	/* kept as "key\0value" */
	kept = pool__intern(&m->pool, text, len);
	if (!kept)
		return -ENOMEM;
	err = table__put(&m->infos, key__of(text, strlen(text)), (void *)kept);
	if (!err && !strcmp(text, "game.tgid"))
		err = threads__game(m, (u32)strtoul(eq + 1, NULL, 10));
	m->follows |= !strcmp(text, "session.children");
	if (!strcmp(text, "frame.left"))
		frames__left(m);
	if (!err && !strncmp(text, "child.", 6))
		err = threads__child(m, (u32)strtoul(text + 6, NULL, 10));
	return err;
}

static int note(struct model *m, const struct ev_note *rec)
{
	char text[EV_MAX_BYTES];
	struct note *bigger, n = {.ts = rec->hdr.ts, .severity = rec->severity, .class = rec->class};

	m->stats.notes++;
	if (m->n_notes == MAX_NOTES)
		return 0; /* counted in stats.notes all the same */
	n.text = pool__intern(&m->pool, text, ev__text(&rec->hdr, text, sizeof(text)));
	if (!n.text)
		return -ENOMEM;
	if (m->n_notes == m->cap_notes) {
		m->cap_notes = m->cap_notes ? 2 * m->cap_notes : 16;
		bigger = realloc(m->notes, m->cap_notes * sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		m->notes = bigger;
	}
	m->notes[m->n_notes++] = n;
	return 0;
}

static int lock_name(struct model *m, const struct ev_lock_name *rec)
{
	char text[EV_MAX_BYTES];
	const char *name = pool__intern(&m->pool, text, ev__text(&rec->hdr, text, sizeof(text)));

	return name ? table__put(&m->locks, key__int(rec->addr), (void *)name) : -ENOMEM;
}

void model__count_only(struct model *m, u64 from, u64 to)
{
	m->count_from = from;
	m->count_to = to;
}

static void count(struct model *m, const struct ev_desc *d, const struct ev_hdr *rec)
{
	struct model_stats *s = &m->stats;

	if (!model__counts(m, rec->ts))
		return;
	s->kinds[rec->kind]++;
	if (d->shape == SHAPE_META)
		return;
	s->first = s->events ? min(s->first, rec->ts) : rec->ts;
	s->last = max(s->last, rec->ts);
	s->events++;
	if (d->class != CLASS_FRAME) /* boundaries: model_frames.c tells which records are */
		s->counts[d->class] += ev__count(rec);
}

/* Counters of the kernel's, which may go back a little; the game's begins anew with each process. */
static void cpu_use(struct model *m, const struct ev_cpu_use *e)
{
	const struct ev_cpu_use *l = &m->cpu_use;
	u64 busy = e->busy - min(e->busy, l->busy), idle = e->idle - min(e->idle, l->idle);
	u64 stolen = e->stolen - min(e->stolen, l->stolen), game = e->game - min(e->game, l->game);

	if (l->hdr.kind && l->hdr.tid == e->hdr.tid) {
		m->cpus.all_ns += busy + idle + stolen;
		m->cpus.others_ns += busy - min(busy, game);
		m->cpus.stolen_ns += stolen;
	}
	m->cpu_use = *e;
}

struct cpu_use model__cpu_use(const struct model *m)
{
	return m->cpus;
}

static int dispatch(struct model *m, const struct ev_hdr *rec)
{
	switch (rec->kind) {
	case EV_INFO:
		return info(m, rec);
	case EV_NOTE:
		return note(m, (const struct ev_note *)rec);
	case EV_LOST:
		return frames__lost(m, (const struct ev_lost *)rec);
	case EV_SHED:
		return frames__shed(m, (const struct ev_shed *)rec);
	case EV_PROCESS:
	case EV_CGROUP:
	case EV_THREAD:
	case EV_FORK:
	case EV_EXIT:
	case EV_RENAME:
		return threads__event(m, rec);
	case EV_EXEC:
		if (((const struct ev_exec *)rec)->tgid == m->game)
			memory__forget(m);
		return threads__event(m, rec);
	case EV_PATH:
		return files__path(m, (const struct ev_path *)rec);
	case EV_PATH_ARG:
	case EV_FILE_META:
		return files__path_arg(m, rec);
	case EV_MAP:
		return memory__map(m, (const struct ev_map *)rec);
	case EV_MEM_CALL:
		return memory__call(m, (const struct ev_mem_call *)rec);
	case EV_STACK:
		return calls__stack(m, (const struct ev_stack *)rec);
	case EV_CALL:
		return calls__call(m, (const struct ev_call *)rec);
	case EV_KSTACK:
		return calls__kstack(m, (const struct ev_kstack *)rec);
	case EV_SWITCH:
		return calls__switch(m, (const struct ev_switch *)rec);
	case EV_IMAGE:
		return calls__image(m, (const struct ev_image *)rec);
	case EV_SOURCE:
		return calls__source(m, (const struct ev_source *)rec);
	case EV_JIT_SYMBOL:
		return jits__symbol(m, (const struct ev_jit_symbol *)rec);
	case EV_SYMBOL:
		return memory__symbol(m, (const struct ev_symbol *)rec);
	case EV_LOCK_NAME:
		return lock_name(m, (const struct ev_lock_name *)rec);
	case EV_SCENE:
		frames__scene(m, rec);
		return 0;
	case EV_CPU_USE:
		cpu_use(m, (const struct ev_cpu_use *)rec);
		return 0;
	case EV_FRAME:
		return frames__event(m, (const struct ev_frame *)rec);
	}
	return 0;
}

bool model__is_of_code(u8 kind)
{
	return kind == EV_SYMBOL || kind == EV_JIT_SYMBOL || kind == EV_CALL || kind == EV_SOURCE ||
	       kind == EV_KSTACK || kind == EV_IMAGE;
}

int model__foretell(struct model *m, const struct ev_hdr *rec)
{
	const struct ev_desc *d = ev__desc(rec->kind);

	if (!d || ev__bytes(rec) < d->size)
		return 0;
	m->symbols_foretold |= model__is_of_code(rec->kind);
	if (rec->kind != EV_INFO && !model__is_of_code(rec->kind) && rec->kind != EV_LOCK_NAME && rec->kind != EV_PATH)
		return 0;
	return dispatch(m, rec);
}

int model__event(struct model *m, const struct ev_hdr *rec)
{
	const struct ev_desc *d = ev__desc(rec->kind);

	m->frame_ended = false;
	files__path_arg_used(m);
	if (!d || ev__bytes(rec) < d->size)
		return 0; /* the reader counts them */
	count(m, d, rec);
	if (model__is_of_code(rec->kind) && m->symbols_foretold)
		return 0;
	return dispatch(m, rec);
}

const struct frame *model__ended_frame(const struct model *m)
{
	return m->frame_ended ? &m->frame : NULL;
}

const struct model_stats *model__stats(const struct model *m)
{
	return &m->stats;
}

double model__seconds(const struct model *m)
{
	return m->stats.events ? (double)(m->stats.last - m->stats.first) / 1e9 : 0;
}

u32 model__game(const struct model *m)
{
	return m->game;
}

const char *model__info(const struct model *m, const char *key)
{
	const char *kept = table__get(&m->infos, key__of(key, strlen(key)));

	return kept ? kept + strlen(kept) + 1 : NULL;
}

void model__info_at(const struct model *m, int i, const char **key, const char **value)
{
	*key = m->infos.entries[i].value;
	*value = *key + strlen(*key) + 1;
}

int model__info_count(const struct model *m)
{
	return (int)m->infos.n;
}

const char *model__note(const struct model *m, u32 i, u32 *severity, u32 *class, u64 *ts)
{
	if (i >= m->n_notes)
		return NULL;
	*severity = m->notes[i].severity;
	*class = m->notes[i].class;
	*ts = m->notes[i].ts;
	return m->notes[i].text;
}

const char *model__lock_name(const struct model *m, u64 addr)
{
	return table__get(&m->locks, key__int(addr));
}
