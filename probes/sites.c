// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "frame_source.h"
#include "site_build.h"
#include "stepped.h"
#include "strings.h"

static int read_objects(struct objects *o, u32 pid, char *why, size_t why_size)
{
	int err = objects__read(o, pid);

	if (err == -ESRCH)
		why__add(why, why_size, "process %u has ended", pid);
	else if (err)
		why__add(why, why_size, "/proc/%u/maps: %s", pid, strerror(-err));
	return err;
}

static int frame_auto(struct site_list *l, struct objects *o, const char *left, char *source, size_t source_size,
	char *why, size_t why_size)
{
	struct frame_choice c;
	int err = frame_source__auto(&c, o, left, why, why_size), before = l->n;

	snprintf(source, source_size, "none");
	if (!err && c.chosen >= 0) {
		snprintf(source, source_size, "%s", c.v[c.chosen].source_text);
		err = sites__take(l, &c.v[c.chosen].list);
		l->unsure = !c.sure;
	}
	frame_choice__free(&c);
	return err ? err : l->n - before;
}

#define PROVIDER_SIZE 128

int frame_spec__check(const char *spec)
{
	struct uprobe_spec unused;
	const char *colon;

	if (!strcmp(spec, "auto") || !strcmp(spec, "none") || !strcmp(spec, "vulkan") || !strncmp(spec, "vulkan:", 7))
		return 0;
	if (!strncmp(spec, "uprobe:", 7))
		return uprobe_spec__parse(&unused, spec + 7);
	if (strncmp(spec, "usdt:", 5))
		return -EINVAL;
	spec += 5;
	colon = strchr(spec, ':');
	return colon && colon > spec && colon[1] && colon - spec < PROVIDER_SIZE ? 0 : -EINVAL;
}

static int frame_usdt(struct site_list *l, struct objects *o, const char *spec, char *why, size_t why_size)
{
	char provider[PROVIDER_SIZE];
	const char *colon = strchr(spec, ':');
	int n;

	snprintf(provider, sizeof(provider), "%.*s", (int)(colon - spec), spec);
	n = frame_source__usdt(l, o, provider, colon + 1, why, why_size);
	if (n == 0) {
		why__add(why, why_size, "none of the files that the game maps has the probe usdt:%.100s", spec);
		return -ENOENT;
	}
	return n;
}

/* What whoever reads the frames should know about where they come from. */
static void tell_peculiar(const struct site_list *l, int first, char *why, size_t why_size)
{
	int told = -1;

	for (int i = first; i < l->n; i++) {
		const struct site_file *f = &l->files[l->sites[i].file];

		if (f->deleted && l->sites[i].file != told)
			why__add(why, why_size,
				"%.200s (deleted): the file that the game runs is probed, not what bears its "
				"name now",
				f->path);
		told = f->deleted ? l->sites[i].file : told;
	}
}

int sites__frame(
	struct site_list *l, u32 pid, const char *spec, char *source, size_t source_size, char *why, size_t why_size)
{
	bool is_auto = !strcmp(spec, "auto") || !strncmp(spec, SITES_AUTO_BUT, strlen(SITES_AUTO_BUT));
	struct objects o;
	int err;

	why[0] = 0;
	snprintf(source, source_size, "%s", spec);
	if (!is_auto && frame_spec__check(spec)) {
		why__add(why, why_size, "--frame %.100s: it is " FRAME_SPECS, spec);
		return -EINVAL;
	}
	if (!strcmp(spec, "none"))
		return 0;
	err = read_objects(&o, pid, why, why_size);
	if (err && is_auto)
		snprintf(source, source_size, "none");
	if (err)
		return err;
	if (is_auto) {
		err = frame_auto(
			l, &o, spec[4] ? spec + strlen(SITES_AUTO_BUT) : NULL, source, source_size, why, why_size);
	} else if (!strcmp(spec, "vulkan") || !strncmp(spec, "vulkan:", 7)) {
		err = frame_source__vulkan(l, &o, source, source_size, why, why_size);
	} else if (!strncmp(spec, "usdt:", 5)) {
		err = frame_usdt(l, &o, spec + 5, why, why_size);
	} else {
		err = frame_source__uprobe(l, &o, spec + 7, why, why_size);
	}
	if (err < 0 && !why[0])
		why__add(why, why_size, "%s", strerror(-err));
	tell_peculiar(l, l->n - max(err, 0), why, why_size);
	stepped__tell_cost(l, l->n - max(err, 0), pid, why, why_size);
	objects__free(&o);
	return err;
}

int sites__markers(struct site_list *l, u32 pid, char *why, size_t why_size)
{
	static const struct {
		const char *name;
		u8 what;
	} markers[] = {{"scene", PROBE_SCENE}, {"lock_name", PROBE_LOCK_NAME}, {"message", PROBE_MESSAGE}};
	struct site_list found = {0};
	struct objects o;
	int err, n, sum = 0;

	why[0] = 0;
	err = read_objects(&o, pid, why, why_size);
	if (err)
		return err;
	for (size_t i = 0; i < ARRAY_SIZE(markers); i++) {
		n = sites__add_usdt(&found, &o, "redframe", markers[i].name, markers[i].what, 0, why, why_size);
		if (n < 0) {
			why__add(why, why_size, "usdt:redframe:%s: %s", markers[i].name, strerror(-n));
			sum = n;
			break;
		}
	}
	objects__free(&o);
	stepped__drop_hot(&found, pid, why, why_size);
	n = l->n;
	err = sites__take(l, &found);
	sites__free(&found);
	return sum < 0 ? sum : err ? err : l->n - n;
}

bool sites__in_place(const struct site_list *l, const struct site *s, const struct maps *maps, u32 pid)
{
	const struct site_file *f = &l->files[s->file];
	const struct objects o = {.tgid = pid};

	for (int i = 0; i < maps->n; i++) {
		const struct map *m = &maps->v[i];
		u32 file = 0, memory = 0;
		size_t n;

		if (m->dev != f->dev || m->ino != f->ino || !(m->prot & PROT_EXEC) || s->offset < m->offset ||
			s->offset - m->offset >= m->end - m->start)
			continue;
		n = min(sizeof(file), m->end - m->start - (s->offset - m->offset));
		if (pread(f->fd, &file, n, (off_t)s->offset) != (ssize_t)n ||
			!objects__peek(&o, m->start + (s->offset - m->offset), &memory, n))
			continue;
		return file != memory;
	}
	return true;
}
