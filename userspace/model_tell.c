/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What the model knows, as records.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "model_internal.h"

#define NOTES_TOLD 64u /* the first ones: what could not be done from the start */

struct teller {
	const struct model *m;
	u64 ts;
	model_tell_fn fn;
	void *arg;
};

#define HDR(kind_, tid_) .hdr = {.ts = t->ts, .tid = (tid_), .kind = (kind_)}

static int tell(const struct teller *t, const void *fixed, size_t bytes, const char *text, size_t len)
{
	return t->fn(t->arg, fixed, bytes, text, len);
}

static int tell_infos(const struct teller *t)
{
	int err = 0;

	for (u32 i = 0; i < t->m->infos.n && !err; i++) {
		const char *key = t->m->infos.entries[i].value, *value = key + strlen(key) + 1;
		struct ev_info e = {HDR(EV_INFO, 0)};
		char text[EV_MAX_BYTES];
		size_t n = strlen(key) + 1 + strlen(value);

		if (n >= sizeof(text))
			continue;
		memcpy(text, key, n);
		text[strlen(key)] = '=';
		err = tell(t, &e, sizeof(e), text, n);
	}
	return err;
}

/* Those that FORK told of: the others have an INFO from the start. */
static int tell_children(const struct teller *t)
{
	int err = 0;

	for (u32 i = 0; i < t->m->children.n && !err; i++) {
		struct ev_info e = {HDR(EV_INFO, 0)};
		char text[48];
		int n = snprintf(text, sizeof(text), "child.%u=%u", (u32)t->m->children.entries[i].key.a, t->m->game);

		err = tell(t, &e, sizeof(e), text, (size_t)n);
	}
	return err;
}

static int tell_processes(const struct teller *t)
{
	int err = 0;

	for (u32 i = 0; i < t->m->processes.n && !err; i++) {
		const struct process *p = t->m->processes.entries[i].value;
		const struct thread *leader = model__find_thread(t->m, p->tgid);
		struct ev_process e = {
			HDR(EV_PROCESS, p->tgid), .parent = p->parent, .nspid = leader ? leader->nstid : p->tgid};
		struct ev_cgroup group = {HDR(EV_CGROUP, p->tgid)};

		if (p->cmdline)
			err = tell(t, &e, sizeof(e), p->cmdline, p->cmdline_len);
		if (!err && p->cgroup)
			err = tell(t, &group, sizeof(group), p->cgroup, strlen(p->cgroup));
	}
	return err;
}

static int tell_threads(const struct teller *t)
{
	int err = 0;

	for (u32 i = 0; i < t->m->threads.n && !err; i++) {
		const struct thread *k = &((const struct mthread *)t->m->threads.entries[i].value)->t;
		struct ev_thread e = {HDR(EV_THREAD, k->tid), .tgid = k->tgid, .nstid = k->nstid};

		if (k->tgid && !k->exited)
			err = tell(t, &e, sizeof(e), k->name, strlen(k->name));
	}
	return err;
}

static int tell_maps(const struct teller *t)
{
	int err = 0;

	for (u32 i = 0; i < t->m->n_maps && !err; i++) {
		const struct mapping *k = t->m->maps[i];
		const char *path = k->path[0] ? k->path : model__path(t->m, k->dev, k->ino);
		struct ev_map e = {HDR(EV_MAP, t->m->game), .start = k->start, .end = k->end, .offset = k->offset,
			.ino = k->ino, .dev = k->dev, .prot = k->prot};

		err = tell(t, &e, sizeof(e), path ? path : "", path ? strlen(path) : 0);
	}
	return err;
}

/* "/dir/leaf" becomes "leaf\0dir\0"; returns the length. */
static size_t split(const char *path, char *parts, size_t size)
{
	const char *end = path + strlen(path), *at;
	size_t n = 0;

	for (; end > path; end = at) {
		for (at = end; at > path && at[-1] != '/'; at--)
			;
		if (n + (size_t)(end - at) + 1 > size)
			break;
		memcpy(parts + n, at, (size_t)(end - at));
		n += (size_t)(end - at);
		parts[n++] = '\0';
		if (at > path)
			at--;
	}
	return n;
}

int model__tell_path(const struct model *m, u64 ts, u32 dev, u64 ino, model_tell_fn fn, void *arg)
{
	const struct teller teller = {.m = m, .ts = ts, .fn = fn, .arg = arg}, *t = &teller;
	struct ev_path e = {HDR(EV_PATH, 0), .ino = ino, .dev = dev};
	static const char ellipsis[] = "…";
	const char *path = model__path(m, dev, ino);
	char parts[EV_MAX_BYTES];

	if (!path)
		return 0;
	e.cut = !strncmp(path, ellipsis, strlen(ellipsis));
	e.mode = !strncmp(path, "pipe:[", 6) ? S_IFIFO : !strncmp(path, "socket:[", 8) ? S_IFSOCK : S_IFREG;
	if (e.mode != S_IFREG)
		return tell(t, &e, sizeof(e), "", 0);
	if (path[0] == '[')
		return tell(t, &e, sizeof(e), path, strlen(path));
	return tell(t, &e, sizeof(e), parts,
		split(path + (e.cut ? strlen(ellipsis) : 0), parts, sizeof(parts) - sizeof(e) - 1));
}

int model__tell_paths(const struct model *m, u64 ts, model_tell_fn fn, void *arg)
{
	int err = 0;

	for (u32 i = 0; i < m->files.n && !err; i++) {
		struct key k = m->files.entries[i].key;

		err = model__tell_path(m, ts, file__dev(k), file__ino(k), fn, arg);
	}
	return err;
}

static int tell_names(const struct teller *t)
{
	struct ev_scene scene = {HDR(EV_SCENE, t->m->game)};
	int err = 0;

	for (u32 i = 0; i < t->m->locks.n && !err; i++) {
		struct ev_lock_name e = {HDR(EV_LOCK_NAME, t->m->game), .addr = t->m->locks.entries[i].key.a};
		const char *name = t->m->locks.entries[i].value;

		err = tell(t, &e, sizeof(e), name, strlen(name));
	}
	if (!err && t->m->scene[0])
		err = tell(t, &scene, sizeof(scene), t->m->scene, strlen(t->m->scene));
	return err;
}

static int tell_notes(const struct teller *t)
{
	int err = 0;

	for (u32 i = 0; i < t->m->n_notes && i < NOTES_TOLD && !err; i++) {
		const struct note *n = &t->m->notes[i];
		struct ev_note e = {HDR(EV_NOTE, 0), .severity = n->severity, .class = n->class};

		err = tell(t, &e, sizeof(e), n->text, strlen(n->text));
	}
	return err;
}

int model__tell(const struct model *m, u64 ts, model_tell_fn fn, void *arg)
{
	struct teller t = {.m = m, .ts = ts, .fn = fn, .arg = arg};
	int (*const parts[])(const struct teller *t) = {
		tell_infos, tell_children, tell_processes, tell_threads, tell_maps, tell_names, tell_notes};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(parts) && !err; i++)
		err = parts[i](&t);
	return err;
}
