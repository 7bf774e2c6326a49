// SPDX-License-Identifier: GPL-2.0-only
/* Reading the truth and the recording. */
#include <errno.h>
#include <stdlib.h>

#include "live.h"
#include "merge.h"
#include "recording.h"
#include "replay.h"

/* the text behind the key of its i-th line; NULL where there is none */
static const char *row(const struct live *l, const char *key, size_t i)
{
	size_t len = strlen(key);

	for (const char *p = l->truth; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		if (!strncmp(p, key, len) && p[len] == ' ' && i-- == 0)
			return p + len + 1;
	return NULL;
}

size_t live__rows(const struct live *l, const char *key)
{
	size_t len = strlen(key), n = 0;

	for (const char *p = l->truth; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		n += !strncmp(p, key, len) && p[len] == ' ';
	return n;
}

void live__word(const struct live *l, const char *key, size_t i, int col, char *out, size_t size)
{
	const char *p = row(l, key, i);

	if (!p)
		fail_msg("the target told no '%s' %zu", key, i);
	for (; col > 0; col--) {
		p += strcspn(p, " \n");
		if (*p != ' ')
			fail_msg("'%s' %zu has no such column", key, i);
		p++;
	}
	snprintf(out, size, "%.*s", (int)strcspn(p, " \n"), p);
}

long long live__num(const struct live *l, const char *key, size_t i, int col)
{
	char word[64], *end;
	long long v;

	live__word(l, key, i, col, word, sizeof(word));
	v = word[0] == '-' ? strtoll(word, &end, 0) : (long long)strtoull(word, &end, 0);
	if (*end || end == word)
		fail_msg("'%s' %zu column %d is no number: '%s'", key, i, col, word);
	return v;
}

static u64 ino_of(const struct ev_hdr *h, u32 *dev)
{
	const struct ev_desc *d = ev__desc(h->kind);
	u64 ino = 0;

	*dev = 0;
	for (int i = 0; d && i < d->n_fields; i++) {
		if (d->fields[i].unit == UNIT_INO)
			ino = (u64)ev__value(h, &d->fields[i]);
		if (d->fields[i].unit == UNIT_DEV)
			*dev = (u32)ev__value(h, &d->fields[i]);
	}
	return ino;
}

static void keep(struct live *l, size_t *cap, const struct ev_hdr *rec)
{
	struct live_event *e;
	const char *path, *arg;
	u32 dev;
	u64 ino = ino_of(rec, &dev);
	void *copy;

	if (l->n == *cap) {
		*cap = *cap ? *cap * 2 : 4096;
		l->ev = realloc(l->ev, *cap * sizeof(*l->ev));
		assert_non_null(l->ev);
	}
	copy = calloc(1, ev__bytes(rec) + 8); /* a text tail always ends in a NUL here */
	assert_non_null(copy);
	memcpy(copy, rec, ev__bytes(rec));
	e = &l->ev[l->n++];
	path = ino ? model__path(l->model, dev, ino) : NULL;
	arg = rec->kind == EV_FILE_META ? model__path_arg(l->model, rec) : NULL;
	*e = (struct live_event){.hdr = copy, .path = path ? strdup(path) : NULL, .arg = arg ? strdup(arg) : NULL};
}

static void drain(struct live *l, size_t *cap, struct merge *m, bool flush)
{
	const struct ev_hdr *rec;

	while ((rec = merge__pop(m, flush))) {
		assert_int_equal(model__event(l->model, rec), 0);
		keep(l, cap, rec);
	}
}

/* An emulator lets a CPU stand still between the time of a record and its place in the ring, for longer than any
 * machine would: tests/vm asks for more patience. */
static u64 merge_window_ns(void)
{
	const char *ms = getenv("LIVE_MERGE_MS");

	return ms ? strtoull(ms, NULL, 10) * NSEC_PER_MSEC : MERGE_WINDOW_NS;
}

void live__load_from(struct live *l, const char *path)
{
	struct merge *m = merge__new(merge_window_ns(), MERGE_MAX_BYTES);
	const struct ev_hdr *rec;
	struct recording r;
	size_t cap = 0;
	int err;

	err = recording__open(&r, path);
	if (err)
		fail_msg("%s: %s", path, recording__strerror(err));
	l->model = model__new();
	assert_non_null(l->model);
	assert_int_equal(replay__prepare(&r, l->model), 0);
	while ((err = recording__next(&r, &rec)) == 1) {
		assert_int_equal(merge__push(m, rec), 0);
		drain(l, &cap, m, false);
	}
	assert_int_equal(err, 0);
	drain(l, &cap, m, true);
	assert_int_equal(merge__late(m), 0);
	assert_int_equal(r.unknown + r.malformed, 0);
	l->incomplete = r.hdr.flags & RECORDING_INCOMPLETE;
	merge__free(m);
	recording__close(&r);
}

void live__load(struct live *l)
{
	live__load_from(l, l->recording);
}

void live__no_loss(const struct live *l)
{
	for (int c = 0; c < CLASS_COUNT; c++)
		if (model__stats(l->model)->lost[c])
			fail_msg("%llu %s events were lost", (unsigned long long)model__stats(l->model)->lost[c],
				class_names[c]);
}

size_t live__count(const struct live *l, u8 kind)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += l->ev[i].hdr->kind == kind;
	return n;
}

u32 live__tid(const struct live *l, long long nstid)
{
	u32 host = model__host_tid(l->model, (u32)nstid);

	return host ? host : (u32)nstid;
}

const struct live_event *live__next(const struct live *l, size_t *at, u8 kind)
{
	while (*at < l->n) {
		const struct live_event *e = &l->ev[(*at)++];

		if (e->hdr->kind == kind)
			return e;
	}
	return NULL;
}

const char *live__text(const struct ev_hdr *h)
{
	return (const char *)h + ev__desc(h->kind)->size;
}
