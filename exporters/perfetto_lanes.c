// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which track a slice can go on. Slices come in order of their ends, as a rule; a lane takes one that lies beside or
 * around all that it has. What began at the same moment as a slice already sent would be taken for the inner one by
 * the importer, so it does not fit either.
 */
#include "perfetto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool beside(const struct lane *l, u32 i, u64 start, u64 end)
{
	return start >= l->top[i].end || end <= l->top[i].start;
}

static bool around(const struct lane *l, u32 i, u64 start, u64 end)
{
	return start < l->top[i].start && end >= l->top[i].end;
}

bool lane__fits(const struct lane *l, bool nest, u64 start, u64 end)
{
	if (start < l->floor)
		return false;
	for (u32 i = 0; i < l->n; i++) {
		if (beside(l, i, start, end) || (nest && around(l, i, start, end)))
			continue;
		if (!nest || start != end) /* one without length nests anywhere */
			return false;
	}
	return true;
}

void lane__add(struct lane *l, bool nest, u64 start, u64 end)
{
	u32 kept = 0;

	if (nest && start == end)
		return;
	for (u32 i = 0; i < l->n; i++)
		if (!around(l, i, start, end))
			l->top[kept++] = l->top[i];
	if (kept == LANE_TOPS) {
		l->floor = max(l->floor, l->top[0].end);
		memmove(l->top, l->top + 1, sizeof(l->top[0]) * --kept);
	}
	l->top[kept].start = start;
	l->top[kept].end = end;
	l->n = kept + 1;
}

void lanes__free(struct lanes *l, u32 n)
{
	for (u32 i = 0; l && i < n; i++)
		free(l[i].lane);
	free(l);
}

void task__reset(struct task *t)
{
	lanes__free(t->lanes, CLASS_COUNT * 2);
	*t = (struct task){.tid = t->tid};
}

void tasks__close(struct task_table *t)
{
	for (u32 i = 0; i < t->cap; i++) {
		if (t->slots[i])
			task__reset(t->slots[i]);
		free(t->slots[i]);
	}
	free(t->slots);
	*t = (struct task_table){0};
}

static struct task **slot_of(const struct task_table *t, u32 tid)
{
	u32 i = (tid * 2654435761u) & (t->cap - 1);

	while (t->slots[i] && t->slots[i]->tid != tid)
		i = (i + 1) & (t->cap - 1);
	return &t->slots[i];
}

static int grow(struct task_table *t)
{
	struct task_table bigger = {.n = t->n, .cap = t->cap ? t->cap * 2 : 256};

	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (u32 i = 0; i < t->cap; i++)
		if (t->slots[i])
			*slot_of(&bigger, t->slots[i]->tid) = t->slots[i];
	free(t->slots);
	*t = bigger;
	return 0;
}

struct task *perfetto__task(struct perfetto *p, u32 tid)
{
	struct task_table *t = &p->tasks;
	struct task **slot;

	if (t->n >= t->cap / 2 && grow(t))
		goto nomem;
	slot = slot_of(t, tid);
	if (*slot)
		return *slot;
	*slot = calloc(1, sizeof(**slot));
	if (!*slot)
		goto nomem;
	(*slot)->tid = tid;
	t->n++;
	return *slot;
nomem:
	p->error = -ENOMEM;
	return NULL;
}

/* What a person would call a thread's lane of a class; a class that is not here goes by its own name. */
static const char *lane_name(enum ev_class class)
{
	static const char *const names[CLASS_COUNT] = {
		[CLASS_META] = "redframe",
		[CLASS_FRAME] = "messages",
		[CLASS_SCHED] = "wakeups and migrations",
		[CLASS_FAULT] = "page faults",
		[CLASS_LOCK] = "locks",
		[CLASS_FILE] = "files",
		[CLASS_ALLOC] = "memory",
		[CLASS_IRQ] = "interrupts",
		[CLASS_SYSCALL] = "system calls",
		[CLASS_SAMPLE] = "samples",
	};

	return names[class] ? names[class] : class_names[class];
}

static u64 thread_track(struct perfetto *p, const struct model *m, struct task *t)
{
	const struct thread *thread = model__find_thread(m, t->tid);
	u32 tgid = thread && thread->tgid ? thread->tgid : model__game(m);

	if (!t->tid || !tgid)
		return perfetto__process_track(p, m);
	if (!t->track) {
		struct track_desc d = {.uuid = perfetto__new_track(p), .tgid = tgid, .tid = t->tid};

		perfetto__describe(p, &d);
		t->track = d.uuid;
	}
	return t->track;
}

static struct lane *new_lane(struct perfetto *p, const struct model *m, struct task *t, enum ev_class class, bool nest)
{
	u32 kind = class * 2 + !nest;
	struct lanes *l = &t->lanes[kind];
	struct lane *bigger;
	struct track_desc d;
	char name[64];

	if (l->n == LANES_MAX)
		return NULL;
	if (!(l->n & (l->n - 1))) { /* full at every power of two */
		bigger = realloc(l->lane, max(1u, l->n * 2) * sizeof(*bigger));
		if (!bigger) {
			p->error = -ENOMEM;
			return NULL;
		}
		l->lane = bigger;
	}
	snprintf(name, sizeof(name), l->n ? "%s%s %u" : "%s%s", lane_name(class), nest ? "" : " in flight", l->n + 1);
	d = (struct track_desc){.parent = thread_track(p, m, t), .name = name, .rank = kind * LANES_MAX + l->n};
	d.uuid = perfetto__new_track(p);
	perfetto__describe(p, &d);
	l->lane[l->n] = (struct lane){.track = d.uuid};
	return &l->lane[l->n++];
}

struct lane *perfetto__lane(struct perfetto *p, const struct model *m, const struct ev_hdr *rec, enum ev_class class,
	bool nest, u64 start, u64 end)
{
	struct task *t = perfetto__task(p, rec->tid);
	struct lanes *l;
	struct lane *lane = NULL;

	if (!t)
		return NULL;
	if (!t->lanes) {
		tasks__announce(p, m, rec->tid, rec->ts);
		t->lanes = calloc(CLASS_COUNT * 2, sizeof(*t->lanes));
	}
	if (!t->lanes) {
		p->error = -ENOMEM;
		return NULL;
	}
	l = &t->lanes[class * 2 + !nest];
	for (u32 i = 0; i < l->n && !lane; i++)
		if (lane__fits(&l->lane[i], nest, start, end))
			lane = &l->lane[i];
	if (!lane)
		lane = new_lane(p, m, t, class, nest);
	if (lane)
		lane__add(lane, nest, start, end);
	return lane;
}
