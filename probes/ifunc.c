// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <string.h>
#include "eh_frame.h"
#include "ifunc.h"

#define RELOCATIONS_MAX (1u << 20) /* of one table */
#define CHUNK           512
#define NAME_MAX_BYTES  256

/* A slot that the loader fills with a function's address. */
static bool fills_slot(u16 machine, u64 info)
{
	u64 type = ELF64_R_TYPE(info);

	if (machine == EM_X86_64)
		return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_64;
	return machine == EM_AARCH64 &&
	       (type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT || type == R_AARCH64_ABS64);
}

static bool symbol_is(const struct elf_file *e, const struct elf_section *symbols, u64 index, const char *name)
{
	const struct elf_section *strings = symbols->link < e->n_sections ? &e->sections[symbols->link] : NULL;
	char text[NAME_MAX_BYTES];
	size_t len = strlen(name) + 1;
	Elf64_Sym s;

	if (!strings || len > sizeof(text) || index >= symbols->size / sizeof(s) ||
		elf_file__read(e, symbols->offset + index * sizeof(s), &s, sizeof(s)) || s.st_name >= strings->size ||
		len > strings->size - s.st_name)
		return false;
	return !elf_file__read(e, strings->offset + s.st_name, text, len) && !memcmp(text, name, len);
}

/* Address that the slot holds; 0: not bound yet (it leads back into the caller's own file), or not to be read. */
static u64 slot_value(struct objects *o, const struct object *caller, u64 addr)
{
	const struct map *m;
	u64 value;

	if (!objects__peek(o, addr, &value, sizeof(value)))
		return 0;
	m = maps__find(&o->maps, value);
	if (!m || !(m->prot & PROT_EXEC) || (m->dev == caller->dev && m->ino == caller->ino))
		return 0;
	return value;
}

static u64 search_table(
	struct objects *o, const struct object *caller, const struct elf_section *table, const char *name)
{
	const struct elf_file *e = &caller->elf;
	const struct elf_section *symbols = table->link < e->n_sections ? &e->sections[table->link] : NULL;
	u64 n = min(table->size / sizeof(Elf64_Rela), (u64)RELOCATIONS_MAX), bias, value;
	Elf64_Rela r[CHUNK];

	if (!symbols || symbols->type != SHT_DYNSYM || !object__bias(o, caller, &bias))
		return 0;
	for (u64 at = 0; at < n; at += CHUNK) {
		u64 k = min(n - at, (u64)CHUNK);

		if (elf_file__read(e, table->offset + at * sizeof(r[0]), r, k * sizeof(r[0])))
			return 0;
		for (u64 i = 0; i < k; i++) {
			if (!fills_slot(e->machine, r[i].r_info) ||
				!symbol_is(e, symbols, ELF64_R_SYM(r[i].r_info), name))
				continue;
			value = slot_value(o, caller, bias + r[i].r_offset);
			if (value)
				return value;
		}
	}
	return 0;
}

static int find_bound(struct objects *o, const struct object *obj, const char *name, struct elf_symbol *sym)
{
	for (int i = 0; i < o->n; i++) {
		struct object *caller = &o->v[i], *there;
		u64 value = 0, vaddr = 0;

		if (caller == obj || object__open(o, caller))
			continue;
		for (u32 s = 0; s < caller->elf.n_sections && !value; s++)
			if (caller->elf.sections[s].type == SHT_RELA)
				value = search_table(o, caller, &caller->elf.sections[s], name);
		there = value ? objects__code_at(o, value, &vaddr) : NULL;
		/* another definition of the name would be somebody else's function */
		if (there != obj)
			continue;
		sym->vaddr = vaddr;
		sym->type = STT_FUNC;
		if (eh_frame__function(&there->elf, vaddr, &sym->size))
			sym->size = 0;
		return 0;
	}
	return -ENOENT;
}

int ifunc__resolve(struct objects *o, const struct object *obj, const char *name, struct elf_symbol *sym)
{
	int err = sym->type == STT_GNU_IFUNC || sym->several ? find_bound(o, obj, name, sym) : 0;

	return sym->type == STT_GNU_IFUNC ? err : 0; /* the default version is as good a guess as any */
}
