// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "elf_file.h"

/* sizes that other loaders insist on as well */
_Static_assert(sizeof(Elf64_Ehdr) == 64 && sizeof(Elf64_Phdr) == 56 && sizeof(Elf64_Shdr) == 64, "ELF64");

int elf_file__read(const struct elf_file *e, u64 offset, void *buf, size_t n)
{
	char *p = buf;

	if (offset > e->size || n > e->size - offset)
		return -ENODATA;
	while (n) {
		ssize_t got = pread(e->fd, p, n, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -ENODATA; /* it was cut short meanwhile */
		p += got;
		offset += (u64)got;
		n -= (size_t)got;
	}
	return 0;
}

int elf_file__offset(const struct elf_file *e, u64 vaddr, u64 *offset)
{
	for (u32 i = 0; i < e->n_segments; i++) {
		const struct elf_segment *s = &e->segments[i];

		if (s->type == PT_LOAD && vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz) {
			*offset = s->offset + (vaddr - s->vaddr);
			return 0;
		}
	}
	return -ENOENT;
}

size_t elf_file__read_vaddr(const struct elf_file *e, u64 vaddr, void *buf, size_t n)
{
	for (u32 i = 0; i < e->n_segments; i++) {
		const struct elf_segment *s = &e->segments[i];
		u64 into = vaddr - s->vaddr;

		if (s->type != PT_LOAD || vaddr < s->vaddr || into >= s->filesz)
			continue;
		n = (size_t)min((u64)n, s->filesz - into);
		return elf_file__read(e, s->offset + into, buf, n) ? 0 : n;
	}
	return 0;
}

const struct elf_section *elf_file__section(const struct elf_file *e, const char *name)
{
	for (u32 i = 0; i < e->n_sections; i++)
		if (e->sections[i].name < e->names_size && !strcmp(e->names + e->sections[i].name, name))
			return &e->sections[i];
	return NULL;
}

/* A table of the file as one NUL-terminated block of memory. */
static int load(struct elf_file *e, u64 offset, u64 size, u64 limit, char **out, size_t *out_size)
{
	char *buf;
	int err;

	*out = NULL;
	*out_size = 0;
	if (offset > e->size)
		return -ENODATA;
	if (size > limit || size > e->size - offset) {
		e->cut = true;
		size = min(size, limit);
		size = min(size, e->size - offset);
	}
	buf = malloc((size_t)size + 1);
	if (!buf)
		return -ENOMEM;
	err = elf_file__read(e, offset, buf, (size_t)size);
	if (err) {
		free(buf);
		return err;
	}
	buf[size] = 0;
	*out = buf;
	*out_size = (size_t)size;
	return 0;
}

static int load_segments(struct elf_file *e, const Elf64_Ehdr *h)
{
	u32 n = h->e_phnum;
	Elf64_Phdr p;

	if (h->e_phentsize != sizeof(p))
		return 0;
	if (n > ELF_MAX_SEGMENTS) {
		n = ELF_MAX_SEGMENTS;
		e->cut = true;
	}
	e->segments = calloc(n ? n : 1, sizeof(*e->segments));
	if (!e->segments)
		return -ENOMEM;
	for (u32 i = 0; i < n; i++) {
		u64 room;

		if (h->e_phoff > e->size || elf_file__read(e, h->e_phoff + i * sizeof(p), &p, sizeof(p))) {
			e->cut = true;
			break;
		}
		room = p.p_offset < e->size ? e->size - p.p_offset : 0;
		e->cut |= p.p_type == PT_LOAD && p.p_filesz > room;
		e->segments[e->n_segments++] = (struct elf_segment){
			.type = p.p_type,
			.flags = p.p_flags,
			.offset = p.p_offset,
			.vaddr = p.p_vaddr,
			.filesz = min((u64)p.p_filesz, room),
			.memsz = p.p_memsz,
		};
	}
	return 0;
}

static void take_section(struct elf_file *e, const Elf64_Shdr *s)
{
	u64 room = s->sh_offset < e->size ? e->size - s->sh_offset : 0;
	u64 size = s->sh_type == SHT_NOBITS ? 0 : s->sh_size;

	e->cut |= size > room;
	e->sections[e->n_sections++] = (struct elf_section){
		.name = s->sh_name,
		.type = s->sh_type,
		.link = s->sh_link,
		.flags = s->sh_flags,
		.addr = s->sh_addr,
		.offset = s->sh_offset,
		.size = min(size, room),
	};
}

static int load_sections(struct elf_file *e, const Elf64_Ehdr *h)
{
	u64 n = h->e_shnum, strndx = h->e_shstrndx;
	Elf64_Shdr *table, first;
	int err;

	if (!h->e_shoff || h->e_shentsize != sizeof(first) || elf_file__read(e, h->e_shoff, &first, sizeof(first)))
		return 0;
	/* 65,280 sections and more: the real numbers are in section 0 */
	n = n ? n : first.sh_size;
	strndx = strndx == SHN_XINDEX ? first.sh_link : strndx;
	if (n > 0xffff || n > (e->size - h->e_shoff) / sizeof(first)) {
		n = min((u64)0xffff, (e->size - h->e_shoff) / sizeof(first));
		e->cut = true;
	}
	table = calloc(n + 1, sizeof(*table));
	e->sections = calloc(n + 1, sizeof(*e->sections));
	err = table && e->sections ? elf_file__read(e, h->e_shoff, table, n * sizeof(*table)) : -ENOMEM;
	for (u64 i = 0; !err && i < n; i++)
		take_section(e, &table[i]);
	free(table);
	if (!err && strndx < e->n_sections)
		err = load(
			e, e->sections[strndx].offset, e->sections[strndx].size, 16u << 20, &e->names, &e->names_size);
	return err == -ENOMEM ? err : 0;
}

int elf_file__open(struct elf_file *e, int fd)
{
	struct stat st;
	Elf64_Ehdr h;
	int err;

	*e = (struct elf_file){.fd = fd};
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(h))
		return -ENOEXEC;
	e->size = (u64)st.st_size;
	err = elf_file__read(e, 0, &h, sizeof(h));
	if (err)
		return err;
	if (memcmp(h.e_ident, ELFMAG, SELFMAG))
		return -ENOEXEC;
	if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB)
		return -ENOTSUP;
	e->machine = h.e_machine;
	e->type = h.e_type;
	err = load_segments(e, &h);
	if (!err)
		err = load_sections(e, &h);
	if (err)
		elf_file__close(e);
	return err;
}

void elf_file__close(struct elf_file *e)
{
	free(e->segments);
	free(e->sections);
	free(e->names);
	*e = (struct elf_file){.fd = -1};
}

/* ---- symbols ---- */

struct symtab {
	u64 offset, count;
	u64 versions; /* file offset of .gnu.version; 0: none */
	char *strings;
	size_t strings_size;
};

static int symtab__from_sections(struct elf_file *e, enum elf_table which, struct symtab *t)
{
	u32 type = which == ELF_DYNSYM ? SHT_DYNSYM : SHT_SYMTAB;
	u32 found = 0;

	for (u32 i = 1; i < e->n_sections && !found; i++)
		if (e->sections[i].type == type && e->sections[i].link < e->n_sections)
			found = i;
	if (!found)
		return -ENOENT;
	t->offset = e->sections[found].offset;
	t->count = e->sections[found].size / sizeof(Elf64_Sym);
	for (u32 i = 1; which == ELF_DYNSYM && i < e->n_sections; i++)
		if (e->sections[i].type == SHT_GNU_versym && e->sections[i].link == found)
			t->versions = e->sections[i].offset;
	found = e->sections[found].link;
	return load(
		e, e->sections[found].offset, e->sections[found].size, ELF_MAX_STRINGS, &t->strings, &t->strings_size);
}

struct dynamic {
	u64 symtab, strtab, strsz, versym;
};

static void read_dynamic(const struct elf_file *e, const struct elf_segment *s, struct dynamic *d)
{
	Elf64_Dyn dyn;

	for (u64 i = 0; i < min(s->filesz / sizeof(dyn), (u64)4096); i++) {
		if (elf_file__read(e, s->offset + i * sizeof(dyn), &dyn, sizeof(dyn)) || dyn.d_tag == DT_NULL)
			return;
		if (dyn.d_tag == DT_SYMTAB)
			d->symtab = dyn.d_un.d_ptr;
		else if (dyn.d_tag == DT_STRTAB)
			d->strtab = dyn.d_un.d_ptr;
		else if (dyn.d_tag == DT_STRSZ)
			d->strsz = dyn.d_un.d_val;
		else if (dyn.d_tag == DT_VERSYM)
			d->versym = dyn.d_un.d_ptr;
	}
}

/* A file without a section table (sstrip): what the dynamic loader itself goes by. It has no count of symbols; every
 * linker lays the strings right after them. */
static int symtab__from_dynamic(struct elf_file *e, struct symtab *t)
{
	struct dynamic d = {0};
	u64 strings;

	for (u32 i = 0; i < e->n_segments; i++)
		if (e->segments[i].type == PT_DYNAMIC)
			read_dynamic(e, &e->segments[i], &d);
	if (!d.symtab || d.strtab <= d.symtab || elf_file__offset(e, d.symtab, &t->offset) ||
		elf_file__offset(e, d.strtab, &strings))
		return -ENOENT;
	t->count = (d.strtab - d.symtab) / sizeof(Elf64_Sym);
	if (!d.versym || elf_file__offset(e, d.versym, &t->versions))
		t->versions = 0;
	return load(e, strings, d.strsz, ELF_MAX_STRINGS, &t->strings, &t->strings_size);
}

static bool is_code(const struct elf_file *e, u64 vaddr)
{
	for (u32 i = 0; i < e->n_segments; i++) {
		const struct elf_segment *s = &e->segments[i];

		if (s->type == PT_LOAD && (s->flags & PF_X) && vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz)
			return true;
	}
	return false;
}

static bool symbol__from(
	const struct elf_file *e, const struct symtab *t, const Elf64_Sym *sym, u16 version, struct elf_symbol *out)
{
	u8 type = ELF64_ST_TYPE(sym->st_info);

	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS || !sym->st_name || sym->st_name >= t->strings_size)
		return false;
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	if (!is_code(e, sym->st_value))
		return false;
	*out = (struct elf_symbol){
		.name = t->strings + sym->st_name,
		.vaddr = sym->st_value,
		.size = sym->st_size,
		.type = type,
		.bind = ELF64_ST_BIND(sym->st_info),
		.hidden = version & 0x8000,
	};
	return true;
}

#define CHUNK 256

static int walk_symbols(struct elf_file *e, const struct symtab *t, bool dynamic, elf_symbol_fn fn, void *arg)
{
	Elf64_Sym syms[CHUNK] = {0};
	u16 versions[CHUNK];
	struct elf_symbol s;

	for (u64 at = 0; at < t->count; at += CHUNK) {
		u64 n = min((u64)CHUNK, t->count - at);

		if (elf_file__read(e, t->offset + at * sizeof(syms[0]), syms, n * sizeof(syms[0]))) {
			e->cut = true;
			return 0;
		}
		if (!t->versions || elf_file__read(e, t->versions + at * 2, versions, n * 2))
			memset(versions, 0, sizeof(versions));
		for (u64 i = 0; i < n; i++) {
			if (!symbol__from(e, t, &syms[i], versions[i], &s))
				continue;
			s.dynamic = dynamic;
			if (!fn(&s, arg))
				return 0;
		}
	}
	return 0;
}

int elf_file__each_symbol(struct elf_file *e, enum elf_table table, elf_symbol_fn fn, void *arg)
{
	struct symtab t = {0};
	int err = symtab__from_sections(e, table, &t);

	if (err == -ENOENT && table == ELF_DYNSYM)
		err = symtab__from_dynamic(e, &t);
	if (err == -ENOENT || err == -ENODATA)
		return 0;
	if (err)
		return err;
	if (t.offset > e->size || t.count > ELF_MAX_SYMBOLS || t.count > (e->size - t.offset) / sizeof(Elf64_Sym)) {
		e->cut = true;
		t.count = t.offset > e->size ? 0 : min((e->size - t.offset) / sizeof(Elf64_Sym), (u64)ELF_MAX_SYMBOLS);
	}
	err = walk_symbols(e, &t, table == ELF_DYNSYM, fn, arg);
	free(t.strings);
	return err;
}

#define RANK_TAKEN 0xff

struct search {
	const char *const *names;
	int n;
	struct elf_symbol *out;
	u8 *rank;
};

static bool match_symbol(const struct elf_symbol *s, void *arg)
{
	struct search *q = arg;
	u8 rank = 1 + 4 * !s->hidden + 2 * (s->bind != STB_LOCAL) + (s->type != STT_NOTYPE);

	for (int i = 0; i < q->n; i++) {
		bool several;

		if (q->rank[i] == RANK_TAKEN || strcmp(s->name, q->names[i]))
			continue;
		several = q->out[i].several || (s->dynamic && q->rank[i] && q->out[i].vaddr != s->vaddr);
		if (q->rank[i] < rank) {
			q->rank[i] = rank;
			q->out[i] = *s;
			q->out[i].name = q->names[i];
		}
		q->out[i].several = several;
	}
	return true;
}

int elf_file__find(struct elf_file *e, const char *const *names, int n, bool symtab, struct elf_symbol *out)
{
	struct search q = {.names = names, .n = n, .out = out, .rank = calloc((size_t)n + 1, 1)};
	int err, found = 0;

	if (!q.rank)
		return -ENOMEM;
	memset(out, 0, (size_t)n * sizeof(*out));
	err = elf_file__each_symbol(e, ELF_DYNSYM, match_symbol, &q);
	for (int i = 0; i < n; i++)
		if (q.rank[i])
			q.rank[i] = RANK_TAKEN; /* what others can bind to is not overridden by a name in .symtab */
	if (!err && symtab)
		err = elf_file__each_symbol(e, ELF_SYMTAB, match_symbol, &q);
	for (int i = 0; i < n; i++)
		found += out[i].name != NULL;
	free(q.rank);
	return err ? err : found;
}
