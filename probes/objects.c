// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "objects.h"

static struct object *find(struct objects *o, u32 dev, u64 ino)
{
	for (int i = 0; i < o->n; i++)
		if (o->v[i].dev == dev && o->v[i].ino == ino)
			return &o->v[i];
	return NULL;
}

static int add(struct objects *o, const struct object *obj)
{
	if (o->n == o->cap) {
		int cap = o->cap ? 2 * o->cap : 64;
		struct object *v = reallocarray(o->v, (size_t)cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		o->v = v;
		o->cap = cap;
	}
	o->v[o->n++] = *obj;
	return 0;
}

static int collect(struct objects *o)
{
	for (int i = 0; i < o->maps.n; i++) {
		const struct map *m = &o->maps.v[i];
		struct object obj = {
			.path = m->path,
			.base = path__base(m->path),
			.dev = m->dev,
			.ino = m->ino,
			.map = i,
			.deleted = m->deleted,
			.order = OBJECT_NO_ORDER,
			.fd = -1,
		};

		if (!(m->prot & PROT_EXEC) || !m->ino || m->path[0] != '/' || find(o, m->dev, m->ino))
			continue;
		if (add(o, &obj))
			return -ENOMEM;
	}
	return 0;
}

/* ---- the loader's list, read from the process's memory: every pointer in it may be nonsense ---- */

static bool peek(u32 tgid, u64 addr, void *buf, size_t n)
{
	struct iovec local = {buf, n}, remote = {(void *)(uintptr_t)addr, n};

	return process_vm_readv((pid_t)tgid, &local, 1, &remote, 1, 0) == (ssize_t)n;
}

struct auxv {
	u64 phdr, phnum, entry;
};

static bool read_auxv(u32 tgid, struct auxv *a)
{
	char path[64], *text;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%u/auxv", tgid);
	text = proc__read(path, 65536, &len);
	for (size_t i = 0; text && i + 16 <= len; i += 16) {
		u64 pair[2];

		memcpy(pair, text + i, 16);
		if (pair[0] == AT_PHDR)
			a->phdr = pair[1];
		else if (pair[0] == AT_PHNUM)
			a->phnum = pair[1];
		else if (pair[0] == AT_ENTRY)
			a->entry = pair[1];
	}
	free(text);
	return a->phdr && a->phnum <= ELF_MAX_SEGMENTS;
}

/* address of the program's dynamic section; 0: a static program */
static u64 dynamic_address(u32 tgid, const struct auxv *a)
{
	u64 base = 0, dynamic = 0;
	Elf64_Phdr p;

	for (u64 i = 0; i < a->phnum; i++) {
		if (!peek(tgid, a->phdr + i * sizeof(p), &p, sizeof(p)))
			return 0;
		if (p.p_type == PT_PHDR)
			base = a->phdr - p.p_vaddr;
		else if (p.p_type == PT_DYNAMIC)
			dynamic = p.p_vaddr;
	}
	return dynamic ? base + dynamic : 0;
}

static u64 first_link(u32 tgid, u64 dynamic)
{
	struct r_debug debug;
	Elf64_Dyn d;

	for (int i = 0; dynamic && i < 1024; i++) {
		if (!peek(tgid, dynamic + (u64)i * sizeof(d), &d, sizeof(d)) || d.d_tag == DT_NULL)
			return 0;
		if (d.d_tag == DT_DEBUG && d.d_un.d_ptr && peek(tgid, d.d_un.d_ptr, &debug, sizeof(debug)))
			return (u64)(uintptr_t)debug.r_map;
	}
	return 0;
}

static void order_by_links(struct objects *o, u64 link)
{
	for (int i = 0; link && i < 4096; i++) {
		struct link_map l;
		const struct map *m;
		struct object *obj;

		if (!peek(o->tgid, link, &l, sizeof(l)))
			return;
		m = maps__find(&o->maps, (u64)(uintptr_t)l.l_ld);
		obj = m ? find(o, m->dev, m->ino) : NULL;
		if (obj && obj->order == OBJECT_NO_ORDER) {
			obj->order = i;
			o->linked = true;
		}
		link = (u64)(uintptr_t)l.l_next;
	}
}

static int by_order(const void *a, const void *b)
{
	const struct object *x = a, *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	/* the loader maps downwards: what came first is higher */
	return y->map - x->map;
}

static void set_order(struct objects *o)
{
	struct auxv a = {0};
	const struct map *m;
	struct object *exe;

	if (!read_auxv(o->tgid, &a))
		return;
	m = maps__find(&o->maps, a.entry);
	exe = m ? find(o, m->dev, m->ino) : NULL;
	order_by_links(o, first_link(o->tgid, dynamic_address(o->tgid, &a)));
	if (exe) {
		exe->exe = true;
		exe->order = -1;
	}
}

int objects__read(struct objects *o, u32 tgid)
{
	int err;

	*o = (struct objects){.tgid = tgid};
	err = maps__read(&o->maps, tgid);
	if (!err)
		err = collect(o);
	if (err) {
		objects__free(o);
		return err;
	}
	set_order(o);
	if (o->n)
		qsort(o->v, (size_t)o->n, sizeof(*o->v), by_order);
	return 0;
}

void objects__free(struct objects *o)
{
	for (int i = 0; i < o->n; i++) {
		if (o->v[i].state == 1)
			elf_file__close(&o->v[i].elf);
		if (o->v[i].fd >= 0)
			close(o->v[i].fd);
	}
	free(o->v);
	maps__free(&o->maps);
	*o = (struct objects){0};
}

int object__open(struct objects *o, struct object *obj)
{
	int err;

	if (obj->state)
		return obj->state < 0 ? obj->state : 0;
	if (obj->fd < 0)
		obj->fd = maps__open(&o->maps.v[obj->map], o->tgid);
	err = obj->fd < 0 ? obj->fd : elf_file__open(&obj->elf, obj->fd);
	obj->state = err ? err : 1;
	return err;
}

bool objects__peek(const struct objects *o, u64 addr, void *buf, size_t n)
{
	return peek(o->tgid, addr, buf, n);
}

static const struct elf_segment *code_segment(const struct elf_file *e, u64 offset)
{
	for (u32 i = 0; i < e->n_segments; i++) {
		const struct elf_segment *g = &e->segments[i];

		if (g->type == PT_LOAD && g->flags & PF_X && offset >= g->offset && offset - g->offset < g->filesz)
			return g;
	}
	return NULL;
}

struct object *objects__code_at(struct objects *o, u64 addr, u64 *vaddr)
{
	const struct map *m = maps__find(&o->maps, addr);
	struct object *obj = m && m->ino && m->prot & PROT_EXEC ? find(o, m->dev, m->ino) : NULL;
	const struct elf_segment *g;
	u64 offset;

	if (!obj || object__open(o, obj))
		return NULL;
	offset = m->offset + (addr - m->start);
	g = code_segment(&obj->elf, offset);
	if (!g)
		return NULL;
	*vaddr = g->vaddr + (offset - g->offset);
	return obj;
}

bool object__bias(const struct objects *o, const struct object *obj, u64 *bias)
{
	for (int i = 0; i < o->maps.n; i++) {
		const struct map *m = &o->maps.v[i];
		const struct elf_segment *g;

		if (m->dev != obj->dev || m->ino != obj->ino || !(m->prot & PROT_EXEC))
			continue;
		/* the mapping may begin before its segment, at a page's beginning */
		g = code_segment(&obj->elf, m->offset);
		if (!g)
			g = code_segment(&obj->elf, m->offset + 4095);
		if (!g)
			continue;
		*bias = m->start - m->offset + g->offset - g->vaddr;
		return true;
	}
	return false;
}

int objects__from_file(struct objects *o, const char *path, int fd)
{
	struct stat st;
	struct object obj = {.path = path, .base = path__base(path), .order = 0, .exe = true, .fd = fd, .map = -1};

	*o = (struct objects){0};
	if (fstat(fd, &st) || add(o, &obj)) {
		close(fd);
		return -ENOMEM;
	}
	o->v[0].ino = st.st_ino;
	return 0;
}

bool object__is(const struct object *obj, const char *lib)
{
	size_t n = strlen(lib);

	if (lib[0] == '/')
		return !strcmp(obj->path, lib);
	if (!n || strncmp(obj->base, lib, n))
		return false;
	return !obj->base[n] || obj->base[n] == '.' || obj->base[n] == '-';
}
