/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What a record is about, in words for a person.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "alloc_sites.h"
#include "model_internal.h"
#include "strings.h"
#include "syscalls.h"

#define WHAT_MAX 4096

/* Text made from hostile parts, made safe at the end. */
struct what {
	char text[WHAT_MAX];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void say(struct what *w, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(w->text + w->len, sizeof(w->text) - w->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		w->len = min(w->len + (size_t)n, sizeof(w->text) - 1);
}

/* Most of what is said is a name. */
static void say_word(struct what *w, const char *word)
{
	size_t n = min(strlen(word), sizeof(w->text) - 1 - w->len);

	memcpy(w->text + w->len, word, n);
	w->len += n;
	w->text[w->len] = 0;
}

static void say_bytes(struct what *w, u64 bytes)
{
	char buf[32];

	say_word(w, fmt__bytes(buf, sizeof(buf), bytes));
}

/* the record's own text; NUL separates words */
static void say_text(struct what *w, const struct ev_hdr *rec)
{
	size_t n = ev__text(rec, w->text, sizeof(w->text)), i;

	for (i = 0; i < n; i++)
		if (!w->text[i])
			w->text[i] = ' ';
	w->len = n;
}

static void say_file(struct what *w, const struct model *m, u32 dev, u64 ino, u32 mode, s32 fd)
{
	const char *path = model__path(m, dev, ino);

	if (path)
		say_word(w, path);
	else if (ino && S_ISFIFO(mode))
		say(w, "pipe:[%llu]", (unsigned long long)ino);
	else if (ino && S_ISSOCK(mode))
		say(w, "socket:[%llu]", (unsigned long long)ino);
	else if (ino)
		say(w, "inode %llu on device %u:%u", (unsigned long long)ino, dev >> 20, dev & 0xfffff);
	else if (fd >= 0)
		say(w, "file descriptor %d", fd);
}

/* the path, or what was called on what where none is known */
static void say_file_meta(struct what *w, const struct model *m, const struct ev_file_meta *e)
{
	const char *arg = model__path_arg(m, &e->hdr), *path = model__path(m, e->dev, e->ino);
	char buf[32];

	if (path || arg) {
		say_word(w, path ? path : arg);
		return;
	}
	say(w, "%s ", syscall__name((u16)e->sys, buf, sizeof(buf)));
	say_file(w, m, e->dev, e->ino, e->mode, e->fd);
}

/* of a child of the game: its addresses are no names of ours */
static bool is_foreign(const struct model *m, u32 tid)
{
	const struct thread *t = model__find_thread(m, tid);

	return t && t->recorded && !t->game;
}

static void say_addr(struct what *w, const struct model *m, u32 tid, u64 addr)
{
	const struct symbol *s = is_foreign(m, tid) ? NULL : model__symbol(m, addr);
	const struct mapping *map;

	if (s) {
		say_word(w, s->name);
		return;
	}
	map = is_foreign(m, tid) ? NULL : model__mapping(m, addr);
	say(w, "0x%llx", (unsigned long long)addr);
	if (map && map->path[0])
		say(w, " in %s", map->path);
}

static void say_lock(struct what *w, const struct model *m, u32 tid, u64 addr)
{
	const char *name = is_foreign(m, tid) ? NULL : model__lock_name(m, addr);

	if (name)
		say_word(w, name);
	else
		say_addr(w, m, tid, addr);
}

static void say_fault(struct what *w, const struct model *m, const struct ev_fault *e)
{
	const struct mapping *map = is_foreign(m, e->hdr.tid) ? NULL : model__mapping(m, e->addr);

	if (!map)
		say(w, "0x%llx", (unsigned long long)e->addr);
	else
		say_word(w, map->path[0] ? map->path : map->ino ? "a mapped file" : "anonymous memory");
}

static void say_thread(struct what *w, const struct model *m, const char *before, u32 tid)
{
	const struct thread *t = model__find_thread(m, tid);

	if (!tid)
		say(w, "%sidle", before);
	else if (t && t->name[0])
		say(w, "%s%s", before, t->name);
	else
		say(w, "%sthread %u", before, tid);
}

/* include/uapi/asm-generic/mman-common.h */
static const char *advice_name(u32 advice)
{
	static const char *const names[] = {"NORMAL", "RANDOM", "SEQUENTIAL", "WILLNEED", "DONTNEED", NULL, NULL, NULL,
		"FREE", "REMOVE", "DONTFORK", "DOFORK", "MERGEABLE", "UNMERGEABLE", "HUGEPAGE", "NOHUGEPAGE",
		"DONTDUMP", "DODUMP", "WIPEONFORK", "KEEPONFORK", "COLD", "PAGEOUT", "POPULATE_READ", "POPULATE_WRITE",
		"DONTNEED_LOCKED", "COLLAPSE"};

	return advice < ARRAY_SIZE(names) ? names[advice] : NULL;
}

static void say_mem_call(struct what *w, const struct ev_mem_call *e)
{
	u64 now = (u64)e->ret;
	char buf[32];

	say(w, "%s ", syscall__name((u16)e->sys, buf, sizeof(buf)));
	if (e->sys == SYS_ID_brk) {
		say(w, now >= e->was ? "+" : "-");
		say_bytes(w, now >= e->was ? now - e->was : e->was - now);
		return;
	}
	if (e->sys == SYS_ID_madvise && advice_name(e->flags))
		say(w, "%s ", advice_name(e->flags));
	say_bytes(w, e->len);
}

static void say_alloc(struct what *w, const struct model *m, const struct ev_hdr *rec)
{
	const struct ev_alloc *e = (const struct ev_alloc *)rec;
	const struct ev_desc *d = ev__desc(EV_ALLOC);
	char buf[32];
	int i;

	for (i = 0; i < d->n_fields; i++)
		if (d->fields[i].unit == UNIT_ALLOC_FN)
			say_word(w, ev__format(rec, &d->fields[i], buf, sizeof(buf)));
	say_word(w, " ");
	say_bytes(w, e->size);
	if (e->caller) {
		say_word(w, " in ");
		say_addr(w, m, e->hdr.tid, e->caller);
	}
}

static void say_uring(struct what *w, const struct model *m, const struct ev_hdr *rec)
{
	const struct ev_uring_submit *s = (const struct ev_uring_submit *)rec;
	const struct ev_uring_done *d = (const struct ev_uring_done *)rec;
	bool done = rec->kind == EV_URING_DONE;
	const struct ev_desc *desc = ev__desc(rec->kind);
	char buf[32];
	int i;

	for (i = 0; i < desc->n_fields; i++)
		if (desc->fields[i].unit == UNIT_URING_OP)
			say(w, "%s ", ev__format(rec, &desc->fields[i], buf, sizeof(buf)));
	say_file(w, m, done ? d->dev : s->dev, done ? d->ino : s->ino, 0, -1);
}

/* a value of the record by its field's name, as ev__format has it */
static void say_field(struct what *w, const struct ev_hdr *rec, const char *name)
{
	const struct ev_desc *d = ev__desc(rec->kind);
	char buf[64];
	int i;

	for (i = 0; i < d->n_fields; i++)
		if (!strcmp(d->fields[i].name, name))
			say_word(w, ev__format(rec, &d->fields[i], buf, sizeof(buf)));
}

static void say_frame(struct what *w, const struct ev_frame *e)
{
	if (e->number != FRAME_NO_NUMBER)
		say(w, "frame %llu", (unsigned long long)e->number);
	if (e->mark != FRAME_MARK)
		say(w, e->mark == FRAME_BEGIN ? " begins" : " ends");
}

static void say_sched(struct what *w, const struct model *m, const struct ev_hdr *rec)
{
	const struct ev_migrate *move = (const struct ev_migrate *)rec;

	switch (rec->kind) {
	case EV_SWITCH:
		say_thread(w, m, "to ", ((const struct ev_switch *)rec)->next_tid);
		break;
	case EV_WAKING:
		say_thread(w, m, "by ", ((const struct ev_waking *)rec)->waker);
		break;
	case EV_MIGRATE:
		say(w, "CPU %u to %u", move->from_cpu, move->to_cpu);
		break;
	case EV_FORK:
	case EV_EXEC:
	case EV_RENAME:
		say_field(w, rec, "comm");
		break;
	}
}

static void say_memory(struct what *w, const struct model *m, const struct ev_hdr *rec)
{
	const struct ev_alloc_sum *sum = (const struct ev_alloc_sum *)rec;
	const struct ev_heap *heap = (const struct ev_heap *)rec;

	switch (rec->kind) {
	case EV_ALLOC:
		say_alloc(w, m, rec);
		break;
	case EV_ALLOC_SAMPLE:
		say(w, "about ");
		say_bytes(w, alloc_sample__bytes((const struct ev_alloc_sample *)rec));
		say(w, " by one of ");
		say_bytes(w, ((const struct ev_alloc_sample *)rec)->size);
		break;
	case EV_ALLOC_SUM:
		say(w, "%u allocations, ", sum->calls);
		say_bytes(w, sum->bytes);
		break;
	case EV_FREE:
		say_field(w, rec, "fn");
		break;
	case EV_HEAP:
		say_bytes(w, heap->free);
		say(w, " of ");
		say_bytes(w, heap->size);
		say(w, " free in %u pieces%s", heap->pieces, heap->cut ? " and more" : "");
		break;
	case EV_MEM_CALL:
		say_mem_call(w, (const struct ev_mem_call *)rec);
		break;
	case EV_FAULT:
		say_fault(w, m, (const struct ev_fault *)rec);
		break;
	case EV_RECLAIM:
		say(w, "%llu pages", (unsigned long long)((const struct ev_reclaim *)rec)->pages);
		break;
	}
}

static void say_io(struct what *w, const struct model *m, const struct ev_hdr *rec)
{
	const struct ev_file_read *f = (const struct ev_file_read *)rec;
	const struct ev_file_sync *s = (const struct ev_file_sync *)rec;

	switch (rec->kind) {
	case EV_FILE_READ:
	case EV_FILE_WRITE: /* the same layout */
		say_file(w, m, f->dev, f->ino, f->mode, f->fd);
		break;
	case EV_FILE_META:
		say_file_meta(w, m, (const struct ev_file_meta *)rec);
		break;
	case EV_FILE_SYNC:
		say_file(w, m, s->dev, s->ino, s->mode, s->fd);
		break;
	case EV_URING_SUBMIT:
	case EV_URING_DONE:
		say_uring(w, m, rec);
		break;
	case EV_SYSCALL:
		say_field(w, rec, "sys");
		break;
	}
}

static void say_meta(struct what *w, const struct model *m, const struct ev_hdr *rec)
{
	const struct ev_path *p = (const struct ev_path *)rec;
	const struct ev_map *map = (const struct ev_map *)rec;

	switch (rec->kind) {
	case EV_LOST:
		say(w, "%u lost", ((const struct ev_lost *)rec)->count);
		break;
	case EV_PATH:
		say_file(w, m, p->dev, p->ino, p->mode, -1);
		break;
	case EV_MAP:
		say_text(w, rec);
		if (!w->len)
			say_file(w, m, map->dev, map->ino, 0, -1);
		break;
	case EV_FRAME:
		say_frame(w, (const struct ev_frame *)rec);
		break;
	case EV_LOCK_WAIT:
		say_lock(w, m, rec->tid, ((const struct ev_lock_wait *)rec)->addr);
		break;
	case EV_SAMPLE:
		say_addr(w, m, rec->tid, ((const struct ev_sample *)rec)->ip);
		break;
	case EV_IRQ:
		if (((const struct ev_irq *)rec)->irq == IRQ_TIMER)
			say(w, "timer interrupt");
		else
			say(w, "irq %u", ((const struct ev_irq *)rec)->irq);
		break;
	case EV_SOFTIRQ:
		say_field(w, rec, "vec");
		break;
	default:
		say_text(w, rec);
	}
}

const char *model__what(const struct model *m, const struct ev_hdr *rec, char *buf, size_t size)
{
	const struct ev_desc *d = ev__desc(rec->kind);
	struct what w; /* 4 KiB: not cleared for each record */

	w.len = 0;
	w.text[0] = 0;
	if (d && ev__bytes(rec) >= d->size) {
		if (d->class == CLASS_SCHED)
			say_sched(&w, m, rec);
		else if (d->class == CLASS_ALLOC || d->class == CLASS_FAULT || d->class == CLASS_RECLAIM)
			say_memory(&w, m, rec);
		else if ((d->class == CLASS_FILE && d->shape != SHAPE_META) || d->class == CLASS_SYSCALL)
			say_io(&w, m, rec);
		else
			say_meta(&w, m, rec);
	}
	if (size)
		utf8__sanitize(buf, size, w.text, w.len);
	return buf;
}
