// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "images.h"
#include "maps.h"
#include "pe_modules.h"

/* the first mapping of a file gives its load bias; the one with code tells that it is an image */
static const struct map *first_of(const struct maps *maps, const struct map *m)
{
	for (int i = 0; i < maps->n; i++)
		if (maps->v[i].ino == m->ino && maps->v[i].dev == m->dev)
			return &maps->v[i];
	return m;
}

/* A file may come again elsewhere: then it is one more image, and the old one stays for the addresses recorded so far.
 */
static bool known(const struct images *im, const struct maps *maps, const struct map *m)
{
	u64 start = first_of(maps, m)->start;

	for (int i = 0; i < im->n; i++)
		if (im->v[i].ino == m->ino && im->v[i].dev == m->dev && im->v[i].start == start)
			return true;
	return false;
}

static int add(struct images *im, const struct maps *maps, const struct map *m, u32 tgid)
{
	const struct map *first = first_of(maps, m);

	if (im->n == IMAGES_MAX) {
		im->beyond++;
		return 0;
	}
	if (!im->v)
		im->v = calloc(IMAGES_MAX, sizeof(*im->v));
	if (!im->v)
		return -ENOMEM;
	im->v[im->n++] = (struct image){
		.start = first->start,
		.offset = first->offset,
		.ino = m->ino,
		.dev = m->dev,
		.fd = maps__open(m, tgid),
		.path = strdup(m->path),
	};
	return 0;
}

int images__refresh(struct images *im, u32 tgid)
{
	struct maps maps = {};
	int err = maps__read(&maps, tgid);

	im->mappings = maps.n;
	for (int i = 0; i < maps.n && !err; i++) {
		const struct map *m = &maps.v[i];

		if (!strcmp(m->path, "[vdso]"))
			im->vdso = m->start;
		if (!strcmp(m->path, UPROBES_NAME))
			im->uprobes = m->start;
		if (m->ino && !known(im, &maps, m) && (m->prot & PROT_EXEC || pe_modules__copied(&maps, i, tgid)))
			err = add(im, &maps, m, tgid);
	}
	maps__free(&maps);
	return err;
}

void images__free(struct images *im)
{
	for (int i = 0; i < im->n; i++) {
		if (im->v[i].fd >= 0)
			close(im->v[i].fd);
		free(im->v[i].path);
	}
	free(im->v);
	*im = (struct images){};
}
