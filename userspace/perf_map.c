// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "intern.h"
#include "maps.h"
#include "perf_map.h"

#define HEAD_BYTES  256
#define CHUNK_BYTES 65536
#define TICK_BYTES  (4u << 20) /* read at once: the ring must be emptied in between */
#define PAGE        4096u
#define PAGES_MAX   (8u << 20) /* of all codes together */
#define PAGE_CODES  16384u     /* of one page that are looked at */

/* ---- lines ---- */

/* "[0x]HEX": the end of it, NULL where there is none */
static const char *parse_hex(const char *s, u64 *out)
{
	char *end;

	if (!strchr("0123456789abcdefABCDEF", *s) || !*s)
		return NULL;
	errno = 0;
	*out = strtoull(s, &end, 16);
	return errno || end == s ? NULL : end;
}

static bool parse(const char *line, struct jit_code *c, const char **name)
{
	const char *s = parse_hex(line, &c->start);

	s = s && *s == ' ' ? parse_hex(s + 1, &c->size) : NULL;
	if (!s || *s != ' ' || !s[1])
		return false;
	*name = s + 1;
	return c->size && c->size <= PERF_MAP_MAX_SIZE && c->start + c->size > c->start;
}

/* The same line as in an earlier pass over the file: the code is still there. */
static bool had(struct perf_map *p, struct key key)
{
	uintptr_t i = (uintptr_t)table__get(&p->known, key);

	if (!i || p->v[i - 1].pass == p->pass)
		return false;
	p->v[i - 1].pass = p->pass;
	return true;
}

static void add(struct perf_map *p, struct jit_code c, const char *name, struct key key, u64 now)
{
	u32 cap = p->cap ? 2 * p->cap : 1024;

	if (p->n == PERF_MAP_MAX_CODES) {
		p->beyond++;
		return;
	}
	if (p->n == p->cap) {
		struct jit_code *bigger = realloc(p->v, cap * sizeof(*bigger));

		if (!bigger) {
			p->error = -ENOMEM;
			return;
		}
		p->v = bigger;
		p->cap = cap;
	}
	c.unseen = c.since = p->looked;
	c.until = ~0ULL;
	c.seen = now;
	c.pass = p->pass;
	c.name = (u32)p->names.len;
	str__add_n(&p->names, name, strlen(name) + 1);
	p->v[p->n++] = c;
	if (p->names.oom || table__put(&p->known, key, (void *)(uintptr_t)p->n))
		p->error = -ENOMEM;
}

static void end_of_line(struct perf_map *p, u64 now)
{
	struct key key = key__of(p->line, p->used);
	struct jit_code c = {};
	const char *name;

	p->line[p->used] = 0;
	p->used = 0;
	if (!parse(p->line, &c, &name) || strlen(name) > PERF_MAP_MAX_NAME)
		p->bad++;
	else if (!had(p, key))
		add(p, c, name, key, now);
}

void perf_map__take(struct perf_map *p, const char *text, size_t len, u64 now)
{
	for (size_t i = 0; i < len && !p->error; i++) {
		if (text[i] == '\n')
			end_of_line(p, now);
		else if (p->used <
			 sizeof(p->line) - 1) /* of a longer one the end is cut off: it is refused as too long */
			p->line[p->used++] = text[i] ? text[i] : '?';
	}
}

/* ---- the file ---- */

static u64 number_of(const char *status, const char *key, int nth)
{
	const char *at = strstr(status, key);
	u64 n = 0;

	at = at ? at + strlen(key) : "";
	for (int i = 0; i <= nth; i++) {
		char *end;

		n = strtoull(at, &end, 10);
		at = end;
	}
	return n;
}

/* the last of "NSpid:\t42\t7": what the game itself takes for its id */
static u32 own_pid(const char *status, u32 tgid)
{
	const char *at = strstr(status, "\nNSpid:"), *eol = at ? strchr(at + 1, '\n') : NULL;
	u32 pid = tgid;

	for (const char *s = at ? at + 7 : ""; eol && s < eol; s += strcspn(s, "\t\n")) {
		s += strspn(s, "\t");
		if (*s >= '0' && *s <= '9')
			pid = (u32)strtoul(s, NULL, 10);
	}
	return pid;
}

/* A link in the game's world leads to somewhere in it, never out of it. */
static int open_tmp(u32 tgid)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	char path[64];
	int root, dir;

	snprintf(path, sizeof(path), "/proc/%u/root", tgid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	dir = root < 0 ? -1 : (int)syscall(SYS_openat2, root, "tmp", &how, sizeof(how));
	if (root >= 0)
		close(root);
	return dir;
}

static void begin(struct perf_map *p, u32 tgid)
{
	char path[64], *status;

	perf_map__close(p);
	p->tgid = tgid;
	snprintf(path, sizeof(path), "/proc/%u/status", tgid);
	status = proc__read(path, 65536, NULL);
	if (!status)
		return;
	snprintf(p->base, sizeof(p->base), "perf-%u.map", own_pid(status, tgid));
	p->uid = (u32)number_of(status, "\nUid:", 1);
	free(status);
	p->dir = open_tmp(tgid);
}

/* Everybody may write to /tmp. */
static const char *refusal(const struct perf_map *p, const struct stat *st)
{
	if (S_ISLNK(st->st_mode))
		return "it is a symbolic link";
	if (!S_ISREG(st->st_mode))
		return "it is no regular file";
	if (st->st_uid && st->st_uid != p->uid)
		return "it belongs to another user than the game's";
	return NULL;
}

static u64 head_of(int fd, u64 size)
{
	char head[HEAD_BYTES];
	ssize_t n = pread(fd, head, min((u64)sizeof(head), size), 0);

	return n > 0 ? hash_bytes(head, (size_t)n) : 0;
}

/* the file has another beginning than it had: from there again */
static void start_over(struct perf_map *p)
{
	p->pass++;
	p->at = p->used = 0;
}

static bool open_file(struct perf_map *p, const struct stat *st)
{
	struct stat opened;
	int fd = openat(p->dir, p->base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0 && (fstat(fd, &opened) || opened.st_ino != st->st_ino || refusal(p, &opened))) {
		close(fd); /* exchanged just now; the next look will tell */
		return false;
	}
	if (fd < 0)
		return false;
	if (p->file >= 0)
		close(p->file);
	p->file = fd;
	p->dev = st->st_dev;
	p->ino = st->st_ino;
	start_over(p);
	p->head_bytes = 0;
	return true;
}

/* What the name stands for now, if that is another file than before. */
static void follow_name(struct perf_map *p)
{
	struct stat st;

	if (p->dir < 0 || fstatat(p->dir, p->base, &st, AT_SYMLINK_NOFOLLOW))
		return; /* removed: what was read stays */
	p->refused = refusal(p, &st);
	if (!p->refused && (p->file < 0 || st.st_ino != p->ino || st.st_dev != p->dev))
		open_file(p, &st);
}

/* true: there is something to read */
static bool has_changed(struct perf_map *p)
{
	struct stat st;
	s64 mtime_ns;

	if (p->file < 0 || fstat(p->file, &st))
		return false;
	mtime_ns = st.st_mtim.tv_sec * (s64)NSEC_PER_SEC + st.st_mtim.tv_nsec;
	if (p->at && (u64)st.st_size == p->at && mtime_ns == p->mtime_ns)
		return false;
	if ((u64)st.st_size < p->at || head_of(p->file, p->head_bytes) != p->head)
		start_over(p);
	p->head_bytes = min((u64)HEAD_BYTES, (u64)st.st_size);
	p->head = head_of(p->file, p->head_bytes);
	p->mtime_ns = mtime_ns;
	return true;
}

/* true at its end */
static bool read_on(struct perf_map *p, u64 now)
{
	static char chunk[CHUNK_BYTES];
	u64 stop = p->at + TICK_BYTES;

	while (p->at < stop && !p->error) {
		ssize_t n = p->read < PERF_MAP_MAX_BYTES ? pread(p->file, chunk, sizeof(chunk), (off_t)p->at) : 0;

		if (n <= 0)
			return true;
		perf_map__take(p, chunk, (size_t)n, now);
		p->at += (u64)n;
		p->read += (u64)n;
	}
	return false;
}

/* The file was read to its end in this pass: what it does not have any more may be gone since the last look. */
static void looked_at_all(struct perf_map *p, u64 now)
{
	for (u32 i = 0; i < p->n && p->pass != p->looked_pass; i++)
		if (p->v[i].pass < p->pass)
			p->v[i].until = min(p->v[i].until, p->looked);
	p->looked_pass = p->pass;
	p->looked = now;
}

void perf_map__refresh(struct perf_map *p, u32 tgid, u64 now)
{
	if (p->tgid != tgid)
		begin(p, tgid);
	follow_name(p);
	if (!has_changed(p))
		p->looked = now;
	else if (read_on(p, now))
		looked_at_all(p, now);
}

void perf_map__close(struct perf_map *p)
{
	if (p->dir >= 0)
		close(p->dir);
	if (p->file >= 0)
		close(p->file);
	table__free(&p->known);
	str__free(&p->names);
	free(p->pages);
	free(p->v);
	*p = (struct perf_map)PERF_MAP_NONE;
}

/* ---- what was where when ---- */

struct page_entry {
	u64 page;
	u32 code; /* index */
};

static int by_page(const void *a, const void *b)
{
	const struct page_entry *x = a, *y = b;

	if (x->page != y->page)
		return x->page < y->page ? -1 : 1;
	return x->code < y->code ? -1 : x->code > y->code;
}

static u64 last_page(const struct jit_code *c)
{
	return (c->start + c->size - 1) / PAGE;
}

static int list_pages(struct perf_map *p)
{
	u64 all = 0;

	for (u32 i = 0; i < p->n; i++)
		all += last_page(&p->v[i]) - p->v[i].start / PAGE + 1;
	if (all > PAGES_MAX)
		return -E2BIG;
	p->pages = malloc((all ?: 1) * sizeof(*p->pages));
	if (!p->pages)
		return -ENOMEM;
	for (u32 i = 0; i < p->n; i++)
		for (u64 page = p->v[i].start / PAGE; page <= last_page(&p->v[i]); page++)
			p->pages[p->n_pages++] = (struct page_entry){.page = page, .code = i};
	qsort(p->pages, p->n_pages, sizeof(*p->pages), by_page);
	return 0;
}

static bool overlap(const struct jit_code *a, const struct jit_code *b)
{
	return a->start < b->start + b->size && b->start < a->start + a->size;
}

/* Later code ends what it overlaps. Which of the two was there between the last look without it and the look that found
 * it is not known: then neither was. */
static void replace(struct jit_code *old, struct jit_code *new)
{
	if (old->until <= new->unseen)
		return;
	old->until = new->unseen;
	new->since = new->seen;
}

/* codes of one page, in the order of the file */
static void settle_page(struct perf_map *p, const struct page_entry *e, u32 n, u32 *live)
{
	u32 n_live = 0;

	for (u32 i = 0; i < n; i++) {
		struct jit_code *new = &p->v[e[i].code];
		u32 kept = 0;

		if (i >= PAGE_CODES) {
			new->until = 0;
			p->beyond++;
			continue;
		}
		for (u32 k = 0; k < n_live; k++) {
			if (overlap(&p->v[live[k]], new))
				replace(&p->v[live[k]], new);
			else
				live[kept++] = live[k];
		}
		n_live = kept;
		live[n_live++] = e[i].code;
	}
}

int perf_map__settle(struct perf_map *p)
{
	u32 *live = malloc(PAGE_CODES * sizeof(*live));
	int err = live ? list_pages(p) : -ENOMEM;
	u32 next;

	for (u32 i = 0; i < p->n_pages && !err; i = next) {
		for (next = i + 1; next < p->n_pages && p->pages[next].page == p->pages[i].page;)
			next++;
		settle_page(p, p->pages + i, next - i, live);
	}
	free(live);
	return err;
}

void perf_map__unname(struct perf_map *p)
{
	for (u32 i = 0; i < p->n; i++)
		p->v[i].id = 0;
}

struct jit_code *perf_map__find(const struct perf_map *p, u64 addr, u64 ts)
{
	u32 lo = 0, hi = p->n_pages;

	while (lo < hi) { /* the first entry of a page behind that of addr */
		u32 mid = lo + (hi - lo) / 2;

		if (p->pages[mid].page > addr / PAGE)
			hi = mid;
		else
			lo = mid + 1;
	}
	while (lo-- && p->pages[lo].page == addr / PAGE) {
		struct jit_code *c = &p->v[p->pages[lo].code];

		if (addr >= c->start && addr - c->start < c->size && ts >= c->since && ts < c->until)
			return c;
	}
	return NULL;
}
