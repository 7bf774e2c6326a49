/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kept.h"
#include "log.h"

void kept__init(struct kept *k, const char *dir, u64 limit)
{
	memset(k, 0, sizeof(*k));
	snprintf(k->dir, sizeof(k->dir), "%s", dir);
	k->limit = limit;
}

void kept__free(struct kept *k)
{
	free(k->files);
	k->files = NULL;
	k->n_files = 0;
}

static struct kept_file *find(const struct kept *k, u32 segment)
{
	for (u32 i = k->n_files; i-- > 0;) /* the youngest is asked for most */
		if (k->files[i].segment == segment)
			return &k->files[i];
	return NULL;
}

bool kept__has(const struct kept *k, u32 segment)
{
	return find(k, segment) != NULL;
}

int kept__add(struct kept *k, u32 segment, bool precious)
{
	struct kept_file *bigger;
	u32 cap;

	if (k->n_files == k->cap_files) {
		cap = k->cap_files ? 2 * k->cap_files : 64;
		bigger = realloc(k->files, cap * sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		k->files = bigger;
		k->cap_files = cap;
	}
	k->files[k->n_files++] = (struct kept_file){.segment = segment, .waiting = true, .precious = precious};
	return 0;
}

void kept__size(struct kept *k, u32 segment, u64 bytes)
{
	struct kept_file *f = find(k, segment);

	if (!f)
		return;
	k->bytes += bytes - f->bytes;
	f->bytes = bytes;
}

void kept__told(struct kept *k, u32 segment)
{
	struct kept_file *f = find(k, segment);

	if (f)
		f->waiting = false;
}

static struct kept_kind *kind_of(struct kept *k, u64 fingerprint)
{
	for (u32 i = 0; i < k->n_kinds; i++)
		if (k->kinds[i].fingerprint == fingerprint)
			return &k->kinds[i];
	if (k->n_kinds == KEPT_KINDS)
		return NULL;
	k->kinds[k->n_kinds] = (struct kept_kind){.fingerprint = fingerprint};
	return &k->kinds[k->n_kinds++];
}

void kept__hitch(struct kept *k, u32 segment, u64 fingerprint, s64 excess_ns, u64 dur_ns)
{
	struct kept_file *f = find(k, segment);
	struct kept_kind *kind = f ? kind_of(k, fingerprint) : NULL;

	if (!f)
		return;
	if (excess_ns > 0 && __builtin_add_overflow(f->excess_ns, excess_ns, &f->excess_ns))
		f->excess_ns = INT64_MAX;
	if (!kind)
		return;
	if (!kind->worst_ns)
		kind->first = segment;
	if (dur_ns > kind->worst_ns) {
		kind->worst_ns = dur_ns;
		kind->worst = segment;
	}
}

/* 0: one of many; 1: the first of its kind; 2: the worst; 3: the last seconds of a game */
static int rank_of(const struct kept *k, const struct kept_file *f)
{
	int rank = f->precious ? 3 : f->waiting ? 2 : 0;

	for (u32 i = 0; i < k->n_kinds && rank < 2; i++)
		rank = k->kinds[i].worst == f->segment ? 2 : k->kinds[i].first == f->segment ? 1 : rank;
	return rank;
}

static struct kept_file *least(const struct kept *k, u32 spare)
{
	struct kept_file *found = NULL;
	int found_rank = 0;

	for (u32 i = 0; i < k->n_files; i++) {
		struct kept_file *f = &k->files[i];
		int rank = rank_of(k, f);

		if (f->segment == spare)
			continue;
		if (!found || rank < found_rank || (rank == found_rank && f->excess_ns < found->excess_ns)) {
			found = f;
			found_rank = rank;
		}
	}
	return found;
}

static void drop(struct kept *k, struct kept_file *f)
{
	char path[sizeof(k->dir) + 64];

	snprintf(path, sizeof(path), "%s/segment-%06u.redframe", k->dir, f->segment);
	if (unlink(path) && errno != ENOENT)
		log_warn("%s: %s", path, errstr(errno));
	k->dropped++;
	k->dropped_bytes += f->bytes;
	k->dropped_most_ns = max(k->dropped_most_ns, f->excess_ns);
	k->bytes -= f->bytes;
	for (u32 i = 0; i < k->n_kinds; i++) {
		k->kinds[i].first = k->kinds[i].first == f->segment ? 0 : k->kinds[i].first;
		k->kinds[i].worst = k->kinds[i].worst == f->segment ? 0 : k->kinds[i].worst;
	}
	if (k->gone)
		k->gone(k->arg, f->segment);
	memmove(f, f + 1, (size_t)(k->files + k->n_files - (f + 1)) * sizeof(*f));
	k->n_files--;
}

static bool is_full(const struct kept *k, u64 more)
{
	return (k->limit && k->bytes + more > k->limit) || k->n_files >= KEPT_FILES;
}

bool kept__lacks_knowledge(const struct kept *k, u64 more, u32 spare)
{
	const struct kept_file *f = is_full(k, more) ? least(k, spare) : NULL;

	return f && f->waiting;
}

bool kept__make_room(struct kept *k, u64 more, u32 spare)
{
	while (is_full(k, more)) {
		struct kept_file *f = least(k, spare);

		if (!f)
			return false;
		drop(k, f);
	}
	return true;
}
