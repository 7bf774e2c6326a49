// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "eh_frame.h"
#include "placement.h"
#include "regs.h"
#include "site_build.h"
#include "strings.h"
#include "usdt.h"

void why__add(char *why, size_t size, const char *fmt, ...)
{
	size_t used = strnlen(why, size);
	va_list ap;

	if (used + 4 >= size)
		return;
	if (used)
		used += (size_t)snprintf(why + used, size - used, "; ");
	va_start(ap, fmt);
	vsnprintf(why + used, size - used, fmt, ap);
	va_end(ap);
}

void sites__free(struct site_list *l)
{
	for (int i = 0; i < l->n_files; i++)
		close(l->files[i].fd);
	free(l->files);
	free(l->sites);
	*l = (struct site_list){0};
}

static int add_file(struct site_list *l, const struct object *obj)
{
	struct site_file *f;

	for (int i = 0; i < l->n_files; i++)
		if (l->files[i].dev == obj->dev && l->files[i].ino == obj->ino)
			return i;
	if (l->n_files == l->cap_files) {
		int cap = l->cap_files ? 2 * l->cap_files : 8;
		struct site_file *v = reallocarray(l->files, (size_t)cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		l->files = v;
		l->cap_files = cap;
	}
	f = &l->files[l->n_files];
	*f = (struct site_file){
		.fd = fcntl(obj->fd, F_DUPFD_CLOEXEC, 3), .dev = obj->dev, .ino = obj->ino, .deleted = obj->deleted};
	if (f->fd < 0)
		return -errno;
	utf8__sanitize(f->path, sizeof(f->path), obj->path, strlen(obj->path));
	return l->n_files++;
}

static int push_site(struct site_list *l, const struct site *s)
{
	for (int i = 0; i < l->n; i++)
		if (l->sites[i].file == s->file && l->sites[i].offset == s->offset)
			return 0; /* another name of the same address */
	if (l->n >= PROBE_MAX)
		return -ENOSPC;
	if (l->n == l->cap) {
		int cap = l->cap ? 2 * l->cap : 32;
		struct site *v = reallocarray(l->sites, (size_t)cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		l->sites = v;
		l->cap = cap;
	}
	l->sites[l->n] = *s;
	l->sites[l->n].desc.site = (u16)l->n;
	l->n++;
	return 1;
}

static void clear_args(struct probe_desc *d)
{
	for (int i = 0; i < PROBE_ARGS; i++)
		d->args[i] = (struct probe_arg){.index = REG_NONE};
}

static void set_label(struct site *s, const char *scheme, const char *lib, const char *name, u64 into)
{
	char text[sizeof(s->label)], off[32] = "";

	if (into)
		snprintf(off, sizeof(off), "+0x%" PRIx64, into);
	/* the offset must survive when a long name is cut */
	snprintf(text, sizeof(text) - strlen(off), "%s:%s%s%s", scheme ? scheme : "uprobe", lib, name ? ":" : "",
		name ? name : "");
	strcat(text, off);
	utf8__sanitize(s->label, sizeof(s->label), text, strlen(text));
}

/* live: the arguments that are still in a register at the probe */
static void set_args(struct site *s, const struct use *u, const struct placement *p, u32 live)
{
	clear_args(&s->desc);
	for (int i = 0; i < PROBE_ARGS; i++) {
		struct probe_arg *a = &s->desc.args[i];

		if (u->args[i] < 0 || !(live & ARG_BIT(u->args[i])) || p->reg[u->args[i]] == REG_NONE)
			continue;
		*a = (struct probe_arg){.reg = p->reg[u->args[i]], .index = REG_NONE, .from = ARG_REG, .size = 8};
		if (i == 1 && u->follow) {
			a->from = ARG_MEM_MEM;
			a->value = u->follow;
		}
	}
}

static u32 needed(const struct use *u)
{
	u32 need = 0;

	for (int i = 0; i < PROBE_ARGS; i++)
		need |= u->args[i] >= 0 ? ARG_BIT(u->args[i]) : 0;
	return need;
}

int sites__add_function(struct site_list *l, struct objects *o, const struct function *f, const struct use *u,
	bool allow_stepped, bool *stepped)
{
	struct site s = {.desc = {.what = u->what, .sub = u->sub}};
	struct placement p;
	int err;

	*stepped = false;
	err = object__open(o, f->obj);
	if (!err)
		err = placement__of_symbol(&f->obj->elf, &f->sym, needed(u), &p);
	if (!err)
		err = elf_file__offset(&f->obj->elf, f->sym.vaddr, &s.offset);
	if (err)
		return err;
	*stepped = p.stepped;
	if (p.stepped && !allow_stepped)
		return 0;
	s.file = add_file(l, f->obj);
	if (s.file < 0)
		return s.file;
	s.offset += p.offset;
	s.stepped = p.stepped;
	s.desc.ret = p.ret;
	set_args(&s, u, &p, ~0u);
	set_label(&s, f->scheme, f->lib, f->sym.name, f->sym.name ? p.offset : s.offset);
	return push_site(l, &s);
}

/* from the beginning of the function that it is in */
static bool splits_instruction(const struct elf_file *e, u64 vaddr)
{
	u64 begin, size;
	bool splits;
	u8 *code;

	if (eh_frame__around(e, vaddr, &begin, &size) || vaddr - begin > PLACEMENT_MAX)
		return false;
	size = vaddr - begin + 16; /* no instruction is longer */
	code = malloc(size);
	splits = code && placement__splits(e->machine, code, elf_file__read_vaddr(e, begin, code, size), vaddr - begin);
	free(code);
	return splits;
}

int sites__add_inside(struct site_list *l, struct objects *o, const struct function *f, u64 into, const struct use *u)
{
	struct site s = {.desc = {.what = u->what, .sub = u->sub}};
	u8 code[4096];
	struct placement_code c = {.code = code, .vaddr = f->sym.vaddr, .whole = true};
	struct placement p;
	u32 live;
	int err = object__open(o, f->obj);

	if (err)
		return err;
	if (into > UINT32_MAX || (f->sym.size && into >= f->sym.size) ||
		elf_file__offset(&f->obj->elf, f->sym.vaddr + into, &s.offset))
		return -EINVAL;
	if (splits_instruction(&f->obj->elf, f->sym.vaddr + into))
		return -EILSEQ;
	c.machine = f->obj->elf.machine;
	c.size = elf_file__read_vaddr(&f->obj->elf, f->sym.vaddr, code,
		f->sym.size ? (size_t)min((u64)sizeof(code), f->sym.size) : sizeof(code));
	if (!c.size)
		return -EINVAL;
	p = placement__at(&c, (u32)into, &live);
	s.file = add_file(l, f->obj);
	if (s.file < 0)
		return s.file;
	s.stepped = p.stepped;
	s.desc.ret = p.ret;
	set_args(&s, u, &p, live);
	set_label(&s, NULL, f->lib, f->sym.name, into);
	return push_site(l, &s);
}

static bool offset_is_code(const struct elf_file *e, u64 offset, u64 *vaddr)
{
	for (u32 i = 0; i < e->n_segments; i++) {
		const struct elf_segment *s = &e->segments[i];

		if (s->type == PT_LOAD && (s->flags & PF_X) && offset >= s->offset && offset - s->offset < s->filesz) {
			*vaddr = s->vaddr + (offset - s->offset);
			return true;
		}
	}
	return false;
}

static bool stepped_at(const struct elf_file *e, u64 offset)
{
	u8 code[16] = {0};
	size_t n = (size_t)min((u64)sizeof(code), e->size - offset);

	return elf_file__read(e, offset, code, n) || !placement__emulated(e->machine, code, n);
}

int sites__add_offset(struct site_list *l, struct objects *o, struct object *obj, u64 offset, u8 what, u8 sub)
{
	struct site s = {.desc = {.what = what, .sub = sub, .ret = PLACEMENT_NO_RET}, .offset = offset};
	int err = object__open(o, obj);
	u64 vaddr;

	if (err)
		return err;
	if (!offset_is_code(&obj->elf, offset, &vaddr))
		return -EINVAL;
	if (splits_instruction(&obj->elf, vaddr))
		return -EILSEQ;
	s.file = add_file(l, obj);
	if (s.file < 0)
		return s.file;
	clear_args(&s.desc);
	s.stepped = stepped_at(&obj->elf, offset);
	set_label(&s, NULL, obj->base, NULL, offset);
	return push_site(l, &s);
}

/* ---- USDT ---- */

struct usdt_build {
	struct site_list *l;
	struct object *obj;
	const char *provider, *name;
	u8 what, sub;
	char *why;
	size_t why_size;
	int added, err;
	int refused;
};

/* how many arguments a probe is worth nothing without */
static int required_args(u8 what)
{
	return what == PROBE_LOCK_NAME ? 2 : what == PROBE_FRAME ? 0 : 1;
}

/* A provider that is not ours may pass anything as its second argument: only ours is believed to be a swapchain. */
static int wanted_args(const struct usdt_build *b)
{
	if (b->what != PROBE_FRAME)
		return required_args(b->what);
	return strcmp(b->provider, "redframe") ? 1 : 2;
}

/* A marker is a nop: one that is not may be anywhere. */
static bool is_misplaced(const struct elf_file *e, u64 offset)
{
	u64 vaddr;
	u8 c[4];

	if (elf_file__read(e, offset, c, sizeof(c)) || !offset_is_code(e, offset, &vaddr))
		return false; /* nothing to be changed there */
	if (e->machine == EM_X86_64 &&
		(c[0] == 0x90 || (c[0] == 0x66 && c[1] == 0x90) || (c[0] == 0x0f && c[1] == 0x1f)))
		return false;
	return splits_instruction(e, vaddr);
}

static bool add_note(const struct usdt_note *note, void *arg)
{
	struct usdt_build *b = arg;
	struct site s = {.desc = {.what = b->what, .sub = b->sub, .ret = PLACEMENT_NO_RET}, .offset = note->offset};
	char text[sizeof(s.label)], problem[160] = "";
	int have;

	if (strcmp(note->provider, b->provider) || strcmp(note->name, b->name))
		return true;
	clear_args(&s.desc);
	have = usdt__parse_args(b->obj->elf.machine, note->args, s.desc.args, wanted_args(b), problem, sizeof(problem));
	if (max(have, 0) < required_args(b->what)) {
		if (!b->refused++)
			why__add(b->why, b->why_size, "usdt:%s:%s: %s", b->provider, b->name,
				problem[0] ? problem : "it lacks an argument");
		return true;
	}
	if (have < 0)
		why__add(b->why, b->why_size, "usdt:%s:%s: %s", b->provider, b->name, problem);
	if (is_misplaced(&b->obj->elf, note->offset)) {
		if (!b->refused++)
			why__add(b->why, b->why_size, "usdt:%s:%s: its place is within an instruction", b->provider,
				b->name);
		return true;
	}
	s.semaphore = note->semaphore;
	s.stepped = stepped_at(&b->obj->elf, note->offset);
	snprintf(text, sizeof(text), "usdt:%s:%s", note->provider, note->name);
	utf8__sanitize(s.label, sizeof(s.label), text, strlen(text));
	s.file = add_file(b->l, b->obj);
	b->err = s.file < 0 ? s.file : push_site(b->l, &s);
	b->added += b->err > 0;
	return b->err >= 0;
}

int sites__add_usdt(struct site_list *l, struct objects *o, const char *provider, const char *name, u8 what, u8 sub,
	char *why, size_t why_size)
{
	struct usdt_build b = {
		.l = l, .provider = provider, .name = name, .what = what, .sub = sub, .why = why, .why_size = why_size};

	for (int i = 0; i < o->n && b.err >= 0; i++) {
		int bad;

		b.obj = &o->v[i];
		if (object__open(o, b.obj))
			continue;
		bad = usdt__each(&b.obj->elf, add_note, &b);
		if (bad > 0 && b.added)
			why__add(why, why_size, "%d malformed USDT notes in %.60s", bad, b.obj->base);
		else if (bad < 0)
			b.err = bad;
	}
	if (b.err == -ENOSPC) {
		why__add(why, why_size, "more than %d sites of usdt:%s:%s: the others are left out", PROBE_MAX,
			provider, name);
		b.err = 0;
	}
	return b.err < 0 ? b.err : b.added;
}

int sites__take(struct site_list *l, struct site_list *from)
{
	for (int i = 0; i < from->n; i++) {
		struct site s = from->sites[i];
		struct site_file *f = &from->files[s.file];
		struct object as_object = {
			.fd = f->fd, .dev = f->dev, .ino = f->ino, .path = f->path, .deleted = f->deleted};
		int err;

		s.file = add_file(l, &as_object);
		err = s.file < 0 ? s.file : push_site(l, &s);
		if (err < 0)
			return err;
	}
	sites__free(from);
	return 0;
}
