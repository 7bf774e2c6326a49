/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "heap.h"
#include "bpf_options.h"
#include "maps.h"

#define DATA_MAX   (1u << 20) /* bytes of a library's data that are looked through */
#define EMPTY_BINS 32         /* at the least: a heap has blocks of few sizes at a time */
#define TOP_WORD   (HEAP_TOP / 8)
#define SIZE_WORD  (HEAP_SIZE / 8)

/* A bin is two links of a list, whose anchor begins two words before them: it names itself while it is empty. */
static bool is_empty_bin(const u64 *bin, u64 at)
{
	return bin[0] == at - 16 && bin[1] == at - 16;
}

static bool are_bins(const u64 *bins, u64 at, u64 heap_start, u64 heap_end)
{
	u64 top = bins[TOP_WORD], size = bins[SIZE_WORD];
	int empty = 0;

	if (top < heap_start || top >= heap_end || size < 4096 || size % 4096 || size > heap_end - heap_start)
		return false;
	for (int i = 0; i < HEAP_BINS; i++, bins += 2, at += 16) {
		if (is_empty_bin(bins, at))
			empty++;
		else if (bins[0] < heap_start || bins[0] >= heap_end || bins[1] < heap_start || bins[1] >= heap_end)
			return false;
	}
	return empty >= EMPTY_BINS;
}

u64 heap__find_in(const u64 *words, size_t n, u64 at, u64 heap_start, u64 heap_end)
{
	for (size_t i = -TOP_WORD; i + SIZE_WORD < n; i++)
		if (are_bins(words + i, at + 8 * i, heap_start, heap_end))
			return at + 8 * i;
	return 0;
}

/* the C library; or a program that is linked statically with it */
static bool may_hold_arena(const struct map *m, const struct maps *maps)
{
	const char *base = path__base(m->path);

	return m->ino && m->prot & PROT_WRITE && !m->shared &&
	       (!strncmp(base, "libc.so", 7) || !strncmp(base, "libc-2.", 7) || m->ino == maps->v[0].ino);
}

static u64 search(const struct map *m, u32 tgid, const struct map *heap)
{
	size_t bytes = min(m->end - m->start, (u64)DATA_MAX);
	u64 *words = malloc(bytes), found = 0;
	struct iovec here = {words, bytes}, there = {(void *)m->start, bytes};
	ssize_t got = words ? process_vm_readv((pid_t)tgid, &here, 1, &there, 1, 0) : -1;

	if (got > 0)
		found = heap__find_in(words, (size_t)got / 8, m->start, heap->start, heap->end);
	free(words);
	return found;
}

u64 heap__find(u32 tgid)
{
	const struct map *heap = NULL;
	struct maps maps = {};
	u64 found = 0;

	if (maps__read(&maps, tgid))
		return 0;
	for (int i = 0; i < maps.n; i++)
		if (!strcmp(maps.v[i].path, "[heap]"))
			heap = &maps.v[i];
	for (int i = 0; heap && !found && i < maps.n; i++)
		if (may_hold_arena(&maps.v[i], &maps))
			found = search(&maps.v[i], tgid, heap);
	maps__free(&maps);
	return found;
}
