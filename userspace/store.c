/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "log.h"
#include "store.h"
#include "store_db.h"

#define READ_WAIT_S 3           /* for the sender, which comes by each second */
#define PENDING_MAX (64u << 20) /* bytes of rows that wait for a full disk to get room */

struct store {
	struct db *db;       /* to read from; SQLite: to write to as well */
	struct spool *spool; /* a server's writer; NULL: SQLite, or only read */
	char *uri;           /* of that server */
	struct rows pending;
	u64 dropped; /* rows that found no room: said, once and at the end */
};

static bool is_server(const char *uri)
{
	return !strncmp(uri, "postgresql://", 13) || !strncmp(uri, "postgres://", 11);
}

static int open_sqlite(struct store *s, const char *uri, bool write)
{
	int err = sqlite__open(uri, write, &s->db);

	if (err == -ENOENT)
		log_err("--store: there is no %s; soak makes it, and --store says where it is", uri);
	return err ? err : schema__create(s->db);
}

static int open_server(struct store *s, const char *uri, bool write)
{
	int err;

	if (write) {
		s->uri = strdup(uri);
		return s->uri ? spool__open(uri, &s->spool) : -ENOMEM;
	}
	err = postgres__open(uri, &s->db);
	return err ? err : schema__create(s->db);
}

static int open_store(const char *uri, bool write, struct store **out)
{
	struct store *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	err = is_server(uri) ? open_server(s, uri, write) : open_sqlite(s, uri, write);
	if (err) {
		if (err == -EAGAIN)
			log_err("--store: %s: the server does not answer", "postgresql");
		if (s->db)
			s->db->ops->close(s->db);
		free(s->uri);
		free(s);
		return err;
	}
	*out = s;
	return 0;
}

int store__open(const char *uri, struct store **out)
{
	return open_store(uri, true, out);
}

int store__open_read(const char *uri, struct store **out)
{
	return open_store(uri, false, out);
}

int store__flush(struct store *s)
{
	int err = s->spool ? spool__put(s->spool, &s->pending) : rows__insert(&s->pending, s->db);

	if (!err)
		rows__clear(&s->pending);
	return err;
}

int store__close(struct store *s)
{
	int err, sent = 0;

	if (!s)
		return 0;
	err = store__flush(s);
	if (err)
		log_err("the store: %llu rows could not be written", (unsigned long long)s->pending.n);
	if (s->dropped)
		log_err("the store: %llu rows found no room in memory and are lost", (unsigned long long)s->dropped);
	if (s->spool)
		sent = spool__close(s->spool);
	if (s->db)
		s->db->ops->close(s->db);
	rows__free(&s->pending);
	free(s->uri);
	free(s);
	return err ? err : sent;
}

u64 store__unsent(const struct store *s)
{
	return s->spool ? spool__unsent(s->spool) + s->pending.n : 0;
}

const char *store__spool(const struct store *s)
{
	return s->spool ? spool__path(s->spool) : NULL;
}

/* A writer that wants to read what it wrote: all of it has to be there first. */
static int open_reader(struct store *s)
{
	for (int i = 0; i < READ_WAIT_S * 20 && spool__unsent(s->spool); i++)
		usleep(50000);
	if (spool__unsent(s->spool)) {
		log_warn("the server does not have all of this run yet: it cannot be read");
		return -EAGAIN;
	}
	return s->db ? 0 : postgres__open(s->uri, &s->db);
}

int store__query(struct store *s, const char *sql, const struct value *args, int n, row_fn fn, void *arg)
{
	int err = store__flush(s); /* what was written is seen */

	if (!err && s->spool)
		err = open_reader(s);
	return err ? err : s->db->ops->run(s->db, sql, args, n, fn, arg);
}

/* ---- ids ---- */

void run_id__of(char id[RUN_ID_SIZE], const u64 uuid[2])
{
	const u8 *b = (const u8 *)uuid;

	for (int i = 0, at = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			id[at++] = '-';
		at += snprintf(id + at, 3, "%02x", b[i]);
	}
}

void run_id__new(char id[RUN_ID_SIZE])
{
	u64 uuid[2];
	u8 *b = (u8 *)uuid;

	while (getrandom(uuid, sizeof(uuid), 0) != sizeof(uuid))
		;
	b[6] = (b[6] & 0x0f) | 0x40; /* RFC 4122, version 4 */
	b[8] = (b[8] & 0x3f) | 0x80;
	run_id__of(id, uuid);
}

/* ---- rows ---- */

static struct value text(const char *s)
{
	return s ? (struct value){.type = VALUE_TEXT, .s = s} : (struct value){.type = VALUE_NULL};
}

static struct value hex(u64 v, char buf[17])
{
	snprintf(buf, 17, "%016llx", (unsigned long long)v);
	return text(buf);
}

static int put(struct store *s, enum store_table t, const struct value *values, int n)
{
	int err = s->pending.text.len > PENDING_MAX ? -ENOSPC : rows__put(&s->pending, t, values, n);

	if (err && !s->dropped++)
		log_err("the store: rows find no room in memory: %s", errstr(err));
	return err;
}

#define PUT(s, table, ...)                                                                                             \
	({                                                                                                             \
		const struct value values[] = {__VA_ARGS__};                                                           \
		put(s, table, values, ARRAY_SIZE(values));                                                             \
	})

int store__add_run(struct store *s, const char *run, const struct store_run *r)
{
	return PUT(s, TABLE_RUNS, text(run), VALUE_I(r->started_ms), text(r->kind), text(r->game), text(r->path),
		text(REDFRAME_VERSION));
}

int store__add_meta(struct store *s, const char *run, const char *key, const char *value)
{
	return PUT(s, TABLE_META, text(run), text(key), text(value));
}

static int add_counts(struct store *s, const char *run, const struct store_block *b)
{
	int err = 0;

	for (u32 i = 0; i < BUCKETS && b->counts && !err; i++)
		if (b->counts[i])
			err = PUT(s, TABLE_COUNTS, text(run), VALUE_I(b->block), VALUE_I(i), VALUE_I(b->counts[i]));
	return err;
}

static int add_causes(struct store *s, const char *run, const struct store_block *b)
{
	int err = 0;

	for (int c = 0; c < CAUSE_COUNT && !err; c++)
		if (b->causes[c].ns || b->causes[c].hitches)
			err = PUT(s, TABLE_CAUSES, text(run), VALUE_I(b->block), text(cause_names[c]),
				VALUE_I(b->causes[c].ns), VALUE_I(b->causes[c].hitches),
				VALUE_I(b->causes[c].excess_ns));
	return err;
}

int store__add_block(struct store *s, const char *run, const struct store_block *b)
{
	int err = PUT(s, TABLE_BLOCKS, text(run), VALUE_I(b->block), text(b->scene ?: ""), VALUE_I(b->warm_up),
		VALUE_I(b->start_ms), VALUE_I(b->dur_ns), VALUE_I(b->frames), VALUE_I(b->slow), VALUE_I(b->unsure),
		VALUE_I(b->lost), VALUE_I(b->p50_ns), VALUE_I(b->p99_ns), VALUE_I(b->max_ns),
		VALUE_I(b->over_budget_ns), VALUE_I(b->cold_bytes), VALUE_I(b->allocs), VALUE_I(b->alloc_bytes),
		VALUE_I(b->faults));

	return err ?: add_counts(s, run, b) ?: add_causes(s, run, b);
}

int store__add_fingerprint(struct store *s, const char *run, const struct store_fingerprint *f)
{
	char key[17];

	return PUT(s, TABLE_FINGERPRINTS, text(run), hex(f->key, key),
		text(f->cause == CAUSE_NONE ? "other" : cause_names[f->cause]), text(f->text), text(f->what),
		text(f->who), text(f->where));
}

int store__add_hitches(struct store *s, const char *run, const struct store_hitches *h)
{
	char key[17];

	return PUT(s, TABLE_HITCHES, text(run), VALUE_I(h->block), hex(h->fingerprint, key), VALUE_I(h->count),
		VALUE_I(h->excess_ns), VALUE_I(h->worst_ns), VALUE_I(h->worst_frame), VALUE_I(h->worst_ms),
		text(h->sentence), text(h->trace));
}

int store__add_memory(struct store *s, const char *run, const struct store_memory *m)
{
	return PUT(s, TABLE_MEMORY, text(run), VALUE_I(m->at_ms), text(m->scene ?: ""), VALUE_I(m->rss),
		VALUE_I(m->heap), VALUE_I(m->mapped), VALUE_I(m->mappings));
}

int store__add_counter(struct store *s, const char *run, const char *name, u64 value)
{
	return PUT(s, TABLE_COUNTERS, text(run), text(name), VALUE_I(value));
}

int store__add_note(struct store *s, const char *run, u64 number, u64 at_ms, const char *note)
{
	return PUT(s, TABLE_NOTES, text(run), VALUE_I(number), VALUE_I(at_ms), text(note));
}

int store__add_check(struct store *s, const char *run, const struct store_check *c)
{
	return PUT(s, TABLE_CHECKS, text(run), text(c->scene ?: ""), text(c->name), text(c->limit), VALUE_I(c->failed),
		text(c->text));
}

int store__add_end(struct store *s, const char *run, s64 ended_ms, int status, const char *reason)
{
	return PUT(s, TABLE_ENDS, text(run), VALUE_I(ended_ms), VALUE_I(status), text(reason));
}
