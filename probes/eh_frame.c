// SPDX-License-Identifier: GPL-2.0-only
/*
 * .eh_frame_hdr is a sorted table of (function, its frame description), both relative to the table's own address, as
 * ld and lld write it (Linux Standard Base, "Exception Frames"); other encodings are not read.
 */
#include <errno.h>
#include <string.h>
#include "eh_frame.h"

#define DW_EH_PE_udata4         0x03
#define DW_EH_PE_pcrel_sdata4   0x1b
#define DW_EH_PE_datarel_sdata4 0x3b

struct hdr {
	u8 version, eh_frame_enc, count_enc, table_enc;
	s32 eh_frame;
	u32 count;
};
_Static_assert(sizeof(struct hdr) == 12, "as in the file");

struct table {
	const struct elf_file *e;
	u64 vaddr; /* of the header */
	u32 count;
};

static int find_table(const struct elf_file *e, struct table *t)
{
	for (u32 i = 0; i < e->n_segments; i++) {
		const struct elf_segment *s = &e->segments[i];
		struct hdr h;

		if (s->type != PT_GNU_EH_FRAME || elf_file__read_vaddr(e, s->vaddr, &h, sizeof(h)) != sizeof(h))
			continue;
		if (h.version != 1 || h.eh_frame_enc != DW_EH_PE_pcrel_sdata4 || h.count_enc != DW_EH_PE_udata4 ||
			h.table_enc != DW_EH_PE_datarel_sdata4)
			continue;
		*t = (struct table){.e = e, .vaddr = s->vaddr, .count = h.count};
		return 0;
	}
	return -ENODATA;
}

/* address of the description of the function that is the last to begin at vaddr or before; 0: there is none */
static u64 find_description(const struct table *t, u64 vaddr, u64 *begin)
{
	u32 lo = 0, hi = t->count;
	u64 found = 0;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;
		s32 entry[2];
		u64 at;

		if (elf_file__read_vaddr(t->e, t->vaddr + sizeof(struct hdr) + 8ULL * mid, entry, 8) != 8)
			return 0;
		at = t->vaddr + (u64)(s64)entry[0];
		if (at > vaddr) {
			hi = mid;
			continue;
		}
		*begin = at;
		found = t->vaddr + (u64)(s64)entry[1];
		lo = mid + 1;
	}
	return found;
}

int eh_frame__around(const struct elf_file *e, u64 vaddr, u64 *begin, u64 *size)
{
	struct {
		u32 length, cie;
		s32 begin;
		u32 range;
	} fde;
	struct table t;
	int err = find_table(e, &t);
	u64 at = err ? 0 : find_description(&t, vaddr, begin);

	if (err)
		return err;
	if (!at || elf_file__read_vaddr(e, at, &fde, sizeof(fde)) != sizeof(fde))
		return -ENOENT;
	/* the encoding stands elsewhere; that the function is where it should be says that it is the usual one */
	if (!fde.cie || fde.length < 12 || fde.length >= 0xfffffff0 || at + 8 + (u64)(s64)fde.begin != *begin ||
		!fde.range)
		return -ENODATA;
	*size = fde.range;
	return vaddr - *begin < *size ? 0 : -ENOENT;
}

int eh_frame__function(const struct elf_file *e, u64 vaddr, u64 *size)
{
	u64 begin;

	return eh_frame__around(e, vaddr, &begin, size) ?: begin == vaddr ? 0 : -ENOENT;
}
