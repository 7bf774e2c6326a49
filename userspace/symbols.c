// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>

#include "symbols.h"

/* A symbol without a size, as of hand-written assembler: it reaches to the next one, or to its section's end. */
struct label {
	u64 start, section_end;
	const char *name;
};

struct search {
	const u64 *addrs;
	u32 n;
	struct symbol_hit *hits;
	u64 *below; /* per address: the end of the last sized symbol that ends at or before it */
	struct label *labels;
	u32 n_labels, cap_labels;
};

u32 addrs__first(const u64 *addrs, u32 from, u32 to, u64 addr)
{
	while (from < to) {
		u32 mid = from + (to - from) / 2;

		if (addrs[mid] < addr)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

/* of two names for one place: the one that others see */
static u32 rank_of(const GElf_Sym *sym)
{
	switch (GELF_ST_BIND(sym->st_info)) {
	case STB_GLOBAL:
	case STB_GNU_UNIQUE:
		return 3;
	case STB_WEAK:
		return 2;
	default:
		return 1;
	}
}

/* the innermost; of those that begin together the shortest, then the highest rank, then the first */
static bool better(const struct symbol_hit *new, const struct symbol_hit *old)
{
	if (!old->name || new->start != old->start)
		return !old->name || new->start > old->start;
	return new->rank != old->rank ? new->rank > old->rank : new->end < old->end;
}

static void add_sized(struct search *s, const struct symbol_hit *hit)
{
	u32 i = addrs__first(s->addrs, 0, s->n, hit->start);

	for (; i < s->n && s->addrs[i] < hit->end; i++)
		if (better(hit, &s->hits[i]))
			s->hits[i] = *hit;
	if (i < s->n)
		s->below[i] = max(s->below[i], hit->end);
}

static int add_label(struct search *s, const struct label *label)
{
	if (s->n_labels == s->cap_labels) {
		u32 cap = s->cap_labels ? 2 * s->cap_labels : 256;
		struct label *bigger = realloc(s->labels, cap * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		s->labels = bigger;
		s->cap_labels = cap;
	}
	s->labels[s->n_labels++] = *label;
	return 0;
}

static u64 section_end(Elf *elf, GElf_Word shndx, u64 bias)
{
	Elf_Scn *scn = elf && shndx != SHN_ABS ? elf_getscn(elf, shndx) : NULL;
	GElf_Shdr shdr;

	return gelf_getshdr(scn, &shdr) && shdr.sh_flags & SHF_ALLOC ? shdr.sh_addr + shdr.sh_size + bias : 0;
}

static int take(struct search *s, Dwfl_Module *mod, int i)
{
	GElf_Addr start, bias = 0;
	GElf_Word shndx;
	GElf_Sym sym;
	Elf *elf = NULL;
	const char *name = dwfl_module_getsym_info(mod, i, &sym, &start, &shndx, &elf, &bias);

	if (!name || !*name || shndx == SHN_UNDEF)
		return 0;
	switch (GELF_ST_TYPE(sym.st_info)) {
	case STT_SECTION:
	case STT_FILE:
	case STT_TLS:
		return 0;
	}
	if (!sym.st_size) {
		struct label l = {.start = start, .section_end = section_end(elf, shndx, bias), .name = name};

		return start <= s->addrs[s->n - 1] && l.section_end > s->addrs[0] ? add_label(s, &l) : 0;
	}
	if (start + sym.st_size > start)
		add_sized(s, &(struct symbol_hit){
				     .start = start, .end = start + sym.st_size, .name = name, .rank = rank_of(&sym)});
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct label *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Each address without a symbol: the last label at or before it, if no sized symbol ended in between. */
static void use_labels(struct search *s)
{
	u64 below = 0;
	u32 next = 0;

	if (s->n_labels)
		qsort(s->labels, s->n_labels, sizeof(*s->labels), by_start);
	for (u32 i = 0; i < s->n; i++) {
		const struct label *l;

		below = max(below, s->below[i]);
		while (next < s->n_labels && s->labels[next].start <= s->addrs[i])
			next++;
		l = next ? &s->labels[next - 1] : NULL;
		if (s->hits[i].name || !l || l->start < below || l->section_end <= s->addrs[i])
			continue;
		s->hits[i] = (struct symbol_hit){.start = l->start, .end = s->addrs[i] + 1, .name = l->name};
	}
}

int symbols__find(Dwfl_Module *mod, const u64 *addrs, u32 n, struct symbol_hit *hits)
{
	struct search s = {.addrs = addrs, .n = n, .hits = hits, .below = calloc(n ?: 1, sizeof(u64))};
	int all = n ? dwfl_module_getsymtab(mod) : 0, err = s.below ? 0 : -ENOMEM;

	for (u32 i = 0; i < n; i++)
		hits[i] = (struct symbol_hit){};
	for (int i = 0; i < all && !err; i++)
		err = take(&s, mod, i);
	if (!err)
		use_labels(&s);
	free(s.labels);
	free(s.below);
	return err;
}
