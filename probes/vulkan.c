// SPDX-License-Identifier: GPL-2.0-only
/*
 * The search for the loader's dispatch tables. The game's memory is hostile: the loader's mark may stand anywhere (on
 * the stack, in tables of devices that are gone), so a table counts only if what follows its mark looks like one, and
 * its pointer only if it leads into code of a mapped file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "eh_frame.h"
#include "strings.h"
#include "vulkan.h"

#define DEVICE_MAGIC 0x10ADED040410ADEDULL /* vk_loader_platform.h: DEVICE_DISP_TABLE_MAGIC_NUMBER */
#define PRESENT      "vkQueuePresentKHR"

/* Behind the mark stand the functions of Vulkan 1.0, which every device has: vkGetDeviceProcAddr, vkDestroyDevice, … */
#define CORE_FUNCTIONS 64
#define BLOCK_BYTES    (1u << 20)
#define PAGE           4096u
#define PAGEMAP_PAGES  (BLOCK_BYTES / PAGE)
#define PAGE_PRESENT   (1ULL << 63)

struct found {
	struct object *obj;
	u64 vaddr;
};

struct search {
	struct objects *o;
	u64 slot;
	int pagemap; /* -1: not to be had */
	u8 *block;
	struct vulkan_scan scan;
	u64 deadline;
	struct found v[VULKAN_FUNCTIONS];
	int n;
	u32 elsewhere; /* tables whose function is in no mapped file */
	u32 without;   /* tables of devices that cannot present */
	bool more;     /* than VULKAN_FUNCTIONS */
};

static u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * NSEC_PER_SEC + (u64)t.tv_nsec;
}

static size_t peek(u32 tgid, u64 addr, void *buf, size_t n)
{
	struct iovec local = {buf, n}, remote = {(void *)(uintptr_t)addr, n};
	ssize_t got = process_vm_readv((pid_t)tgid, &local, 1, &remote, 1, 0);

	return got > 0 ? (size_t)got : 0;
}

/* ---- one table ---- */

static bool is_code(const struct search *s, u64 addr)
{
	const struct map *m = maps__find(&s->o->maps, addr);

	return m && m->prot & PROT_EXEC;
}

static bool looks_like_a_table(const struct search *s, const u64 *table)
{
	for (int i = 1; i <= CORE_FUNCTIONS; i++)
		if (!is_code(s, table[i]))
			return false;
	return true;
}

static void note_function(struct search *s, u64 addr)
{
	u64 vaddr;
	struct object *obj = objects__code_at(s->o, addr, &vaddr);

	if (!obj) {
		s->elsewhere++;
		return;
	}
	s->scan.tables++;
	for (int i = 0; i < s->n; i++)
		if (s->v[i].obj == obj && s->v[i].vaddr == vaddr)
			return;
	if (s->n == VULKAN_FUNCTIONS)
		s->more = true;
	else
		s->v[s->n++] = (struct found){obj, vaddr};
}

static void look_at_table(struct search *s, u64 addr)
{
	u64 table[CORE_FUNCTIONS + 1], present;

	if (addr > UINT64_MAX - s->slot || peek(s->o->tgid, addr, table, sizeof(table)) != sizeof(table) ||
		table[0] != DEVICE_MAGIC || !looks_like_a_table(s, table) ||
		peek(s->o->tgid, addr + s->slot, &present, sizeof(present)) != sizeof(present))
		return;
	if (present)
		note_function(s, present);
	else
		s->without++; /* a device for computing has no VK_KHR_swapchain */
}

/* ---- all of the game's memory that may hold one ---- */

static bool exhausted(struct search *s)
{
	s->scan.cut |= s->scan.bytes >= VULKAN_SCAN_BYTES || now_ns() > s->deadline;
	return s->scan.cut;
}

static void scan_run(struct search *s, u64 start, u64 end)
{
	size_t n = peek(s->o->tgid, start, s->block, (size_t)(end - start));
	const u64 *words = (const u64 *)(void *)s->block;

	s->scan.bytes += n;
	for (size_t i = 0; i < n / 8; i++)
		if (words[i] == DEVICE_MAGIC)
			look_at_table(s, start + 8 * i);
}

/* One block, of which only pages are read that the game has touched: reading others would give it pages that it never
 * asked for, and bring back what was swapped out. */
static void scan_block(struct search *s, u64 start, u64 end)
{
	u64 flags[PAGEMAP_PAGES], run = start;
	size_t pages = (size_t)((end - start) / PAGE);

	if (s->pagemap < 0 || pread(s->pagemap, flags, pages * 8, (off_t)(start / PAGE * 8)) != (ssize_t)(pages * 8)) {
		scan_run(s, start, end);
		return;
	}
	for (size_t i = 0; i < pages; i++) {
		u64 page = start + i * PAGE;

		if (flags[i] & PAGE_PRESENT)
			continue;
		if (run < page)
			scan_run(s, run, page);
		run = page + PAGE;
	}
	if (run < end)
		scan_run(s, run, end);
}

/* Heap first, then from small to large: tables come from malloc, and the large ones are the game's own data. */
static int by_likelihood(const void *a, const void *b)
{
	const struct map *x = *(const struct map *const *)a, *y = *(const struct map *const *)b;
	bool hx = !strcmp(x->path, "[heap]"), hy = !strcmp(y->path, "[heap]");

	if (hx != hy)
		return hx ? -1 : 1;
	if (x->end - x->start != y->end - y->start)
		return x->end - x->start < y->end - y->start ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static bool may_hold_tables(const struct map *m)
{
	u32 rw = PROT_READ | PROT_WRITE;

	return !m->shared && (m->prot & rw) == rw && strncmp(m->path, "/dev/", 5) != 0 && m->start % PAGE == 0 &&
	       m->end % PAGE == 0;
}

static int scan_memory(struct search *s)
{
	const struct maps *maps = &s->o->maps;
	const struct map **order = calloc((size_t)max(maps->n, 1), sizeof(const struct map *));
	int n = 0;

	if (!order)
		return -ENOMEM;
	for (int i = 0; i < maps->n; i++)
		if (may_hold_tables(&maps->v[i]))
			order[n++] = &maps->v[i];
	qsort(order, (size_t)n, sizeof(const struct map *), by_likelihood);
	for (int i = 0; i < n; i++)
		for (u64 at = order[i]->start; at < order[i]->end && !exhausted(s); at += BLOCK_BYTES)
			scan_block(s, at, min(at + BLOCK_BYTES, order[i]->end));
	free(order);
	return 0;
}

static int search(struct search *s)
{
	char path[64];
	u64 begin = now_ns();
	int err;

	s->deadline = begin + VULKAN_SCAN_MS * NSEC_PER_MSEC;
	s->block = malloc(BLOCK_BYTES);
	if (!s->block)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%u/pagemap", s->o->tgid);
	s->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	err = scan_memory(s);
	if (s->pagemap >= 0)
		close(s->pagemap);
	free(s->block);
	s->scan.ns = now_ns() - begin;
	return err;
}

/* ---- sites ---- */

static struct object *loader(struct objects *o)
{
	for (int i = 0; i < o->n; i++)
		if (object__is(&o->v[i], VULKAN_LOADER) && !object__open(o, &o->v[i]))
			return &o->v[i];
	return NULL;
}

static int slot_of_loader(struct objects *o, u64 *slot)
{
	static const char *const name[] = {PRESENT};
	struct object *obj = loader(o);
	struct elf_symbol sym;
	u8 code[2048];
	size_t n;

	if (!obj || elf_file__find(&obj->elf, name, 1, false, &sym) <= 0)
		return -ENOENT;
	if (obj->elf.machine != EM_X86_64)
		return -ENOTSUP;
	n = elf_file__read_vaddr(&obj->elf, sym.vaddr, code, sym.size ? min(sizeof(code), (size_t)sym.size) : 512);
	return vulkan__slot(code, n, slot);
}

static int add_site(struct site_list *l, struct search *s, const struct found *k)
{
	struct use use = {.what = PROBE_FRAME, .sub = FRAME_MARK, .args = {-1, 1, -1}, .follow = VULKAN_SWAPCHAIN};
	struct function f = {.obj = k->obj, .sym = {.vaddr = k->vaddr, .type = STT_FUNC}, .scheme = "vulkan"};
	char base[64];
	bool stepped;

	utf8__sanitize(base, sizeof(base), k->obj->base, strlen(k->obj->base));
	f.lib = base;
	if (eh_frame__function(&k->obj->elf, k->vaddr, &f.sym.size))
		f.sym.size = 0;
	return sites__add_function(l, s->o, &f, &use, true, &stepped);
}

static void tell(const struct search *s, char *why, size_t why_size)
{
	if (s->scan.cut)
		why__add(why, why_size,
			"the search for Vulkan devices ended after %llu MiB of the game's memory, in %llu ms",
			s->scan.bytes / (1ULL << 20), s->scan.ns / NSEC_PER_MSEC);
	if (s->elsewhere)
		why__add(why, why_size, "%u Vulkan device%s through code that is in no file", s->elsewhere,
			s->elsewhere == 1 ? " presents" : "s present");
	if (s->more)
		why__add(why, why_size, "more than %d Vulkan present functions: the others are left out",
			VULKAN_FUNCTIONS);
	if (s->n || s->elsewhere)
		return;
	why__add(why, why_size, "%s",
		s->without ? "its Vulkan devices cannot present (made without VK_KHR_swapchain)"
			   : "it has no Vulkan device (yet)");
}

int vulkan__sites(struct site_list *l, struct objects *o, struct vulkan_scan *scan, char *why, size_t why_size)
{
	struct search s = {.o = o};
	int err = slot_of_loader(o, &s.slot), added = 0;

	if (err) {
		why__add(why, why_size, "how libvulkan's " PRESENT " finds the driver's cannot be read: %s",
			err == -ENOTSUP ? "not known on this machine" : "its code is of no known form");
		return err == -ENOTSUP || err == -ENOENT ? 0 : err;
	}
	err = search(&s);
	for (int i = 0; !err && i < s.n; i++) {
		int r = add_site(l, &s, &s.v[i]);

		err = r < 0 ? r : 0;
		added += r > 0;
	}
	if (!err)
		tell(&s, why, why_size);
	if (scan)
		*scan = s.scan;
	return err ? err : added;
}

int vulkan__create_device(struct site_list *l, struct objects *o)
{
	static const char *const name[] = {"vkCreateDevice"};
	struct object *obj = loader(o);
	struct use use = {.what = PROBE_FRAME, .args = {-1, -1, -1}};
	struct function f = {.obj = obj, .lib = VULKAN_LOADER};
	bool stepped;

	if (!obj || elf_file__find(&obj->elf, name, 1, false, &f.sym) <= 0)
		return 0;
	return sites__add_function(l, o, &f, &use, true, &stepped);
}
