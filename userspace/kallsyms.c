// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kallsyms.h"
#include "recording.h"

#define SYMBOLS_MAX  (1u << 21)
#define FUNCTION_MAX (1u << 20) /* bytes: the last one before a gap has no end */

static int grow(struct kallsyms *k, size_t text)
{
	size_t n = k->n ? 2 * (size_t)k->n : 1u << 16;
	void *bigger;

	if (k->n >= 1u << 16 ? !(k->n & (k->n - 1)) : !k->n) {
		bigger = realloc(k->v, n * sizeof(*k->v));
		if (!bigger)
			return -ENOMEM;
		k->v = bigger;
	}
	if (k->used / (1u << 20) == (k->used + text) / (1u << 20) && k->text)
		return 0;
	bigger = realloc(k->text, ((k->used + text) / (1u << 20) + 1) << 20);
	if (!bigger)
		return -ENOMEM;
	k->text = bigger;
	return 0;
}

/* "ffffffff81000000 T name\t[module]" */
static int add_line(struct kallsyms *k, const char *line)
{
	char name[512], module[128] = "[kernel]", type;
	unsigned long long addr;
	size_t n, m;
	int err;

	if (sscanf(line, "%llx %c %511s %127s", &addr, &type, name, module) < 3 || !addr || !strchr("tTwW", type))
		return 0;
	n = strlen(name) + 1;
	m = strlen(module) + 1;
	err = k->n == SYMBOLS_MAX ? -E2BIG : grow(k, n + m);
	if (err)
		return err;
	k->v[k->n] = (struct kallsym){.addr = addr, .at = (u32)k->used, .order = k->n};
	k->n++;
	memcpy(k->text + k->used, name, n);
	memcpy(k->text + k->used + n, module, m);
	k->used += n + m;
	return 0;
}

static int by_addr(const void *a, const void *b)
{
	const struct kallsym *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void sort(struct kallsyms *k)
{
	u32 kept = 0;

	if (k->n)
		qsort(k->v, k->n, sizeof(*k->v), by_addr);
	for (u32 i = 0; i < k->n; i++)
		if (!i || k->v[i].addr != k->v[kept - 1].addr)
			k->v[kept++] = k->v[i];
	k->n = kept;
}

int kallsyms__read(struct kallsyms *k, int fd)
{
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char *line = NULL;
	size_t cap = 0;
	int err = fd < 0 ? fd : f ? 0 : -errno;

	*k = (struct kallsyms){};
	while (!err && getline(&line, &cap, f) > 0)
		err = add_line(k, line);
	if (!err && ferror(f))
		err = -EIO;
	if (!err && !k->n)
		err = -EACCES;
	sort(k);
	free(line);
	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
	return err;
}

static const struct kallsym *find(const struct kallsyms *k, u64 addr)
{
	u32 lo = 0, hi = k->n;

	while (lo < hi) { /* the first that begins above addr */
		u32 mid = lo + (hi - lo) / 2;

		if (k->v[mid].addr > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo && addr - k->v[lo - 1].addr < FUNCTION_MAX ? &k->v[lo - 1] : NULL;
}

const char *kallsyms__name(const struct kallsyms *k, u64 addr)
{
	const struct kallsym *s = find(k, addr);

	return s ? k->text + s->at : NULL;
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

int kallsyms__write(const struct kallsyms *k, struct recording_writer *w, u64 ts, u64 *addrs, u32 n)
{
	const struct kallsym *last = NULL;
	int err = 0;

	if (n)
		qsort(addrs, n, sizeof(*addrs), by_value);
	for (u32 i = 0; i < n && !err; i++) {
		const struct kallsym *s = find(k, addrs[i]);
		struct ev_symbol e = {.hdr = {.ts = ts, .kind = EV_SYMBOL}};
		const char *name;
		size_t bytes;

		if (!s || s == last)
			continue;
		last = s;
		name = k->text + s->at;
		bytes = strlen(name) + 1;
		bytes += strlen(name + bytes);
		e.addr = s->addr;
		e.size = s + 1 < k->v + k->n ? min(s[1].addr - s->addr, (u64)FUNCTION_MAX) : FUNCTION_MAX;
		err = recording__append_text(w, &e, sizeof(e), name, bytes);
	}
	return err;
}

void kallsyms__free(struct kallsyms *k)
{
	free(k->v);
	free(k->text);
	*k = (struct kallsyms){};
}
