// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "maps.h"
#include "recording.h"
#include "pe_modules.h"

static int by_start(const void *a, const void *b)
{
	const struct pe_module *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int pe_modules__open(struct pe_modules *w, const struct images *images)
{
	w->n = 0;
	w->v = calloc((size_t)images->n + 1, sizeof(*w->v));
	if (!w->v)
		return -ENOMEM;
	for (int i = 0; i < images->n; i++) {
		const struct image *im = &images->v[i];
		struct pe_module *m = &w->v[w->n];

		if (im->fd < 0 || im->offset || pe_file__open(&m->pe, im->fd))
			continue;
		m->start = im->start;
		m->path = im->path;
		w->n++;
	}
	qsort(w->v, (size_t)w->n, sizeof(*w->v), by_start);
	return 0;
}

void pe_modules__close(struct pe_modules *w)
{
	for (int i = 0; i < w->n; i++)
		pe_file__close(&w->v[i].pe);
	free(w->v);
	*w = (struct pe_modules){};
}

int pe_modules__write(struct recording_writer *w, const struct pe_modules *m, u64 ts)
{
	int err = 0;

	for (int i = 0; i < m->n && !err; i++) {
		const struct pe_module *at = &m->v[i];
		struct ev_image e = {.hdr = {.ts = ts, .kind = EV_IMAGE}, .start = at->start};
		char text[1024] = ""; /* no build-id */
		int n = 1 + snprintf(text + 1, 800, "%s", at->path);

		e.end = at->start + at->pe.image_size;
		e.bias = at->start - at->pe.base;
		err = recording__append_text(w, &e, sizeof(e), text, (size_t)min(n, 800));
	}
	return err;
}

static const struct pe_module *module_at(const struct pe_modules *w, u64 addr)
{
	int lo = 0, hi = w->n;

	while (lo < hi) {
		int mid = lo + (hi - lo) / 2;

		if (w->v[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && addr - w->v[lo - 1].start < w->v[lo - 1].pe.image_size ? &w->v[lo - 1] : NULL;
}

bool pe_modules__symbol(
	const struct pe_modules *w, u64 addr, u64 *start, u64 *end, char *name, size_t size, const char **object)
{
	const struct pe_module *m = module_at(w, addr);
	struct pe_function f;

	if (!m || pe_file__function(&m->pe, (u32)(addr - m->start), &f))
		return false;
	*start = m->start + f.start;
	*end = m->start + f.end;
	*object = path__base(m->path);
	if (f.name[0])
		snprintf(name, size, "%s", f.name);
	else
		snprintf(name, size, "%.200s+0x%x", *object, f.entry);
	return true;
}

u64 pe_modules__copied(const struct maps *maps, int i, u32 tgid)
{
	const struct map *m = &maps->v[i], *next = i + 1 < maps->n ? m + 1 : NULL;
	struct pe_file pe;
	u64 bytes = 0;
	int fd;

	if (!m->ino || m->offset || m->shared || m->prot & PROT_EXEC || !next || next->ino || next->start != m->end)
		return 0;
	fd = maps__open(m, tgid);
	if (fd < 0)
		return 0;
	if (!pe_file__open(&pe, fd)) {
		bytes = pe.image_size;
		pe_file__close(&pe);
	}
	close(fd);
	return bytes;
}
