// SPDX-License-Identifier: GPL-2.0-only
/* Microsoft's "PE Format", as far as it is needed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "pe_file.h"

#define DOS_HEADER     64u
#define DOS_NEW_HEADER 60u /* where the PE header's offset stands */
#define COFF_HEADER    24u /* with the signature before it */
#define SECTION_HEADER 40u
#define OPTIONAL_MAX   240u
#define MAGIC_32       0x10bu
#define MAGIC_64       0x20bu
#define DIR_EXPORT     0u
#define DIR_EXCEPTION  3u
#define SECTION_CODE   0x20000020u /* contains code, may be executed */
#define EXPORT_DIR     40u
#define UNWIND_CHAINED 4u /* UNW_FLAG_CHAININFO: part of another function, whose range follows */
#define CHAIN_MAX      32

static u16 get16(const u8 *p)
{
	return (u16)(p[0] | p[1] << 8);
}

static u32 get32(const u8 *p)
{
	return get16(p) | (u32)get16(p + 2) << 16;
}

/* Exactly n bytes at a file offset: 0, or -ENODATA where they are not all there. */
static int read_at(const struct pe_file *pe, u64 offset, void *buf, size_t n)
{
	char *p = buf;

	if (offset > pe->size || n > pe->size - offset)
		return -ENODATA;
	while (n) {
		ssize_t got = pread(pe->fd, p, n, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -ENODATA;
		p += got;
		offset += (u64)got;
		n -= (size_t)got;
	}
	return 0;
}

static const struct pe_section *section_of(const struct pe_file *pe, u32 rva)
{
	for (u32 i = 0; i < pe->n_sections; i++)
		if (rva >= pe->sections[i].rva && rva - pe->sections[i].rva < pe->sections[i].size)
			return &pe->sections[i];
	return NULL;
}

/* how many bytes of the file there are from an RVA on, up to the end of its section; *offset: where */
static u32 bytes_from(const struct pe_file *pe, u32 rva, u64 *offset)
{
	const struct pe_section *s = section_of(pe, rva);
	u32 into = s ? rva - s->rva : 0;

	if (!s || into >= s->filesz)
		return 0;
	*offset = (u64)s->offset + into;
	return s->filesz - into;
}

/* n elements of `size` bytes at an RVA, as many as there are; malloc'ed. NULL: none. */
static u8 *load(struct pe_file *pe, u32 rva, u32 *n, u32 size)
{
	u64 offset = 0;
	u32 there = bytes_from(pe, rva, &offset) / size;
	u8 *buf;

	pe->cut |= there < *n;
	*n = min(*n, there);
	buf = *n ? malloc((size_t)*n * size) : NULL;
	if (buf && read_at(pe, offset, buf, (size_t)*n * size)) {
		free(buf);
		buf = NULL;
		pe->cut = true;
	}
	*n = buf ? *n : 0;
	return buf;
}

/* ---- headers ---- */

static int load_sections(struct pe_file *pe, u64 offset, u32 n)
{
	u8 h[SECTION_HEADER];

	pe->cut |= n > PE_MAX_SECTIONS;
	for (u32 i = 0; i < min(n, PE_MAX_SECTIONS); i++) {
		struct pe_section *s = &pe->sections[pe->n_sections];
		u64 room;

		if (read_at(pe, offset + (u64)i * SECTION_HEADER, h, sizeof(h))) {
			pe->cut = true;
			break;
		}
		*s = (struct pe_section){.size = get32(h + 8), .rva = get32(h + 12), .offset = get32(h + 20)};
		s->code = get32(h + 36) & SECTION_CODE;
		s->size = s->size ? s->size : get32(h + 16);
		room = s->offset < pe->size ? pe->size - s->offset : 0;
		s->filesz = min(get32(h + 16), s->size);
		s->filesz = (u32)min((u64)s->filesz, room);
		if (s->rva < pe->image_size && s->size <= pe->image_size - s->rva)
			pe->n_sections++;
		else
			pe->cut = true;
	}
	return 0;
}

struct directory {
	u32 rva, size;
};

/* Header and sections; the two directories, zero where there are none. */
static int load_headers(struct pe_file *pe, struct directory *exports, struct directory *exceptions)
{
	u8 dos[DOS_HEADER], coff[COFF_HEADER], opt[OPTIONAL_MAX] = {};
	u32 at, size, dirs, n;

	if (read_at(pe, 0, dos, sizeof(dos)) || dos[0] != 'M' || dos[1] != 'Z')
		return -ENOEXEC;
	at = get32(dos + DOS_NEW_HEADER);
	if (read_at(pe, at, coff, sizeof(coff)) || memcmp(coff, "PE\0", 4))
		return -ENOEXEC;
	size = min((u32)get16(coff + 20), OPTIONAL_MAX);
	if (size < 96 || read_at(pe, (u64)at + COFF_HEADER, opt, size))
		return -ENOEXEC;
	if (get16(opt) != MAGIC_64 && get16(opt) != MAGIC_32)
		return -ENOEXEC;
	dirs = get16(opt) == MAGIC_64 ? 112 : 96;
	pe->base = dirs == 112 ? get32(opt + 24) | (u64)get32(opt + 28) << 32 : get32(opt + 28);
	pe->image_size = get32(opt + 56);
	n = get32(opt + dirs - 4);
	if (n > DIR_EXPORT && dirs + 8 <= size)
		*exports = (struct directory){get32(opt + dirs), get32(opt + dirs + 4)};
	if (dirs == 112 && n > DIR_EXCEPTION && dirs + DIR_EXCEPTION * 8 + 8 <= size)
		*exceptions = (struct directory){
			get32(opt + dirs + DIR_EXCEPTION * 8), get32(opt + dirs + DIR_EXCEPTION * 8 + 4)};
	return load_sections(pe, (u64)at + COFF_HEADER + get16(coff + 20), get16(coff + 6));
}

/* ---- tables ---- */

static int by_rva(const void *a, const void *b)
{
	const struct pe_export *x = a, *y = b;

	if (x->rva != y->rva)
		return x->rva < y->rva ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* Names of functions; not those that stand for another module's, which point back into the directory, nor of data. */
static int take_exports(struct pe_file *pe, struct directory dir, const u8 *functions, u32 n_functions, const u8 *names,
	const u8 *ordinals, u32 n)
{
	pe->exports = calloc(n ? n : 1, sizeof(*pe->exports));
	if (!pe->exports)
		return -ENOMEM;
	for (u32 i = 0; i < n; i++) {
		u32 ordinal = get16(ordinals + i * 2), rva;
		const struct pe_section *s;

		if (ordinal >= n_functions)
			continue;
		rva = get32(functions + ordinal * 4);
		s = section_of(pe, rva);
		if (s && s->code && (rva < dir.rva || rva - dir.rva >= dir.size))
			pe->exports[pe->n_exports++] = (struct pe_export){rva, get32(names + i * 4)};
	}
	qsort(pe->exports, pe->n_exports, sizeof(*pe->exports), by_rva);
	return 0;
}

static int load_exports(struct pe_file *pe, struct directory dir)
{
	u32 one = 1, n_functions, n_names, n_ordinals;
	u8 *head = dir.size ? load(pe, dir.rva, &one, EXPORT_DIR) : NULL;
	u8 *functions = NULL, *names = NULL, *ordinals = NULL;
	int err = 0;

	if (!head)
		return 0;
	pe->cut |= get32(head + 20) > PE_MAX_EXPORTS || get32(head + 24) > PE_MAX_EXPORTS;
	n_functions = min(get32(head + 20), PE_MAX_EXPORTS);
	n_names = n_ordinals = min(get32(head + 24), PE_MAX_EXPORTS);
	functions = load(pe, get32(head + 28), &n_functions, 4);
	names = load(pe, get32(head + 32), &n_names, 4);
	ordinals = load(pe, get32(head + 36), &n_ordinals, 2);
	if (functions && names && ordinals)
		err = take_exports(pe, dir, functions, n_functions, names, ordinals, min(n_names, n_ordinals));
	free(head);
	free(functions);
	free(names);
	free(ordinals);
	return err;
}

static int by_begin(const void *a, const void *b)
{
	const struct pe_range *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static struct pe_range range_from(const u8 *p)
{
	return (struct pe_range){get32(p), get32(p + 4), get32(p + 8)};
}

static int load_ranges(struct pe_file *pe, struct directory dir)
{
	u32 n = min(dir.size / (u32)sizeof(struct pe_range), PE_MAX_FUNCTIONS);
	u8 *table = n ? load(pe, dir.rva, &n, sizeof(struct pe_range)) : NULL;

	if (!table)
		return 0;
	pe->ranges = calloc(n, sizeof(*pe->ranges));
	for (u32 i = 0; pe->ranges && i < n; i++) {
		struct pe_range r = range_from(table + i * sizeof(r));
		const struct pe_section *s = section_of(pe, r.begin);

		if (s && s->code && r.end > r.begin && r.end - s->rva <= s->size)
			pe->ranges[pe->n_ranges++] = r;
	}
	free(table);
	if (!pe->ranges)
		return -ENOMEM;
	qsort(pe->ranges, pe->n_ranges, sizeof(*pe->ranges), by_begin);
	return 0;
}

int pe_file__open(struct pe_file *pe, int fd)
{
	struct directory exports = {}, exceptions = {};
	struct stat st;
	int err;

	*pe = (struct pe_file){.fd = fd};
	if (fstat(fd, &st))
		return -errno;
	pe->size = st.st_size > 0 ? (u64)st.st_size : 0;
	err = load_headers(pe, &exports, &exceptions);
	if (!err)
		err = load_exports(pe, exports);
	if (!err)
		err = load_ranges(pe, exceptions);
	if (err)
		pe_file__close(pe);
	return err;
}

void pe_file__close(struct pe_file *pe)
{
	free(pe->exports);
	free(pe->ranges);
	*pe = (struct pe_file){.fd = -1};
}

/* ---- which function ---- */

/* how many exports begin at or before an RVA */
static u32 exports_to(const struct pe_file *pe, u32 rva)
{
	u32 lo = 0, hi = pe->n_exports;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (pe->exports[mid].rva <= rva)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static u32 ranges_to(const struct pe_file *pe, u32 rva)
{
	u32 lo = 0, hi = pe->n_ranges;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (pe->ranges[mid].begin <= rva)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void read_name(const struct pe_file *pe, const struct pe_export *e, char *name)
{
	u64 offset = 0;
	u32 n = min(bytes_from(pe, e->name, &offset), PE_MAX_NAME - 1);

	if (!n || read_at(pe, offset, name, n))
		n = 0;
	name[n] = 0;
}

/* Where the function begins whose part this is. */
static u32 entry_of(const struct pe_file *pe, struct pe_range r)
{
	u8 head[4], chained[sizeof(struct pe_range)];

	for (int i = 0; i < CHAIN_MAX; i++) {
		u64 offset = 0;
		u32 there = bytes_from(pe, r.unwind, &offset), codes;

		if (there < sizeof(head) || read_at(pe, offset, head, sizeof(head)) || !(head[0] >> 3 & UNWIND_CHAINED))
			break;
		codes = (head[2] + 1u) / 2 * 4; /* of two bytes each, an even number of them */
		if (there < sizeof(head) + codes + sizeof(chained) ||
			read_at(pe, offset + sizeof(head) + codes, chained, sizeof(chained)))
			break;
		r = range_from(chained);
	}
	return r.begin;
}

/* Code that no range tells of: a function that calls none, or one of a 32-bit file. */
static void between(const struct pe_file *pe, const struct pe_section *s, u32 rva, struct pe_function *out)
{
	u32 e = exports_to(pe, rva), r = ranges_to(pe, rva);

	out->start = s->rva;
	out->end = s->rva + s->size;
	if (r)
		out->start = max(out->start, pe->ranges[r - 1].end);
	if (r < pe->n_ranges)
		out->end = min(out->end, pe->ranges[r].begin);
	if (e < pe->n_exports)
		out->end = min(out->end, pe->exports[e].rva);
	if (e && pe->exports[e - 1].rva >= out->start) {
		out->start = pe->exports[e - 1].rva;
		read_name(pe, &pe->exports[e - 1], out->name);
	}
	out->entry = out->start;
}

int pe_file__function(const struct pe_file *pe, u32 rva, struct pe_function *out)
{
	const struct pe_section *s = section_of(pe, rva);
	u32 r = ranges_to(pe, rva), e;

	*out = (struct pe_function){};
	if (!s || !s->code)
		return -ENOENT;
	if (!r || rva >= pe->ranges[r - 1].end) {
		between(pe, s, rva, out);
		return 0;
	}
	out->start = pe->ranges[r - 1].begin;
	out->end = pe->ranges[r - 1].end;
	out->entry = entry_of(pe, pe->ranges[r - 1]);
	e = exports_to(pe, out->entry);
	if (e && pe->exports[e - 1].rva == out->entry)
		read_name(pe, &pe->exports[e - 1], out->name);
	return 0;
}
