/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A Windows DLL, byte by byte: code at RVA 0x1000, which the file has at 0x400, and its tables at RVA 0x2000.
 *
 * 0x1000 draw (exported), 0x1100 no name, 0x1200 a part of draw that lies apart, 0x1300 leaf (exported; no range),
 * 0x1380 draw_again (exported, no range); "elsewhere" is another module's, "data" is none.
 */
#ifndef REDFRAME_PE_FIXTURE_H
#define REDFRAME_PE_FIXTURE_H

#include <string.h>

#include "common.h"

#define PE_BYTES  0x1000u
#define PE_CODE   0x400u /* in the file */
#define PE_TABLES 0x800u
#define PE_NAMES  0x2080u /* RVA */

static inline void put16(u8 *p, u32 v)
{
	p[0] = (u8)v;
	p[1] = (u8)(v >> 8);
}

static inline void put32(u8 *p, u32 v)
{
	put16(p, v & 0xffff);
	put16(p + 2, v >> 16);
}

static inline void put_section(u8 *p, u32 rva, u32 size, u32 offset, u32 filesz, u32 flags)
{
	put32(p + 8, size);
	put32(p + 12, rva);
	put32(p + 16, filesz);
	put32(p + 20, offset);
	put32(p + 36, flags);
}

static inline u8 *put_headers(u8 *f)
{
	u8 *pe = f + 0x80, *opt = pe + 24;

	memcpy(f, "MZ", 2);
	put32(f + 60, 0x80);
	memcpy(pe, "PE\0", 4);
	put16(pe + 4, 0x8664);
	put16(pe + 6, 3);
	put16(pe + 20, 240);
	put16(opt, 0x20b);
	put32(opt + 24, 0x80000000u); /* linked to 0x180000000 */
	put32(opt + 28, 1);
	put32(opt + 56, 0x4000);
	put32(opt + 108, 16);
	put32(opt + 112, 0x2000); /* exports */
	put32(opt + 116, 0x200);
	put32(opt + 112 + 24, 0x2200); /* exceptions */
	put32(opt + 112 + 28, 3 * 12);
	put_section(opt + 240, 0x1000, 0x400, PE_CODE, 0x400, 0x60000020);
	put_section(opt + 280, 0x2000, 0x800, PE_TABLES, 0x800, 0x40000040);
	put_section(opt + 320, 0x3000, 0x1000, 0, 0, 0xc0000080); /* only in memory */
	return opt;
}

static inline void put_export(u8 *tables, u32 i, u32 ordinal, u32 rva, const char *name)
{
	u32 at = 0x80 + i * 0x20;

	put32(tables + 0x28 + ordinal * 4, rva);
	put32(tables + 0x40 + i * 4, 0x2000 + at);
	put16(tables + 0x58 + i * 2, ordinal);
	strcpy((char *)tables + at, name);
}

static inline void put_range(u8 *tables, u32 i, u32 begin, u32 end, u32 unwind)
{
	put32(tables + 0x200 + i * 12, begin);
	put32(tables + 0x200 + i * 12 + 4, end);
	put32(tables + 0x200 + i * 12 + 8, unwind);
}

static inline void put_tables(u8 *t)
{
	put32(t + 20, 5); /* functions, names, and where their tables are */
	put32(t + 24, 5);
	put32(t + 28, 0x2028);
	put32(t + 32, 0x2040);
	put32(t + 36, 0x2058);
	put_export(t, 0, 4, 0x3000, "data");
	put_export(t, 1, 0, 0x1000, "draw");
	put_export(t, 2, 2, 0x1380, "draw_again");
	put_export(t, 3, 3, 0x2100, "elsewhere");
	put_export(t, 4, 1, 0x1300, "leaf");
	put_range(t, 0, 0x1100, 0x1180, 0x2300);
	put_range(t, 1, 0x1000, 0x1100, 0x2310);
	put_range(t, 2, 0x1200, 0x1280, 0x2320);
	t[0x300] = t[0x310] = 1;
	t[0x320] = 1 | 4 << 3; /* chained, after one code and the one that makes them even */
	t[0x322] = 1;
	put32(t + 0x328, 0x1000);
	put32(t + 0x32c, 0x1100);
	put32(t + 0x330, 0x2310);
}

static inline void pe__make(u8 f[PE_BYTES])
{
	memset(f, 0, PE_BYTES);
	put_headers(f);
	put_tables(f + PE_TABLES);
}

#endif
